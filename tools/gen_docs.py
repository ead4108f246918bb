"""Write docs/functions.md from the catalogue of a freshly migrated database; --check compares instead.

The text is the functions' own comments (COMMENT ON FUNCTION), so the reference cannot say something else than
what the database says.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.rows import class_row

from pgserver import run_sql, throwaway_server

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "functions.md"
DATABASE = "memvec_docs"
AREAS = {
    "identity": "Identity",
    "write": "Writing",
    "recall": "Recall",
    "embedding": "Embeddings",
    "maintenance": "Maintenance",
    "admin": "Administration",
}
HEAD = """# SQL functions

<!-- Written by `make docs` from the comments in the database. Edit those, not this file. -->

Everything a client may do is a function of schema `memvec`. Call them with named arguments
(`memvec.recall_memory(p_identity => 'ops', p_query => 'which port?')`). `p_identity` is always the raw
session key: each function decides by itself which theme and person it stands for. Errors have SQLSTATE class
`MV`, with a detail and a hint. “Who” names the role groups that may execute a function: runtime for agents,
embedder for backfill workers, reader for recall only, admin for everything.
"""
QUERY = """
SELECT p.proname AS name,
       (SELECT coalesce(string_agg(
                   a.name || ' ' || format_type(a.type, NULL) || coalesce(' DEFAULT ' || regexp_replace(
                       pg_get_function_arg_default(p.oid, a.n::int), '^(NULL|''[^'']*'')::.*$', '\\1'), ''),
                   E',\\n    ' ORDER BY a.n), '')
          FROM unnest(p.proargnames[1:p.pronargs], p.proargtypes::oid[]) WITH ORDINALITY AS a (name, type, n)
       ) AS arguments,
       (SELECT coalesce(string_agg(a.name || ' ' || format_type(a.type, NULL), ', ' ORDER BY a.n), '')
          FROM unnest(p.proargnames, p.proallargtypes, p.proargmodes)
               WITH ORDINALITY AS a (name, type, mode, n)
         WHERE a.mode IN ('o', 't')) AS columns,
       format_type(p.prorettype, NULL) AS scalar,
       p.proretset AS many,
       coalesce(obj_description(p.oid, 'pg_proc'), '') AS comment,
       array(SELECT g.short
               FROM aclexplode(p.proacl) AS x
               JOIN (SELECT oid, substring(rolname FROM '^memvec_(.*)$') AS short FROM pg_roles) AS g
                 ON g.oid = x.grantee
              WHERE g.short IS NOT NULL AND g.oid <> p.proowner
              ORDER BY array_position('{runtime,embedder,reader,admin}', g.short)) AS groups
  FROM pg_proc AS p
 WHERE p.pronamespace = 'memvec'::regnamespace
 ORDER BY p.proname COLLATE "C"
"""
INTERNAL = """## Internal

Nobody but the owner may execute these; the functions above are built from them.

| function | what it does |
|---|---|"""


@dataclass(frozen=True)
class Function:
    name: str
    arguments: str
    columns: str
    scalar: str
    many: bool
    comment: str
    groups: list[str]


def functions() -> list[Function]:
    from hermes_pgsql.migrate import migrate

    with throwaway_server() as server:
        run_sql(server.dsn(), f"CREATE DATABASE {DATABASE}")
        migrate(server.dsn(DATABASE))
        with psycopg.connect(server.dsn(DATABASE), row_factory=class_row(Function)) as connection:
            return connection.execute(QUERY).fetchall()  # pyright: ignore[reportArgumentType]


def document(all_functions: list[Function]) -> str:
    area_of = {path.stem: path.parent.name for path in ROOT.glob("db/functions/*/*.sql")}
    parts = [HEAD]
    for area, title in AREAS.items():
        public = [f for f in all_functions if f.groups and area_of.get(f.name) == area]
        if public:
            parts.append(f"## {title}\n")
            parts += [entry(function, area_of) for function in public]
    internal = [f for f in all_functions if not f.groups]
    if internal:
        parts.append(INTERNAL)
        parts += [f"| {link(function, area_of)} | {cell(function.comment)} |" for function in internal]
    return "\n".join(parts).rstrip() + "\n"


def link(function: Function, area_of: dict[str, str]) -> str:
    return f"[{function.name}](../db/functions/{area_of.get(function.name, '')}/{function.name}.sql)"


def entry(function: Function, area_of: dict[str, str]) -> str:
    arguments = f"\n    {function.arguments}\n" if function.arguments else ""
    return (
        f"### {link(function, area_of)}\n\n"
        f"```sql\nmemvec.{function.name}({arguments})\n```\n\n"
        f"{function.comment}\n\n"
        f"* Result: {result(function)}\n"
        f"* Who: {', '.join(function.groups)}\n"
    )


def result(function: Function) -> str:
    if function.scalar == "void":
        return "nothing"
    rows = "rows of " if function.many else "one row: " if "," in function.columns else ""
    return f"{rows}`{function.columns or function.scalar}`"


def cell(text: str) -> str:
    return text.removesuffix(" Internal.").replace("|", "\\|").replace("\n", " ")


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the reference of the SQL functions.")
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    arguments = parser.parse_args()
    text = document(functions())
    name = TARGET.relative_to(ROOT)
    if arguments.check:
        if TARGET.exists() and TARGET.read_text() == text:
            return 0
        print(f"{name} is not what the database says: run `make docs` and commit it.", file=sys.stderr)
        return 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text)
    print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
