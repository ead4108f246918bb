"""Build the HNSW indexes that large tables of vectors need.

``memvec.vector_indexes()`` decides what is missing and with which command; this runs the commands, because
CREATE INDEX CONCURRENTLY cannot run inside a function. Readers and writers go on meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, LiteralString, cast

import psycopg
from psycopg.rows import class_row

from hermes_pgsql import whereabouts
from hermes_pgsql.errors import translate

__all__ = ["IndexState", "build_indexes", "index_states"]

Progress = Callable[["IndexState", float], None]

_POLL_SECONDS: Final = 0.5
_STATES: Final = "SELECT table_name, index_name, rows, state, command FROM memvec.vector_indexes()"
_PROGRESS: Final = """
    SELECT CASE WHEN p.blocks_total > 0 THEN p.blocks_done::float8 / p.blocks_total ELSE 0 END
      FROM pg_stat_progress_create_index AS p
     WHERE p.pid = %s"""


@dataclass(frozen=True)
class IndexState:
    """A table of vectors and its index: valid, missing, small, invalid or too wide."""

    table_name: str
    index_name: str
    rows: int
    state: str
    command: str | None


def index_states(admin_dsn: str) -> list[IndexState]:
    """What ``memvec.vector_indexes()`` says. Raises the errors of ``hermes_pgsql.errors``."""
    whereabouts.parse(admin_dsn)
    try:
        with psycopg.connect(admin_dsn, autocommit=True) as connection:
            return _states(connection)
    except psycopg.Error as error:
        raise whereabouts.placed(translate(error), admin_dsn) from error


def build_indexes(admin_dsn: str, progress: Progress | None = None) -> list[IndexState]:
    """Drop what a failed build left behind, make what is missing, and return the tables that were mended.

    ``progress`` is called now and then with the table and the share done, from 0 to 1.
    """
    whereabouts.parse(admin_dsn)
    try:
        with psycopg.connect(admin_dsn, autocommit=True) as connection:
            connection.execute("SELECT set_config('role', 'memvec_owner', false)")
            connection.execute("SET statement_timeout = 0")
            for state in _states(connection):
                if state.state == "invalid":
                    _run(connection, state)
            mended = [state for state in _states(connection) if state.state == "missing"]
            for state in mended:
                with _Watched(admin_dsn, connection, state, progress):
                    _run(connection, state)
            return mended
    except psycopg.Error as error:
        raise whereabouts.placed(translate(error), admin_dsn) from error


def _states(connection: psycopg.Connection[tuple[object, ...]]) -> list[IndexState]:
    with connection.cursor(row_factory=class_row(IndexState)) as cursor:
        return cursor.execute(_STATES).fetchall()


def _run(connection: psycopg.Connection[tuple[object, ...]], state: IndexState) -> None:
    assert state.command is not None  # noqa: S101 (missing and invalid indexes have one)
    connection.execute(cast("LiteralString", state.command))


class _Watched:
    """While the block runs, report how far its CREATE INDEX has come, from a connection of its own."""

    def __init__(
        self,
        admin_dsn: str,
        connection: psycopg.Connection[tuple[object, ...]],
        state: IndexState,
        progress: Progress | None,
    ) -> None:
        self._dsn = admin_dsn
        self._pid = connection.info.backend_pid
        self._state = state
        self._progress = progress
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="hermes-pgsql-index", daemon=True)

    def __enter__(self) -> None:
        if self._progress is not None:
            self._progress(self._state, 0.0)
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._progress is not None:
            self._thread.join(timeout=5)
            self._progress(self._state, 1.0)

    def _watch(self) -> None:
        assert self._progress is not None  # noqa: S101 (the thread is not started without one)
        try:
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                while not self._done.wait(_POLL_SECONDS):
                    row = connection.execute(_PROGRESS, (self._pid,)).fetchone()
                    if row is not None:
                        self._progress(self._state, float(row[0]))
        except psycopg.Error:
            return  # the build goes on unseen
