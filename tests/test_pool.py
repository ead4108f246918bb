"""Pools: shared, empty when idle, self-healing, fork-safe, quick to say why, and modest about sessions."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import psycopg
import pytest
from conftest import Database
from pgvector import HalfVector
from psycopg.conninfo import make_conninfo

from hermes_pgsql import pool
from hermes_pgsql.client import Memvec
from hermes_pgsql.errors import ConfigError, DatabaseUnavailable

SECRET = "s3cret"


@pytest.fixture(autouse=True)
def fresh_pools() -> Iterator[None]:
    yield
    pool.close_all()


def backends(database: Database) -> list[int]:
    with database.admin() as connection:
        ours = "datname = %s AND application_name = 'hermes-pgsql'"
        query = f"SELECT pid FROM pg_stat_activity WHERE {ours}"
        return [pid for (pid,) in connection.execute(query, [database.name])]


def terminate_backends(database: Database) -> None:
    with database.admin() as connection:
        for pid in backends(database):
            connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def answer(dsn: str) -> int:
    with pool.connection(dsn) as connection:
        row = connection.execute("SELECT 42").fetchone()
    assert row is not None
    return row[0]


def wait_until(condition: Callable[[], bool], seconds: float = 90) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_one_pool_per_dsn_that_connects_only_when_used(empty_database: Database) -> None:
    dsn = empty_database.admin_dsn
    shared = pool.get_pool(dsn)
    assert pool.get_pool(dsn) is shared
    assert pool.get_pool(make_conninfo(dsn, options="-c geqo=off")) is not shared
    assert backends(empty_database) == []
    assert answer(dsn) == 42
    assert len(backends(empty_database)) == 1


def test_at_most_four_connections_and_none_kept_by_plan(empty_database: Database) -> None:
    shared = pool.get_pool(empty_database.admin_dsn)
    assert (shared.min_size, shared.max_size, shared.max_idle, shared.max_lifetime) == (0, 4, 30.0, 300.0)
    threads = [threading.Thread(target=answer, args=(empty_database.admin_dsn,)) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= len(backends(empty_database)) <= 4


def test_idle_connections_are_given_back(empty_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MAX_IDLE", 0.2)
    answer(empty_database.admin_dsn)
    assert wait_until(lambda: backends(empty_database) == [])
    assert answer(empty_database.admin_dsn) == 42


def new_pool_threads(before: set[threading.Thread]) -> list[str]:
    """Workers and watches of pools that were not there before; drains of other tests do not count."""
    new = [thread for thread in threading.enumerate() if thread not in before]
    return [thread.name for thread in new if isinstance(thread, threading.Timer) or "pool" in thread.name]


def test_a_hundred_handles_cost_one_pool_and_are_not_kept_alive(empty_database: Database) -> None:
    answer(empty_database.admin_dsn)
    before = set(threading.enumerate())
    handles = [Memvec(empty_database.admin_dsn) for _ in range(100)]
    references = [weakref.ref(handle) for handle in handles]
    for _ in range(100):
        answer(empty_database.admin_dsn)
    # The watch over a check ends a moment after it.
    assert wait_until(lambda: not new_pool_threads(before))
    assert len(backends(empty_database)) == 1
    handles.clear()
    gc.collect()
    assert [reference() for reference in references] == [None] * 100


def test_a_transaction_pooler_would_notice_nothing(empty_database: Database) -> None:
    with pool.connection(empty_database.admin_dsn) as connection:
        for number in range(10):
            connection.execute("SELECT %s::int", [number])
        assert connection.autocommit
        assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        session_settings = "SELECT name FROM pg_settings WHERE source = 'session'"
        assert connection.execute(session_settings).fetchall() == []
        locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        assert connection.execute(locks).fetchone() == (0,)
        assert connection.execute("SHOW client_encoding").fetchone() == ("UTF8",)


def test_what_the_dsn_says_wins(empty_database: Database) -> None:
    dsn = make_conninfo(empty_database.admin_dsn, application_name="mine", client_encoding="LATIN1")
    with pool.connection(dsn) as connection:
        assert connection.execute("SHOW application_name").fetchone() == ("mine",)
        # But for the encoding: another one could not carry every text.
        assert connection.execute("SELECT %s", ["上海 🎉"]).fetchone() == ("上海 🎉",)


@pytest.mark.parametrize("schema", ["public", "Other Schema"])
def test_vectors_travel_binary_wherever_the_extension_is(empty_database: Database, schema: str) -> None:
    with empty_database.admin() as connection:
        connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        connection.execute(f'CREATE EXTENSION vector SCHEMA "{schema}"')
    vectors = [HalfVector([1.0, 2.5, -3.0]), HalfVector([0.0, 1.0, 0.0])]
    with pool.connection(empty_database.admin_dsn) as connection:
        one = connection.execute(
            "SELECT %s, pg_typeof(%s)::text", [vectors[0], vectors[0]], binary=True
        ).fetchone()
        assert one is not None
        assert one[0] == vectors[0]
        assert one[1].replace('"', "").endswith("halfvec")
        many = connection.execute("SELECT %b, pg_typeof(%b)::text", [vectors, vectors]).fetchone()
        assert many is not None
        assert many[0] == vectors
        assert many[1].endswith("halfvec[]")


def test_a_database_without_the_extension_can_still_be_asked(empty_database: Database) -> None:
    assert answer(empty_database.admin_dsn) == 42


def test_a_restarted_server_is_not_noticed(empty_database: Database) -> None:
    dsn = empty_database.admin_dsn
    for _ in range(3):
        assert answer(dsn) == 42
        terminate_backends(empty_database)
    assert answer(dsn) == 42


def test_all_idle_connections_may_be_dead(empty_database: Database) -> None:
    dsn = empty_database.admin_dsn
    with pool.connection(dsn), pool.connection(dsn), pool.connection(dsn), pool.connection(dsn):
        pass
    assert len(backends(empty_database)) == 4
    terminate_backends(empty_database)
    assert [answer(dsn) for _ in range(8)] == [42] * 8


def test_a_connection_lost_in_use_is_replaced(empty_database: Database) -> None:
    dsn = empty_database.admin_dsn
    with pool.connection(dsn) as connection:
        terminate_backends(empty_database)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    assert answer(dsn) == 42


@pytest.mark.parametrize(
    ("dsn", "reason"),
    [
        (f"host=127.0.0.1 port=9 user=someone password={SECRET} dbname=private", "refused"),
        (f"host=/no/such/folder user=someone password={SECRET} dbname=private", "socket"),
        (f"host=no-such-host.invalid user=someone password={SECRET} dbname=private", "host name"),
    ],
)
def test_an_unreachable_server_is_named_at_once_and_quietly(
    dsn: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked_for = 600.0
    with (
        caplog.at_level(logging.DEBUG),
        pytest.raises(DatabaseUnavailable) as caught,
        pool.connection(dsn, asked_for),
    ):
        pass
    assert reason in caught.value.message
    assert not any(word in str(caught.value) for word in (SECRET, "someone", "private"))
    assert SECRET not in caplog.text
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_server_that_never_answers_costs_the_wait_and_no_more() -> None:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        dsn = f"host=127.0.0.1 port={listener.getsockname()[1]} dbname=x user=x"
        with pytest.raises(DatabaseUnavailable) as caught, pool.connection(dsn, 0.5):
            pass
    assert "no answer within 0.5 seconds" in caught.value.message


def test_a_frozen_server_is_waited_for_no_longer_than_asked(empty_database: Database) -> None:
    # One whose disk hangs, say: the connection lives, and nothing is answered.
    dsn = empty_database.admin_dsn
    with pool.connection(dsn) as connection:
        pid = connection.info.backend_pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(DatabaseUnavailable), pool.connection(dsn, 0.3):
            pass
    finally:
        os.kill(pid, signal.SIGCONT)
    assert answer(dsn) == 42


def test_a_server_that_freezes_during_a_call_ends_it(empty_database: Database) -> None:
    dsn = empty_database.admin_dsn
    memvec = Memvec(dsn, timeout=4.0)
    with psycopg.connect(dsn) as other:
        with pool.connection(dsn) as connection:
            pid = connection.info.backend_pid
        other.execute("CREATE SCHEMA memvec")
        other.execute(
            "CREATE FUNCTION memvec.schema_version() RETURNS integer BEGIN ATOMIC"
            " SELECT 7 FROM pg_sleep(600); END"
        )
        other.commit()

        def freeze_the_call() -> None:
            running = "SELECT state = 'active' FROM pg_stat_activity WHERE pid = %s"
            with empty_database.admin() as watcher:
                assert wait_until(lambda: watcher.execute(running, [pid]).fetchone() == (True,))
            os.kill(pid, signal.SIGSTOP)

        freeze = threading.Thread(target=freeze_the_call)
        freeze.start()
        try:
            with pytest.raises(DatabaseUnavailable):
                memvec.schema_version()
        finally:
            freeze.join()
            os.kill(pid, signal.SIGCONT)
    assert answer(dsn) == 42


def test_a_database_that_comes_up_later_is_found_without_a_restart(empty_database: Database) -> None:
    name = f"{empty_database.name}_later"
    dsn = empty_database.server.dsn(name)
    with pytest.raises(DatabaseUnavailable), pool.connection(dsn):
        pass
    empty_database.server.create_database(name)
    try:
        assert answer(dsn) == 42
    finally:
        pool.close_all()
        empty_database.server.drop_database(name)


def test_waiting_for_a_busy_pool_ends(empty_database: Database) -> None:
    dsn = empty_database.admin_dsn
    with pool.connection(dsn), pool.connection(dsn), pool.connection(dsn), pool.connection(dsn):
        with pytest.raises(DatabaseUnavailable) as caught, pool.connection(dsn, 0.3):
            pass
        assert "in use" in caught.value.message
    assert answer(dsn) == 42


@pytest.mark.parametrize(
    "dsn",
    [
        f"password={SECRET} nonsense",
        f"postgresql://u:{SECRET}@[h/db",
        f"x={SECRET}",
        f"password={SECRET}\0",
        f"password={SECRET}\ud800",
    ],
)
def test_an_unreadable_dsn_is_not_repeated(dsn: str) -> None:
    with pytest.raises(ConfigError) as caught:
        pool.get_pool(dsn)
    assert SECRET not in str(caught.value)
    assert "postgresql://" in caught.value.hint


def test_a_bad_value_in_the_dsn_is_named_as_such() -> None:
    with (
        pytest.raises(DatabaseUnavailable) as caught,
        pool.connection(f"host=127.0.0.1 port=x{SECRET} user=u"),
    ):
        pass
    assert "dsn" in caught.value.message
    assert SECRET not in str(caught.value)


def test_closing_everything_is_not_the_end(empty_database: Database) -> None:
    answer(empty_database.admin_dsn)
    pool.close_all()
    assert wait_until(lambda: backends(empty_database) == [])
    assert answer(empty_database.admin_dsn) == 42


def in_a_forked_child(action: Callable[[], object], leave: Callable[[int], object]) -> int:
    """The exit code of a forked child that ran ``action`` and left by ``leave``."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            leave(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_parent_and_forked_child_do_not_share_sockets(empty_database: Database) -> None:
    dsn = empty_database.admin_dsn
    assert answer(dsn) == 42
    parents = backends(empty_database)

    def child() -> None:
        with pool.connection(dsn) as connection:
            row = connection.execute("SELECT pg_backend_pid()").fetchone()
            assert row is not None
            assert row[0] not in parents
        pool.close_all()

    for _ in range(3):
        assert in_a_forked_child(child, os._exit) == 0
        assert [answer(dsn) for _ in range(20)] == [42] * 20
    assert set(parents) <= set(backends(empty_database))


def run_and_end(dsn: str) -> None:
    assert answer(dsn) == 42
    gc.collect()


def test_a_child_that_ends_the_ordinary_way_harms_nobody(empty_database: Database) -> None:
    dsn = empty_database.admin_dsn
    assert answer(dsn) == 42
    parents = backends(empty_database)
    child = multiprocessing.get_context("fork").Process(target=run_and_end, args=(dsn,))
    child.start()
    child.join(120)
    assert child.exitcode == 0
    assert [answer(dsn) for _ in range(20)] == [42] * 20
    assert set(parents) <= set(backends(empty_database))


def test_a_fork_while_others_use_the_pool(empty_database: Database) -> None:
    dsn = empty_database.admin_dsn
    stop = threading.Event()
    failures: list[BaseException] = []

    def busy() -> None:
        while not stop.is_set():
            try:
                answer(dsn)
            except BaseException as error:  # noqa: BLE001 (collected and reported below)
                failures.append(error)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        codes = [in_a_forked_child(lambda: answer(dsn), os._exit) for _ in range(5)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert codes == [0] * 5
    assert failures == []
