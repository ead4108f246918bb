"""The tables of hermes-memory-pgvector 0.3 to 1.0, read as rows for ``memvec.import_rows``.

That plugin keeps ``memory_entries`` and ``conversations`` (since 0.4 also ``memory_agents``,
``memory_agent_edges`` and a column for the parent session) in whatever schema its search path named, vectors
in a column of fixed width, and no word about the model that made them. Everything is read in one read-only
snapshot, through server-side cursors, while the older plugin may go on writing.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

import psycopg
from pgvector import HalfVector
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg import sql
from psycopg.types import TypeInfo

from hermes_pgsql import whereabouts
from hermes_pgsql.errors import ConfigError, translate
from hermes_pgsql.importing import Incoming
from hermes_pgsql.values import half_vector

__all__ = ["OlderTables", "open_older_tables"]

#: Kind of row -> table, in the order in which they are read.
TABLES: Final = {
    "agent": "memory_agents",
    "entry": "memory_entries",
    "turn": "conversations",
    "edge": "memory_agent_edges",
}
# What the plugin noted beside a row: the chat's own key, and texts that had been replaced.
_NOT_KEPT: Final = ("raw_identity", "old_text", "replaces", "previous_content")
_PAGE: Final = 500

_FIND: Final = """
    SELECT n.nspname
      FROM pg_catalog.pg_class AS c
      JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.relname = 'memory_entries' AND c.relkind IN ('r', 'p')
       AND (%(schema)s::text IS NULL OR n.nspname = %(schema)s)
       AND EXISTS (SELECT FROM pg_catalog.pg_attribute AS a
                    WHERE a.attrelid = c.oid AND a.attname = 'agent_identity' AND NOT a.attisdropped)
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute AS a
                        WHERE a.attrelid = c.oid AND a.attname = 'content_hash' AND NOT a.attisdropped)
     ORDER BY n.nspname"""
_COLUMNS: Final = """
    SELECT c.relname, a.attname, n.nspname, t.typname, a.atttypmod
      FROM pg_catalog.pg_class AS c
      JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
      JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
     WHERE c.relnamespace = %(schema)s::text::regnamespace AND c.relname = ANY (%(tables)s::text[])"""


@dataclass(frozen=True, slots=True)
class _VectorColumn:
    type_schema: str
    type_name: str
    dim: int


class OlderTables:
    """The older plugin's tables in one database, as of one moment."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str | None) -> None:
        self._connection = connection
        self.schema: str = _schema(connection, schema)
        self._columns: dict[str, set[str]] = {}
        self._vectors: dict[str, _VectorColumn] = {}
        for table, column, type_schema, type_name, modifier in connection.execute(
            _COLUMNS, {"schema": self.schema, "tables": list(TABLES.values())}
        ):
            self._columns.setdefault(table, set()).add(column)
            if column == "embedding" and type_name in ("vector", "halfvec"):
                self._vectors[table] = _VectorColumn(type_schema, type_name, modifier)
        self._half = self._register_half_vectors()
        row = connection.execute("SHOW server_encoding").fetchone()
        if row is not None and row[0] == "SQL_ASCII":
            # Bytes that nobody ever checked: they come as they are, and what is not UTF-8 is replaced here.
            connection.execute("SET LOCAL client_encoding TO 'SQL_ASCII'")

    @property
    def dim(self) -> int | None:
        """The width of the vectors, or None when there are none or no one width."""
        widths = {column.dim for column in self._vectors.values()}
        return widths.pop() if len(widths) == 1 and min(widths) > 0 else None

    def counts(self) -> dict[str, int]:
        """How many rows each kind has; a table that this version did not have yet has none."""
        return {kind: self._count(table, "true") for kind, table in TABLES.items() if table in self._columns}

    def vectors(self) -> int:
        """How many rows have a vector."""
        return sum(self._count(table, "embedding IS NOT NULL") for table in self._vectors)

    def rows(self, space: int | None) -> Iterator[Incoming]:
        """Every row, themes first; with its vector, for ``space``, unless that is None."""
        for kind, table in TABLES.items():
            if table in self._columns:
                yield from self._rows(kind, table, space)

    def _rows(self, kind: str, table: str, space: int | None) -> Iterator[Incoming]:
        names, make = _READERS[kind]
        columns = self._columns[table]
        chosen = [_column(name) if name in columns else sql.SQL("NULL::text") for name in names]
        with_vector = space is not None and table in self._vectors
        chosen.append(self._vector(table) if with_vector else sql.SQL("NULL::text"))
        # A table that was copied by hand may have lost its key: where a row lies tells the order well enough.
        key = sql.SQL("id" if "id" in columns else "ctid")
        query = sql.SQL("SELECT {}::text, {} FROM {} ORDER BY {}").format(
            key, sql.SQL(", ").join(chosen), sql.Identifier(self.schema, table), key
        )
        with self._connection.cursor(f"older_{kind}", binary=with_vector and self._half) as cursor:
            cursor.itersize = _PAGE
            for values in cursor.execute(query):
                texts = [_text(value) for value in values[:-1]]
                row = make(dict(zip(names, texts[1:], strict=True)))
                vector = _usable(values[-1])
                yield Incoming(
                    f"{table} {texts[0]}",
                    {"kind": kind, **row},
                    {} if vector is None or space is None else {space: vector},
                )

    def _vector(self, table: str) -> sql.Composable:
        column = self._vectors[table]
        if not self._half:
            return sql.SQL("embedding::text")
        if column.type_name == "halfvec":
            return sql.SQL("embedding")
        # No number of a vector is larger than the vector is long, and half precision ends at 65504.
        return sql.SQL("CASE WHEN {}(embedding) <= 65504 THEN embedding::{} END").format(
            sql.Identifier(column.type_schema, "vector_norm"), sql.Identifier(column.type_schema, "halfvec")
        )

    def _register_half_vectors(self) -> bool:
        """Whether the server knows half precision (pgvector 0.7 and newer), and vectors are read as that."""
        for column in self._vectors.values():
            name = sql.Identifier(column.type_schema, "halfvec").as_string(self._connection)
            info = TypeInfo.fetch(self._connection, name)
            if info is None:
                return False
            register_halfvec_info(self._connection, info)
        return bool(self._vectors)

    def _count(self, table: str, condition: str) -> int:
        query = sql.SQL("SELECT count(*) FROM {} WHERE {}").format(
            sql.Identifier(self.schema, table),
            sql.SQL(condition),  # pyright: ignore[reportArgumentType] (one of two literals above)
        )
        row = self._connection.execute(query).fetchone()
        return 0 if row is None else int(row[0])


@contextmanager
def open_older_tables(dsn: str, schema: str | None = None) -> Generator[OlderTables]:
    """The tables in the database of ``dsn``. Raises ``ConfigError`` when none or several are found."""
    whereabouts.parse(dsn)
    try:
        with (
            psycopg.connect(
                dsn, autocommit=True, application_name="hermes-pgsql import", client_encoding="UTF8"
            ) as connection,
            connection.transaction(),
        ):
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            connection.execute("SET LOCAL statement_timeout = 0")
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            connection.execute("SET LOCAL DateStyle = 'ISO'")
            connection.execute("SET LOCAL TimeZone = 'UTC'")
            yield OlderTables(connection, schema)
    except psycopg.Error as error:
        raise whereabouts.placed(translate(error), dsn) from None


def _schema(connection: psycopg.Connection[Any], wanted: str | None) -> str:
    found = [row[0] for row in connection.execute(_FIND, {"schema": wanted})]
    if not found:
        where = f" in schema {wanted}" if wanted else ""
        raise ConfigError(
            f"There are no tables of hermes-memory-pgvector{where} in that database.",
            hint="Give --from the connection string that stood in plugins.pgvector.dsn (--schema names"
            " another schema).",
        )
    if len(found) > 1:
        raise ConfigError(
            f"Tables of hermes-memory-pgvector are in several schemas: {', '.join(found)}.",
            hint="Name one with --schema.",
        )
    return found[0]


# From their columns to our rows ------------------------------------------------------------


def _agent(row: Mapping[str, str | None]) -> dict[str, object]:
    return {
        "identity": row["agent_identity"] or "default",
        "first_seen": row["first_seen"],
        "last_seen": row["last_seen"],
        "attrs": _kept(_object(row["attrs"])),
    }


def _entry(row: Mapping[str, str | None]) -> dict[str, object]:
    metadata = _object(row["metadata"])
    return {
        "identity": row["agent_identity"] or "default",
        "raw_identity": _raw_identity(metadata),
        "target": row["target"],
        "content": row["content"] or "",
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "metadata": _kept(metadata),
    }


def _turn(row: Mapping[str, str | None]) -> dict[str, object]:
    metadata = _object(row["metadata"])
    return {
        "identity": row["agent_identity"] or "default",
        "raw_identity": _raw_identity(metadata),
        "session_id": row["session_id"],
        "parent_session_id": row["parent_session_id"],
        "role": row["role"],
        "content": row["content"] or "",
        "ts": row["ts"],
        "metadata": _kept(metadata),
    }


def _edge(row: Mapping[str, str | None]) -> dict[str, object]:
    attrs = _kept(_object(row["attrs"]))
    if row["kind"] not in (None, "delegated"):
        attrs["kind"] = row["kind"]
    return {
        "identity": row["parent_identity"] or "default",
        "session_id": row["parent_session_id"],
        "child_identity": row["child_identity"],
        "child_session_id": row["child_session_id"],
        "created_at": row["ts"],
        "attrs": attrs,
    }


_READERS: Final = {
    "agent": (("agent_identity", "first_seen", "last_seen", "attrs"), _agent),
    "entry": (("agent_identity", "target", "content", "created_at", "updated_at", "metadata"), _entry),
    "turn": (
        ("agent_identity", "session_id", "parent_session_id", "role", "content", "ts", "metadata"),
        _turn,
    ),
    "edge": (
        (
            "parent_identity",
            "child_identity",
            "parent_session_id",
            "child_session_id",
            "kind",
            "ts",
            "attrs",
        ),
        _edge,
    ),
}


def _column(name: str) -> sql.Composable:
    return sql.SQL("{}::text").format(sql.Identifier(name))


def _text(value: object) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else cast("str | None", value)


def _object(text: str | None) -> dict[str, object]:
    if not text or text == "{}":
        return {}
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):  # of a column that never checked
        value = text
    return cast("dict[str, object]", value) if isinstance(value, dict) else {"value": value}


def _kept(metadata: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in metadata.items() if key not in _NOT_KEPT}


def _raw_identity(metadata: Mapping[str, object]) -> str | None:
    raw = metadata.get("raw_identity")
    return raw if isinstance(raw, str) else None


def _usable(value: object) -> HalfVector | None:
    if value is None or isinstance(value, HalfVector):
        return value
    text = _text(value) or ""
    return half_vector([float(number) for number in text.strip("[]").split(",")])
