"""Write db/privileges.txt, who may do what with every object of the schema; --check compares instead.

One line an object, one column a role, so that a new grant shows as a changed line in a diff. It is read from
the catalogue of a freshly migrated database that has one embedding space, whose tables are made at run time.
tests/test_privileges.py compares it in every run.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psycopg

from pgserver import run_sql, throwaway_server

ROOT: Final = Path(__file__).resolve().parent.parent
TARGET: Final = ROOT / "db" / "privileges.txt"
DATABASE: Final = "memvec_privileges"
ROLES: Final = ("PUBLIC", "runtime", "embedder", "reader", "admin")
HEAD: Final = """\
# Who may do what with every object of schema memvec. Written by `make privileges`, compared in the tests.
#
# X execute   U usage   C create   r select   a insert   w update   d delete   D truncate   x references
# t trigger   m maintain   -  nothing   *  may pass it on
# Everything belongs to memvec_owner, as whom the functions run, unless a line says otherwise.
# Rights of other roles would stand behind the object's name: there are none in a sound database.
"""
_OBJECTS: Final = ROOT / "tools" / "privileges.sql"
_ROLES: Final = """
SELECT r.rolname,
       concat_ws(' ', CASE WHEN r.rolcanlogin THEN 'LOGIN' END, CASE WHEN r.rolsuper THEN 'SUPERUSER' END,
                 CASE WHEN r.rolbypassrls THEN 'BYPASSRLS' END,
                 CASE WHEN r.rolcreaterole THEN 'CREATEROLE' END,
                 CASE WHEN r.rolcreatedb THEN 'CREATEDB' END,
                 CASE WHEN r.rolreplication THEN 'REPLICATION' END),
       array(SELECT m.roleid::regrole::text FROM pg_auth_members AS m WHERE m.member = r.oid ORDER BY 1)
  FROM pg_roles AS r
 WHERE r.rolname IN ('memvec_owner', 'memvec_runtime', 'memvec_embedder', 'memvec_reader', 'memvec_admin')
 ORDER BY 1
"""


def matrix(connection: psycopg.Connection[Any]) -> str:
    """Who may do what in this database, as the text of the file."""
    objects: list[tuple[str, dict[str, str] | None]] = connection.execute(_OBJECTS.read_bytes()).fetchall()
    roles: list[tuple[str, str, list[str]]] = connection.execute(_ROLES.encode()).fetchall()
    lines = [HEAD]
    for name, attributes, groups in roles:
        lines.append(
            f"role {name}: {attributes or 'no login, no special right'}; member of {_listed(groups)}"
        )
    lines += ["", _row(ROLES, "")]
    for name, rights in objects:
        held = dict(rights or {})
        cells = [held.pop(role, "-") for role in ROLES]
        others = "".join(f"  {role}={right}" for role, right in sorted(held.items()))
        lines.append(_row(cells, name + others))
    return "\n".join(lines) + "\n"


def difference(expected: str, found: str) -> str:
    """What has changed, line by line; blank when nothing has."""
    return "\n".join(
        difflib.unified_diff(
            expected.splitlines(), found.splitlines(), "db/privileges.txt", "this database", lineterm="", n=0
        )
    )


def _row(cells: Sequence[str], name: str) -> str:
    return ("".join(cell.ljust(10) for cell in cells) + name).rstrip()


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the matrix of privileges.")
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    arguments = parser.parse_args()
    from hermes_pgsql.migrate import migrate

    with throwaway_server() as server:
        run_sql(server.dsn(), f"CREATE DATABASE {DATABASE}")
        migrate(server.dsn(DATABASE))
        run_sql(server.dsn(DATABASE), "SELECT memvec.add_embedding_space('m', 8)")
        with psycopg.connect(server.dsn(DATABASE)) as connection:
            found = matrix(connection)
    if arguments.check:
        changed = difference(TARGET.read_text() if TARGET.exists() else "", found)
        print(changed or "nothing has changed")
        return 1 if changed else 0
    TARGET.write_text(found)
    print(f"wrote {TARGET.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
