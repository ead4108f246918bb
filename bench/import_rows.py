"""How fast the tables of hermes-memory-pgvector are taken over, vectors included.

Its own schema (of the real package; with `--no-peer` tables like them) is filled with entries of 768
dimensions, a twentieth of them under the raw keys of chats. Measured: the import until words and exact vector
recall work, the same import again (everything is there), and the vector index, which is made apart.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import psycopg
from pgvector import Vector
from pgvector.psycopg import register_vector
from psycopg.conninfo import make_conninfo

from bench._corpus import Corpus, without_indexes
from bench._peer import Peer, peer_of
from bench._report import Report, options_of
from bench._server import ROOMY, fresh_server
from hermes_pgsql.client import Memvec
from hermes_pgsql.embedded import EmbeddedServer
from hermes_pgsql.importing import Report as Imports
from hermes_pgsql.importing import import_all
from hermes_pgsql.indexing import build_indexes
from hermes_pgsql.older_plugin import open_older_tables

__all__ = ["main"]

Result = TypeVar("Result")

THEMES, CONTACTS, CHAT_SHARE = 40, 500, 0.05
PAGE = 2000
BAR_FROM = 50_000
TABLE = """
    CREATE SCHEMA older;
    CREATE TABLE older.memory_entries (
        id bigserial PRIMARY KEY, agent_identity text NOT NULL, target text NOT NULL, content text NOT NULL,
        embedding vector(768), created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(), metadata jsonb NOT NULL DEFAULT '{}')"""


def main(arguments: Sequence[str] = ()) -> None:
    parser = options_of("import_rows", __doc__)
    parser.number("--rows", 100_000, "notes to import; bars from 50000")
    parser.add_argument(
        "--one-theme",
        action="store_true",
        help="all rows belong to one theme, none to chats (default: 40 themes and chats)",
    )
    options = parser.parse_args(arguments)
    report = Report("import_rows", "Import from hermes-memory-pgvector", options)
    with fresh_server(ROOMY) as server, peer_of(server, wanted=not options.no_peer) as peer:
        corpus = Corpus(server, peer, _one_theme if options.one_theme else _theme_of)
        source = _fill(server, peer, corpus, options.rows)
        _measure(report, server, source, corpus.space, options.rows)
    report.close()


def _one_theme(_row: int, _number: float) -> str:
    return "one"


def _theme_of(row: int, number: float) -> str:
    if number < CHAT_SHARE:
        return f"agent:main:whatsapp:dm:1555{random.Random(row).randrange(CONTACTS):07}"
    return f"theme-{row % THEMES}"


def _fill(server: EmbeddedServer, peer: Peer | None, corpus: Corpus, rows: int) -> str:
    """Fill the older tables; the DSN of their database."""
    dsn = server.admin_dsn if peer is None else peer.dsn
    with psycopg.connect(dsn, autocommit=True) as admin:
        table = "memory_entries"
        if peer is None:
            admin.execute(TABLE)
            table = "older.memory_entries"
        register_vector(admin)
        with without_indexes(admin, table):
            for first in range(0, rows, PAGE):
                count = min(PAGE, rows - first)
                _copy(admin, table, corpus, first, count)
        admin.execute(f"VACUUM (ANALYZE) {table}".encode())
        admin.execute("CHECKPOINT")
    return make_conninfo(dsn)


def _copy(
    admin: psycopg.Connection[tuple[object, ...]], table: str, corpus: Corpus, first: int, count: int
) -> None:
    themes, vectors = corpus.themes(first, count), corpus.vectors(first, count)
    command = f"COPY {table} (agent_identity, target, content, embedding) FROM STDIN (FORMAT binary)"
    with admin.cursor() as cursor, cursor.copy(command.encode()) as copy:
        copy.set_types(["text", "text", "text", "vector"])
        for row, theme, vector in zip(itertools.count(first), themes, vectors, strict=False):
            copy.write_row((theme, "memory", f"{corpus.text(row)} {row}", Vector(vector)))


def _measure(report: Report, server: EmbeddedServer, source: str, space: int, rows: int) -> None:
    memvec = Memvec(server.admin_dsn)
    table = report.table("", ["step", "seconds", "rows a second", "added", "vectors"])

    def imported() -> Imports:
        done = Imports(dry_run=False)
        with open_older_tables(source) as older:
            import_all(memvec, older.rows(space), done, origin="hermes-memory-pgvector", mask=True)
        memvec.housekeeping()
        return done

    figures: list[float] = []
    for step in ("import", "import again"):
        seconds, done = _timed(imported)
        counts = done.of("entry")
        table.row(step, seconds, rows / seconds, counts.added, counts.vectors)
        figures.append(rows / seconds)
        assert counts.read == rows
        assert (counts.added, counts.vectors) == ((rows, rows) if step == "import" else (0, 0))
    seconds, made = _timed(lambda: build_indexes(server.admin_dsn))
    table.row("index", seconds, rows / seconds if made else None, None, None)
    if rows >= BAR_FROM:
        report.bar("import, rows a second", figures[0], least=2000)
        report.bar("index, seconds", seconds, most=90)


def _timed(action: Callable[[], Result]) -> tuple[float, Result]:
    began = time.perf_counter()
    result = action()
    return time.perf_counter() - began, result


if __name__ == "__main__":
    main()
