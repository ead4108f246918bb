"""One small connection pool per connection string and process, shared by everything in the process.

Hosts make a provider per request and never shut one down, so nobody owns a connection: callers say
``with connection(dsn) as conn`` and the pool of that DSN is found or made. It keeps no connection when idle,
checks one before handing it out (never longer than the caller waits), fails at once with the reason when the
database cannot be reached, is made anew in a forked child (which leaves the parent's sockets alone), and asks
nothing of a session that a transaction pooler such as PgBouncer would not keep.
"""

from __future__ import annotations

import atexit
import logging
import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final, cast

import psycopg
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg.types import TypeInfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from hermes_pgsql import whereabouts
from hermes_pgsql.errors import DatabaseUnavailable, HermesPgsqlError, translate

__all__ = ["close_all", "connection", "get_pool", "hang_up"]

MAX_SIZE: Final = 4
MAX_IDLE: Final = 30.0
MAX_LIFETIME: Final = 300.0
CONNECT_TIMEOUT: Final = 5
# How long a caller waits for a connection unless it says so: a little more than one attempt to connect.
WAIT: Final = 6.0
_SLICE: Final = 0.1
_POOL_NAME: Final = "hermes-pgsql"

_Connection = psycopg.Connection[tuple[Any, ...]]
_Pool = ConnectionPool[_Connection]

# Defaults for what the DSN does not say. Keepalives and the user timeout end a wait for a peer that vanished.
_DEFAULTS: Final[dict[str, str | int]] = {
    "application_name": _POOL_NAME,
    "connect_timeout": CONNECT_TIMEOUT,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


@dataclass
class _Shared:
    """A pool, how many of its connections are lent, and why its last attempt to connect failed, if it did."""

    failure: psycopg.Error | None = None
    failed_at: float = 0.0
    lent: int = 0
    pool: _Pool = field(init=False)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, failure: psycopg.Error | None) -> None:
        self.failure, self.failed_at = failure, monotonic()

    def count(self, change: int) -> None:
        with self.lock:
            self.lent += change

    def failure_since(self, moment: float) -> psycopg.Error | None:
        return self.failure if self.failed_at >= moment else None


_caller = threading.local()  # `deadline`: until when the thread waits for a connection
_lock = threading.Lock()
_pools: dict[str, _Shared] = {}
_pid = os.getpid()
# Pools inherited over a fork. Kept for good: dropping them would run destructors meant for the parent.
_inherited: list[_Shared] = []


def get_pool(dsn: str) -> _Pool:
    """This process's pool for ``dsn``, made at the first call. Connects to nothing by itself.

    Raises ``ConfigError`` when the connection string cannot be read.
    """
    return _shared(dsn).pool


@contextmanager
def connection(dsn: str, wait: float = WAIT) -> Generator[_Connection]:
    """A checked connection in autocommit mode, returned to the pool of ``dsn`` at the end.

    ``wait`` is the longest wait for one, in seconds. Raises ``DatabaseUnavailable`` with the reason once
    an attempt has failed and nobody is connected, and ``ConfigError`` for a connection string that cannot be
    read. Errors of the statements run are the driver's own.
    """
    shared = _shared(dsn)
    try:
        conn = _checkout(shared, wait)
    except HermesPgsqlError as error:
        raise whereabouts.placed(error, dsn) from None
    shared.count(+1)
    try:
        yield conn
    finally:
        shared.count(-1)
        shared.pool.putconn(conn)


def hang_up(conn: psycopg.Connection[Any]) -> None:
    """Break ``conn`` from this side: whoever waits for its server gets an error now. For any thread.

    A server that is frozen, or whose disk is, keeps the connection alive and answers nothing, not even a
    request to cancel.
    """
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(conn.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


def close_all(timeout: float = 2.0) -> None:
    """Close every pool of this process, each within ``timeout`` seconds; later calls make new ones."""
    with _lock:
        _leave_parents_pools()
        closing = list(_pools.values())
        _pools.clear()
    for shared in closing:
        shared.pool.close(timeout=timeout)


def _shared(dsn: str) -> _Shared:
    with _lock:
        _leave_parents_pools()
        shared = _pools.get(dsn)
        if shared is None or shared.pool.closed:
            shared = _pools[dsn] = _make(dsn)
        return shared


def _checkout(shared: _Shared, wait: float) -> _Connection:
    started = monotonic()
    deadline = started + max(wait, 0.0)
    _caller.deadline = deadline
    while True:
        remaining = deadline - monotonic()
        try:
            # In slices, because the pool itself would wait to the end even when nobody can connect.
            return shared.pool.getconn(timeout=max(min(_SLICE, remaining), 0.001))
        except (PoolTimeout, TooManyRequests):
            failure = shared.failure_since(started)
            if failure is not None and shared.lent == 0:
                raise translate(failure) from None
            if remaining <= _SLICE:
                raise _too_long(shared, wait) from None
        except PoolClosed:
            raise DatabaseUnavailable(
                "The connections to the database were closed.", hint="Try again."
            ) from None
        except psycopg.Error as error:
            raise translate(error) from None


def _check(conn: _Connection) -> None:
    """See that the server of an idle connection still answers, before the caller's wait is over."""
    patience: float = getattr(_caller, "deadline", monotonic() + WAIT) - monotonic()
    timer = threading.Timer(max(patience, _SLICE), hang_up, (conn,))
    timer.daemon = True
    timer.start()
    try:
        ConnectionPool.check_connection(conn)
    finally:
        timer.cancel()


def _too_long(shared: _Shared, wait: float) -> DatabaseUnavailable:
    waited = f"{wait:.1f}".removesuffix(".0")
    if shared.lent:
        return DatabaseUnavailable(
            f"All connections to the database stayed in use for {waited} seconds.", hint="Try again."
        )
    return DatabaseUnavailable(
        f"The database cannot be reached: no answer within {waited} seconds.",
        hint="Check that the database runs and that the dsn is right.",
    )


def _make(dsn: str) -> _Shared:
    given = whereabouts.parse(dsn)
    shared = _Shared()

    class Reporting(psycopg.Connection[tuple[Any, ...]]):
        """Connects as usual and leaves word of the outcome."""

        @classmethod
        def connect(cls, conninfo: str = "", **kwargs: Any) -> Any:
            try:
                conn = cast("_Connection", super().connect(conninfo, **kwargs))
            except psycopg.Error as error:
                shared.note(error)
                raise
            shared.note(None)
            return conn

    shared.pool = ConnectionPool(
        dsn,
        connection_class=cast("type[_Connection]", Reporting),
        kwargs={
            **{key: value for key, value in _DEFAULTS.items() if key not in given},
            # Whatever the DSN says: no other encoding can hold all that people write.
            "client_encoding": "UTF8",
            "autocommit": True,
            "prepare_threshold": None,
        },
        min_size=0,
        max_size=MAX_SIZE,
        max_idle=MAX_IDLE,
        max_lifetime=MAX_LIFETIME,
        # Give up after one failed attempt and its repetition; the next caller starts a new one.
        reconnect_timeout=0.5,
        num_workers=2,
        check=_check,
        configure=_register_vectors,
        name=_POOL_NAME,
        open=True,
    )
    return shared


# By schema, not by search_path: the extension may live anywhere, and sessions keep their own path.
_FIND_HALFVEC: Final = """
SELECT pg_catalog.format('%I.%I', n.nspname, t.typname), t.oid, t.typarray
  FROM pg_catalog.pg_extension AS e
  JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace
  JOIN pg_catalog.pg_type AS t ON t.typnamespace = e.extnamespace AND t.typname = 'halfvec'
 WHERE e.extname = 'vector'
"""


def _register_vectors(conn: _Connection) -> None:
    row = cast("tuple[str, int, int] | None", conn.execute(_FIND_HALFVEC).fetchone())
    if row is None:
        # Not an error here: words work without it, and whoever sends a vector learns what is missing.
        return
    name, oid, array_oid = row
    register_halfvec_info(conn, TypeInfo(name, oid, array_oid))


def _leave_parents_pools() -> None:
    """In a forked child, forget the parent's pools without touching their sockets."""
    global _pid
    if _pid != os.getpid():
        _inherited.extend(_pools.values())
        _pools.clear()
        _pid = os.getpid()


def _after_fork() -> None:
    global _lock
    # Another thread of the parent may have held it at the fork; nobody here would ever release it.
    _lock = threading.Lock()
    _leave_parents_pools()


class _OwnReports(logging.Filter):
    """Keeps the pool library from repeating in the log what the caller gets as an exception."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.WARNING or repr(_POOL_NAME) not in record.getMessage()


logging.getLogger("psycopg.pool").addFilter(_OwnReports())
os.register_at_fork(after_in_child=_after_fork)
atexit.register(close_all, 1.0)
