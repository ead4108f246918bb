"""Check every statement inside the PL/pgSQL functions of schema memvec, as the server would on the day it
runs.

PostgreSQL looks into a PL/pgSQL body for syntax only; a wrong column, table, type or call is found when
that line is first executed. This migrates a throw-away database (with `plpgsql.extra_errors`, so a shadowed
variable stops it), takes each function apart with PostgreSQL's own parser, puts a typed NULL in the place
of each variable, and prepares what results under the function's own search_path. Also reported: a name that
is both a column and a variable, RETURN QUERY and INTO with the wrong number or types of columns, and fields
that a record does not have.

What a record holds is learnt from the queries that fill it. Text of dynamic EXECUTE cannot be checked, nor
can what depends on a record filled by it; the closing line counts the latter.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pglast
import psycopg
from pglast import ast
from pglast.visitors import Visitor
from psycopg.pq import DiagnosticField, ExecStatus

from pgserver import run_sql, throwaway_server

DATABASE = "memvec_lint"
PREFIXED = re.compile(r"[pvc]_")
# The parser knows the types of pg_catalog and public, and no array of any other. These find the rest, where
# a variable is declared and in a signature, to be replaced by what it accepts.
DECLARED = re.compile(
    r"\b([pvc]_\w+)(\s+(?:CONSTANT\s+)?)((?:memvec|public)\.\w+)(?:%ROWTYPE)?(\s*\[\])?", re.IGNORECASE
)
IN_SIGNATURE = re.compile(r"(?<=\s)(?:memvec|public)\.(\w+)(\s*\[\])?")
REFERENCE = re.compile(rb'[\w"]+(?:\s*\.\s*(?:[\w"]+|\*))*')
UNDEFINED_COLUMN, UNDEFINED_TABLE = "42703", "42P01"

Columns = tuple[tuple[str, int], ...]  # name and type of each column of a result


class UnresolvedError(Exception):
    """A statement uses a record whose columns are not known (yet)."""


@dataclass
class Function:
    """A function to check: `variables` and `records` map names to SQL types and to the columns they were
    filled with."""

    name: str
    definition: str
    result_types: list[int]
    search_path: str
    variables: dict[str, str] = field(default_factory=dict)
    records: dict[str, Columns | None] = field(default_factory=dict)
    column_wins: bool = False


@dataclass(frozen=True)
class Statement:
    """One query or expression of a body. `columns` and `record` say where its result goes, when that can be
    checked."""

    line: int
    text: str
    columns: int | None = None
    record: str | None = None
    returned: bool = False


@dataclass(frozen=True)
class Reference:
    """A name in a query that may be a variable. `start` and `end` are byte offsets."""

    parts: tuple[str, ...]
    start: int
    end: int


class Catalogue:
    """The migrated database, asked for functions, types, and whether a statement makes sense."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection

    def functions(self) -> list[Function]:
        rows = self.connection.execute("""
            SELECT p.proname, pg_get_functiondef(p.oid),
                   array(SELECT a.type::bigint
                           FROM unnest(p.proallargtypes, p.proargmodes) WITH ORDINALITY AS a (type, mode, n)
                          WHERE a.mode IN ('o', 'b', 't') ORDER BY n),
                   (SELECT coalesce(min(substring(c FROM 'search_path=(.*)')), '')
                      FROM unnest(p.proconfig) AS c),
                   array(SELECT a.name || ' ' || format_type(a.type, NULL)
                           FROM unnest(p.proargnames, coalesce(p.proallargtypes, p.proargtypes::oid[]))
                             AS a (name, type)),
                   CASE WHEN p.proallargtypes IS NULL AND p.prorettype <> 'void'::regtype
                        THEN p.prorettype::bigint END
              FROM pg_proc AS p
             WHERE p.pronamespace = 'memvec'::regnamespace
               AND p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql')
             ORDER BY p.proname""").fetchall()
        found: list[Function] = []
        for name, definition, out_types, search_path, arguments, scalar in rows:
            function = Function(name, definition, out_types or ([scalar] if scalar else []), search_path)
            function.variables = dict(argument.split(" ", 1) for argument in arguments)
            function.column_wins = "#variable_conflict use_column" in definition
            found.append(function)
        return found

    def type_name(self, name: str) -> str:
        """The qualified name of a type. Errors: KeyError when there is none."""
        self.connection.execute("SELECT set_config('search_path', 'pg_catalog, public, memvec', false)")
        row = self.connection.execute("SELECT to_regtype(%s)::oid", [name]).fetchone()
        self.connection.execute("SELECT set_config('search_path', 'pg_catalog', false)")
        if row is None or row[0] is None:
            raise KeyError(name)
        return self.type_by_oid(row[0])

    def type_by_oid(self, oid: int) -> str:
        row = self.connection.execute("SELECT format_type(%s, NULL)", [oid]).fetchone()
        return row[0] if row else "text"

    def prepare(self, query: bytes, search_path: str) -> Columns | tuple[str, str, int]:
        """The columns of the result, or SQLSTATE, message and byte offset of the error."""
        low_level = self.connection.pgconn
        self.connection.execute("SELECT set_config('search_path', %s, false)", [search_path])
        try:
            prepared = low_level.prepare(b"", query)
            if prepared.status == ExecStatus.COMMAND_OK:
                described = low_level.describe_prepared(b"")
                return tuple(
                    ((described.fname(n) or b"").decode(), described.ftype(n))
                    for n in range(described.nfields)
                )

            def part(which: DiagnosticField) -> str:
                return (prepared.error_field(which) or b"").decode()

            characters = int(part(DiagnosticField.STATEMENT_POSITION) or 1) - 1
            offset = len(query.decode()[:characters].encode())
            return part(DiagnosticField.SQLSTATE), part(DiagnosticField.MESSAGE_PRIMARY), offset
        finally:
            self.connection.execute("SELECT set_config('search_path', 'pg_catalog', false)")


class References(Visitor):
    """Collects the names of a query that PL/pgSQL would look up among its variables."""

    def __init__(self, query: bytes) -> None:
        self.query = query
        self.found: list[Reference] = []
        self.conflict_targets: list[str] = []
        self.result_names: set[str] = set()
        self.sort_references: set[int] = set()

    def visit_ResTarget(self, _ancestors: Any, node: ast.ResTarget) -> None:
        if node.name:
            self.result_names.add(node.name)
        elif isinstance(node.val, ast.ColumnRef):
            last = node.val.fields[-1]
            self.result_names.add(last.sval if isinstance(last, ast.String) else "*")
        elif isinstance(node.val, ast.FuncCall):
            self.result_names.add(node.val.funcname[-1].sval)

    def visit_SortBy(self, _ancestors: Any, node: ast.SortBy) -> None:
        if isinstance(node.node, ast.ColumnRef) and node.node.location is not None:
            self.sort_references.add(node.node.location)

    def visit_InferClause(self, _ancestors: Any, node: ast.InferClause) -> None:
        self.conflict_targets += [element.name for element in node.indexElems or () if element.name]

    def visit_ColumnRef(self, _ancestors: Any, node: ast.ColumnRef) -> None:
        parts = tuple(part.sval if isinstance(part, ast.String) else "*" for part in node.fields)
        source = REFERENCE.match(self.query, node.location)
        if source is not None:
            self.found.append(Reference(parts, node.location, source.end()))

    def variables(self) -> list[Reference]:
        """The names found, without those in ORDER BY that mean a column of the result: they never reach the
        variables."""
        return [
            reference
            for reference in self.found
            if reference.start not in self.sort_references
            or self.result_names.isdisjoint((reference.parts[0], "*"))
        ]


def statements(function: Function, catalogue: Catalogue) -> list[Statement]:
    """Take the body apart; fills `function.variables` and `function.records` with what it declares."""
    own_types: dict[str, str] = {}

    def note(match: re.Match[str]) -> str:
        own_types[match[1].lower()] = match[3] + (match[4] or "")
        return f"{match[1]}{match[2]}{acceptable(match[3].split('.')[1], match[4])}"

    signature, opening, body = function.definition.partition("AS $function$")
    head, parenthesis, arguments = signature.partition("(")
    arguments = IN_SIGNATURE.sub(lambda match: acceptable(match[1], match[2]), arguments)
    source = head + parenthesis + arguments + opening + DECLARED.sub(note, body)
    parsed: dict[str, Any] = pglast.parse_plpgsql(source)[0]["PLpgSQL_function"]
    for datum in parsed["datums"]:
        [(kind, value)] = datum.items()
        name = value.get("refname")
        if name in own_types:
            function.variables[name] = own_types[name]
        elif kind == "PLpgSQL_var" and name not in function.variables:
            declared = value["datatype"]["PLpgSQL_type"]["typname"].replace("pg_catalog.", "").strip('"')
            function.variables[name] = catalogue.type_name(declared)
        elif kind == "PLpgSQL_rec" and name not in function.variables:
            function.records[name] = None
    found = [Statement(1, f"SELECT {query}") for query in defaults(parsed["datums"])]
    return found + list(walk(parsed["action"], 1))


def acceptable(type_name: str, array: str | None) -> str:
    """A type that the parser accepts in the place of one that it does not know."""
    return "text[]" if array else f"public.{type_name}"


def defaults(datums: list[dict[str, Any]]) -> Iterator[str]:
    for datum in datums:
        for value in datum.values():
            if "default_val" in value:
                yield value["default_val"]["PLpgSQL_expr"]["query"]


def walk(node: Any, line: int) -> Iterator[Statement]:
    if isinstance(node, list):
        for child in node:
            yield from walk(child, line)
        return
    if not isinstance(node, dict):
        return
    for kind, value in node.items():
        if kind in ("target", "var"):
            continue
        if kind == "PLpgSQL_expr":
            yield Statement(line, as_query(value))
        elif isinstance(value, dict):
            here = value.get("lineno", line)
            yield from statement_of(kind, value, here)
        else:
            yield from walk(value, line)


def statement_of(kind: str, value: dict[str, Any], line: int) -> Iterator[Statement]:
    """A statement whose result goes somewhere known is yielded with that; everything below it follows."""
    field_name = {
        "PLpgSQL_stmt_execsql": "sqlstmt",
        "PLpgSQL_stmt_fors": "query",
        "PLpgSQL_stmt_return_query": "query",
    }.get(kind)
    if field_name is None or field_name not in value:
        if kind == "PLpgSQL_stmt_dynexecute" or (kind == "PLpgSQL_stmt_dynfors"):
            record = into(value)[1]
            if record:
                yield Statement(line, "", record=record)
        yield from walk(value, line)
        return
    columns, record = into(value)
    query = as_query(value[field_name]["PLpgSQL_expr"])
    yield Statement(line, query, columns, record, kind == "PLpgSQL_stmt_return_query")
    yield from walk({key: child for key, child in value.items() if key != field_name}, line)


def into(value: dict[str, Any]) -> tuple[int | None, str | None]:
    """How many variables, or which record, a statement fills."""
    target = value.get("target") or value.get("var") or {}
    if "PLpgSQL_row" in target:
        return len(target["PLpgSQL_row"]["fields"]), None
    if "PLpgSQL_rec" in target:
        return None, target["PLpgSQL_rec"]["refname"]
    return None, None


def as_query(expression: dict[str, Any]) -> str:
    query: str = expression["query"]
    mode: int = expression.get("parseMode", 0)
    if mode == 0:
        return query
    if mode >= 3:  # an assignment: the target is checked by the parser
        query = re.split(r":?=", query, maxsplit=1)[1]
    return f"SELECT {query}"


def check(function: Function, catalogue: Catalogue) -> tuple[list[str], int]:
    """The findings in one function, and how many statements could not be checked."""
    try:
        waiting = statements(function, catalogue)
    except (pglast.parser.ParseError, KeyError) as error:
        return [f"{function.name}: cannot be taken apart: {error}"], 0
    findings: list[str] = []
    unknowable = {statement.record for statement in waiting if not statement.text}
    waiting = [statement for statement in waiting if statement.text]
    # A record may be used before the line that fills it (in a loop), so go round until nothing more becomes
    # known.
    while waiting:
        left: list[Statement] = []
        for statement in waiting:
            try:
                result, problems = examine(statement, function, catalogue)
            except UnresolvedError:
                left.append(statement)
                continue
            findings += [
                f"{function.name}, line {statement.line} of its body: {problem}" for problem in problems
            ]
            record = statement.record
            if record in function.records and record not in unknowable and result is not None:
                known = function.records[record]
                if known is not None and known != result:
                    unknowable.add(record)  # filled with different shapes: the fields cannot be told
                function.records[record] = None if record in unknowable else result
        if len(left) == len(waiting):
            return findings, len(left)
        waiting = left
    return findings, 0


def examine(
    statement: Statement, function: Function, catalogue: Catalogue
) -> tuple[Columns | None, list[str]]:
    """What a statement returns (None when it is wrong) and what is wrong with it. Errors: UnresolvedError."""
    query = statement.text.encode()
    visitor = References(query)
    visitor(pglast.parse_sql(statement.text))
    references = visitor.variables()
    chosen = {r for r in references if is_variable(r, function, certain=True)}
    doubtful = {r for r in references if is_variable(r, function, certain=False)} - chosen
    while True:
        outcome = catalogue.prepare(substitute(query, chosen, function, catalogue), function.search_path)
        if not (outcome and isinstance(outcome[0], str)):
            break
        sqlstate, message, offset = outcome
        candidate = {r for r in doubtful if shifted(r, query, chosen, function, catalogue) == offset}
        if sqlstate not in (UNDEFINED_COLUMN, UNDEFINED_TABLE) or not candidate:
            return None, [f"{message} [{sqlstate}] in: {shorten(statement.text)}"]
        chosen |= candidate
        doubtful -= candidate
    columns: Columns = outcome  # pyright: ignore[reportAssignmentType]
    problems: list[str] = []
    if not function.column_wins:
        names = {r.parts[0] for r in doubtful} | {
            n for n in visitor.conflict_targets if n in function.variables
        }
        problems += [
            f'"{name}" is a column and a variable in: {shorten(statement.text)}' for name in sorted(names)
        ]
    if statement.columns is not None and columns and len(columns) != statement.columns:
        problems.append(f"{len(columns)} columns go INTO {statement.columns} in: {shorten(statement.text)}")
    if statement.returned and function.result_types:
        given, wanted = [oid for _, oid in columns], function.result_types
        if given != wanted and not (len(wanted) == 1 and len(given) > 1):
            types = [", ".join(map(catalogue.type_by_oid, oids)) for oids in (given, wanted)]
            problems.append(f"RETURN QUERY gives ({types[0]}) and the function returns ({types[1]})")
    return columns, problems


def is_variable(reference: Reference, function: Function, *, certain: bool) -> bool:
    """Whether a name is surely a variable, by its prefix or qualification, or may be one (certain=False)."""
    first, rest = reference.parts[0], reference.parts[1:]
    if first == function.name and len(rest) == 1 and rest[0] in function.variables:
        return True
    if first in function.records:
        return not certain or bool(PREFIXED.match(first)) or bool(rest)
    if first not in function.variables:
        return False
    return not certain or bool(PREFIXED.match(first))


def substitute(query: bytes, chosen: set[Reference], function: Function, catalogue: Catalogue) -> bytes:
    for reference in sorted(chosen, key=lambda r: r.start, reverse=True):
        value = placeholder(reference, function, catalogue).encode()
        query = query[: reference.start] + value + query[reference.end :]
    return query


def shifted(
    reference: Reference, query: bytes, chosen: set[Reference], function: Function, catalogue: Catalogue
) -> int:
    """Where a name stands once the variables before it have been replaced."""
    before = {r for r in chosen if r.start < reference.start}
    return reference.start + len(substitute(query, before, function, catalogue)) - len(query)


def placeholder(reference: Reference, function: Function, catalogue: Catalogue) -> str:
    parts = reference.parts[1:] if reference.parts[0] == function.name else reference.parts
    name, rest = parts[0], parts[1:]
    if name.startswith("__Case__"):  # stands for the value of a CASE statement; its type is known at run time
        return "NULL"
    if name in function.variables:
        typed = f"(NULL::{function.variables[name]})"
        return ".".join([typed, *rest])
    columns = function.records[name]
    if columns is None or len(rest) != 1 or rest[0] == "*":
        raise UnresolvedError
    types = dict(columns)
    if rest[0] not in types:
        return f"{name}.{rest[0]}"  # the server will say that there is no such thing
    return f"(NULL::{catalogue.type_by_oid(types[rest[0]])})"


def shorten(text: str) -> str:
    return re.sub(r"\s+", " ", text)[:160]


def main() -> int:
    from hermes_pgsql.migrate import migrate

    with throwaway_server() as server:
        run_sql(server.dsn(), f"CREATE DATABASE {DATABASE}")
        run_sql(server.dsn(), f"ALTER DATABASE {DATABASE} SET plpgsql.extra_errors = 'all'")
        migrate(server.dsn(DATABASE))
        with psycopg.connect(server.dsn(DATABASE), autocommit=True) as connection:
            connection.execute("SELECT set_config('search_path', 'pg_catalog', false)")
            catalogue = Catalogue(connection)
            functions = catalogue.functions()
            findings: list[str] = []
            unchecked = 0
            for function in functions:
                found, skipped = check(function, catalogue)
                findings += found
                unchecked += skipped
    for finding in findings:
        print(finding)
    print(
        f"{len(functions)} PL/pgSQL functions, {len(findings)} findings, {unchecked} statements not checkable"
    )
    return 1 if findings or not functions else 0


if __name__ == "__main__":
    sys.exit(main())
