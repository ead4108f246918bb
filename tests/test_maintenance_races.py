"""Maintenance and writers at once. One side holds its transaction open while the other runs into it: nobody
waits for ever, whoever waits learns for whom, and no row is lost, left behind or brought back."""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import psycopg
import pytest
from conftest import Database

WAIT = 60.0
Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def admin_dsn(database: Database) -> str:
    return database.make_login("memvec_admin")[1]


@pytest.fixture
def theme() -> str:
    return f"race-{secrets.token_hex(4)}"


@pytest.fixture
def impatient(database: Database) -> Iterator[None]:
    """Nobody waits longer than a second for a theme."""
    with database.admin() as admin:
        admin.execute("UPDATE memvec.settings SET value = '1' WHERE name = 'lock_seconds'")
        yield
        admin.execute("UPDATE memvec.settings SET value = '60' WHERE name = 'lock_seconds'")


@pytest.fixture(autouse=True, scope="module")
def _patient(database: Database) -> None:
    """A loaded machine must not make a test fail that is not about waiting in vain."""
    with database.admin() as admin:
        admin.execute("UPDATE memvec.settings SET value = '60' WHERE name = 'lock_seconds'")


def rows(database: Database, theme: str) -> set[str]:
    """What a theme holds."""
    query = """
        SELECT content FROM memvec.memory_entries WHERE agent_identity = %(theme)s
        UNION ALL SELECT content FROM memvec.conversations WHERE agent_identity = %(theme)s"""
    with database.admin() as admin:
        found = [row[0] for row in admin.execute(query, {"theme": theme})]
    assert len(found) == len(set(found))
    return set(found)


def write(connection: Connection, theme: str, content: str) -> None:
    connection.execute("SELECT memvec.add_memory(%s, 'memory', %s)", [theme, content])


def batch(connection: Connection, theme: str, content: str, op_id: uuid.UUID) -> str:
    operation = {
        "op_id": str(op_id),
        "op": "append_turn",
        "identity": theme,
        "session_id": "s",
        "role": "user",
    }
    applied = connection.execute(
        "SELECT outcome FROM memvec.apply_ops(%s)", [json.dumps([operation | {"content": content}])]
    ).fetchone()
    assert applied is not None
    return str(applied[0])


def wait_until_blocked(
    database: Database, waiting: Connection, holding: Connection, call: Future[Any]
) -> None:
    give_up = time.monotonic() + WAIT
    with database.admin() as observer:
        while time.monotonic() < give_up:
            pids = [holding.info.backend_pid, waiting.info.backend_pid]
            blocked = observer.execute("SELECT %s = ANY (pg_blocking_pids(%s))", pids).fetchone()
            if blocked and blocked[0]:
                return
            assert not call.done(), f"it did not wait: {call.exception() or call.result()}"
            time.sleep(0.005)
    raise AssertionError("the call neither waits nor ends")


@contextmanager
def blocked_by(
    database: Database,
    first_dsn: str,
    first: Callable[[Connection], Any],
    second_dsn: str,
    second: Callable[[Connection], Any],
) -> Generator[tuple[Connection, Future[Any]]]:
    """Run ``first`` and leave its transaction open, and let ``second`` run into it in another session."""
    with (
        psycopg.connect(first_dsn) as one,
        psycopg.connect(second_dsn, autocommit=True) as two,
        ThreadPoolExecutor(1) as pool,
    ):
        first(one)
        call = pool.submit(second, two)
        try:
            wait_until_blocked(database, two, one, call)
            yield one, call
        finally:
            one.rollback()


def remap(
    old: str, new: str | None, force: bool = False
) -> Callable[[Connection], dict[tuple[str, str], int]]:
    def call(connection: Connection) -> dict[tuple[str, str], int]:
        changes = connection.execute("SELECT * FROM memvec.remap(%s, %s, false, %s)", [old, new, force])
        return {(table, action): count for table, action, count, _remaining in changes}

    return call


def maintain(query: str, *arguments: object) -> Callable[[Connection], dict[str, int]]:
    def call(connection: Connection) -> dict[str, int]:
        return {row[0]: row[2] for row in connection.execute(query.encode(), arguments)}

    return call


# Bounded waits ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("operation", ["remap", "cleanup", "erase_theme", "prune"])
def test_maintenance_does_not_wait_for_ever_and_says_for_whom(
    database: Database, admin_dsn: str, theme: str, operation: str
) -> None:
    calls: dict[str, tuple[str, list[object]]] = {
        "remap": ("SELECT memvec.remap(%s, %s, false)", [theme, f"{theme}-new"]),
        "cleanup": ("SELECT memvec.cleanup(ARRAY[%s], false)", [theme]),
        "erase_theme": ("SELECT memvec.erase_theme(%s, false)", [theme]),
        "prune": ("SELECT memvec.prune(5000, false)", []),
    }
    query, arguments = calls[operation]
    with database.runtime() as runtime:
        write(runtime, theme, "kept")
        runtime.execute("SELECT memvec.append_turn(%s, 's', 'user', 'old', p_ts => '2001-01-01')", [theme])
    with (
        psycopg.connect(database.runtime_dsn) as writer,
        psycopg.connect(admin_dsn, autocommit=True) as admin,
    ):
        write(writer, theme, "written meanwhile")
        with pytest.raises(psycopg.Error) as refused:
            admin.execute(query.encode(), arguments)
        assert refused.value.sqlstate == "MV008"
        assert theme in str(refused.value.diag.message_primary)
        assert f"process {writer.info.backend_pid}" in str(refused.value.diag.message_detail)
        assert "hermes" in str(refused.value.diag.message_detail)
        assert "lock_seconds" in str(refused.value.diag.message_hint)
        writer.commit()
    assert rows(database, theme) == {"kept", "old", "written meanwhile"}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("operation", ["remap", "erase_theme"])
def test_maintenance_does_not_wait_for_ever_for_a_row(
    database: Database, admin_dsn: str, theme: str, operation: str
) -> None:
    """Who claims or stores vectors and never commits holds rows, without a lock on their theme."""
    embedder_dsn = database.make_login("memvec_embedder")[1]
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        space = admin.execute("SELECT memvec.add_embedding_space(%s, 3)", [theme]).fetchone()
        assert space is not None
        with psycopg.connect(database.runtime_dsn) as runtime:
            write(runtime, theme, f"a note of {theme}")
        query = {
            "remap": f"SELECT memvec.remap('{theme}', '{theme}-new', false)",
            "erase_theme": f"SELECT memvec.erase_theme('{theme}', false)",
        }[operation]
        claim = "SELECT content FROM memvec.claim_pending(%s, 1000)"
        with psycopg.connect(embedder_dsn) as worker:
            assert (f"a note of {theme}",) in worker.execute(claim, space).fetchall()
            with pytest.raises(psycopg.Error) as refused:
                admin.execute(query.encode())
            assert refused.value.sqlstate == "MV008"
            assert "row is in use" in str(refused.value.diag.message_primary)
            assert f"process {worker.info.backend_pid}" in str(refused.value.diag.message_detail)
        with admin.transaction(), psycopg.connect(embedder_dsn) as worker:
            admin.execute(query.encode())
            if operation == "erase_theme":
                claimed = worker.execute(
                    "SELECT content FROM memvec.claim_pending(%s, 1000, p_lease_seconds => 1)", space
                ).fetchall()
                assert (f"a note of {theme}",) not in claimed
        with database.admin() as observer:
            left = "SELECT count(*) FROM memvec.embedding_work WHERE content_hash = sha256(%s::bytea)"
            assert observer.execute(left, [f"a note of {theme}"]).fetchone() == (int(operation == "remap"),)
            observer.execute("DELETE FROM memvec.memory_entries WHERE agent_identity LIKE %s", [f"{theme}%"])
        admin.execute("SELECT memvec.drop_embedding_space(%s)", space)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("operation", ["remap", "cleanup", "erase_theme", "prune"])
def test_maintenance_and_housekeeping_keep_apart(
    database: Database, admin_dsn: str, theme: str, operation: str
) -> None:
    """Both touch counts and old records, each in its own order: at once they could block each other."""
    calls: dict[str, tuple[str, list[object]]] = {
        "remap": ("SELECT memvec.remap(%s, %s, false)", [theme, f"{theme}-new"]),
        "cleanup": ("SELECT memvec.cleanup(ARRAY[%s], false)", [theme]),
        "erase_theme": ("SELECT memvec.erase_theme(%s, false)", [theme]),
        "prune": ("SELECT memvec.prune(5000, false)", []),
    }
    query, arguments = calls[operation]
    with psycopg.connect(database.runtime_dsn) as keeper, psycopg.connect(admin_dsn) as admin:
        write(keeper, theme, "kept")
        keeper.commit()
        assert keeper.execute("SELECT * FROM memvec.housekeeping()").fetchall()
        with pytest.raises(psycopg.Error) as refused:
            admin.execute(query.encode(), arguments)
        assert refused.value.sqlstate == "MV008"
        assert "housekeeping is in use" in str(refused.value.diag.message_primary)
        assert f"process {keeper.info.backend_pid}" in str(refused.value.diag.message_detail)
        admin.rollback()
        write(keeper, theme, "nobody was kept from writing")
        keeper.commit()
        admin.execute(query.encode(), arguments)
        assert keeper.execute("SELECT * FROM memvec.housekeeping()").fetchall() == []


@pytest.mark.usefixtures("impatient")
def test_a_writer_does_not_wait_for_ever_and_says_for_whom(
    database: Database, admin_dsn: str, theme: str
) -> None:
    with database.runtime() as writer, psycopg.connect(admin_dsn) as admin:
        write(writer, theme, "before")
        remap(theme, f"{theme}-new")(admin)
        for call in (
            lambda: write(writer, theme, "late"),
            lambda: batch(writer, theme, "late", uuid.uuid4()),
            lambda: writer.execute(
                "SELECT memvec.sync_memories(%s, %s, 'memory', '{late}')", [theme, uuid.uuid4()]
            ),
        ):
            with pytest.raises(psycopg.Error) as refused:
                call()
            assert refused.value.sqlstate == "MV008"
            assert "maintenance" in str(refused.value.diag.message_primary)
            assert f"process {admin.info.backend_pid}" in str(refused.value.diag.message_detail)
        # Other themes are not concerned.
        write(writer, f"{theme}-other", "at once")
        admin.rollback()
    assert rows(database, theme) == {"before"}


def test_the_callers_own_lock_timeout_is_kept_when_it_is_shorter(
    database: Database, admin_dsn: str, theme: str
) -> None:
    with database.runtime() as writer, psycopg.connect(admin_dsn) as admin:
        write(writer, theme, "before")
        writer.commit()
        maintain("SELECT * FROM memvec.cleanup(ARRAY[%s], false)", theme)(admin)
        writer.execute("SET lock_timeout = '50ms'")
        with pytest.raises(psycopg.Error) as refused:
            write(writer, theme, "late")
        assert refused.value.sqlstate == "MV008"
        shown = writer.execute("SHOW lock_timeout").fetchone()
        assert shown == ("50ms",)


# Remap ------------------------------------------------------------------------------------------


def test_writers_that_waited_for_the_old_theme_go_on_in_the_new_one(
    database: Database, admin_dsn: str, theme: str
) -> None:
    new = f"{theme}-new"
    with database.runtime() as runtime:
        write(runtime, theme, "before")
    with blocked_by(
        database, admin_dsn, remap(theme, new), database.runtime_dsn, lambda c: write(c, theme, "late note")
    ) as (admin, call):
        admin.commit()
        call.result(WAIT)
    assert rows(database, theme) == set()
    assert rows(database, new) == {"before", "late note"}


def test_a_batch_that_waited_asks_to_be_sent_again_and_then_lands_in_the_new_theme(
    database: Database, admin_dsn: str, theme: str
) -> None:
    new, op_id = f"{theme}-new", uuid.uuid4()
    with database.runtime() as runtime:
        write(runtime, theme, "before")
    with blocked_by(
        database,
        admin_dsn,
        remap(theme, new),
        database.runtime_dsn,
        lambda c: batch(c, theme, "late turn", op_id),
    ) as (admin, call):
        admin.commit()
        with pytest.raises(psycopg.errors.SerializationFailure):
            call.result(WAIT)
    with database.runtime() as runtime:
        assert batch(runtime, theme, "late turn", op_id) == "added"
        assert batch(runtime, theme, "late turn", op_id) == "added"
    assert rows(database, theme) == set()
    assert rows(database, new) == {"before", "late turn"}


def test_a_bound_role_that_waited_goes_on_in_the_new_theme(
    database: Database, admin_dsn: str, theme: str
) -> None:
    new = f"{theme}-new"
    name, bound_dsn = database.make_login("memvec_runtime")
    with database.admin() as admin, psycopg.connect(bound_dsn, autocommit=True) as bound:
        admin.execute("SELECT memvec.bind_role(%s, %s)", [name, theme])
        write(bound, theme, "before")
    with blocked_by(
        database, admin_dsn, remap(theme, new), bound_dsn, lambda c: write(c, theme, "late note")
    ) as (admin, call):
        admin.commit()
        call.result(WAIT)
    assert rows(database, new) == {"before", "late note"}
    with psycopg.connect(bound_dsn, autocommit=True) as bound, pytest.raises(psycopg.Error) as refused:
        write(bound, f"{theme}-other", "not mine")
    assert refused.value.sqlstate == "MV002"


def test_a_remap_waits_for_writers_and_takes_their_rows_along(
    database: Database, admin_dsn: str, theme: str
) -> None:
    new = f"{theme}-new"
    with blocked_by(
        database, database.runtime_dsn, lambda c: write(c, theme, "in flight"), admin_dsn, remap(theme, new)
    ) as (writer, call):
        writer.commit()
        assert call.result(WAIT)["memory_entries", "moved"] == 1
    assert rows(database, theme) == set()
    assert rows(database, new) == {"in flight"}


def test_duplicates_are_counted_again_under_the_lock(database: Database, admin_dsn: str, theme: str) -> None:
    new = f"{theme}-new"
    with database.runtime() as runtime:
        for number in range(11):
            write(runtime, theme, f"note {number}")
            if number < 10:
                write(runtime, new, f"note {number}")
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        counted = admin.execute(
            "SELECT sum(rows) FROM memvec.remap(%s, %s) WHERE action = 'merged'", [theme, new]
        )
        assert counted.fetchone() == (10,)
    with blocked_by(
        database, database.runtime_dsn, lambda c: write(c, new, "note 10"), admin_dsn, remap(theme, new)
    ) as (writer, call):
        writer.commit()
        with pytest.raises(psycopg.Error) as refused:
            call.result(WAIT)
    assert refused.value.sqlstate == "MV001"
    assert "11" in str(refused.value.diag.message_primary)
    assert len(rows(database, theme)) == 11


@pytest.mark.parametrize("who_first", ["vector", "remap"])
def test_a_vector_stored_meanwhile_says_the_new_theme(
    database: Database, admin_dsn: str, theme: str, who_first: str
) -> None:
    new = f"{theme}-new"
    with database.admin() as superuser:
        space = superuser.execute("SELECT memvec.add_embedding_space('race', 3)").fetchone()
    assert space is not None
    with database.runtime() as runtime:
        added = runtime.execute(
            "SELECT id, content_hash FROM memvec.add_memory(%s, 'memory', 'x')", [theme]
        ).fetchone()
    assert added is not None

    def store(connection: Connection) -> Any:
        return connection.execute(
            "SELECT stored FROM memvec.store_embeddings("
            "    %s, '{entry}', %s, %s, ARRAY['[1,0,0]']::public.halfvec[])",
            [space[0], [added[0]], [added[1]]],
        ).fetchone()

    calls = (database.runtime_dsn, store, admin_dsn, remap(theme, new))
    if who_first == "remap":
        calls = (admin_dsn, remap(theme, new), database.runtime_dsn, store)
    with blocked_by(database, *calls) as (first, call):
        first.commit()
        call.result(WAIT)
    with database.admin() as superuser:
        found = superuser.execute(
            f"SELECT agent_identity FROM memvec.entry_embeddings_{space[0]} WHERE id = %s".encode(),
            [added[0]],
        ).fetchall()
    assert found == [(new,)]


def test_two_remaps_against_each_other_happen_one_after_the_other(
    database: Database, admin_dsn: str, theme: str
) -> None:
    there, back = f"{theme}-a", f"{theme}-b"
    with database.runtime() as runtime:
        write(runtime, there, "note a")
        write(runtime, back, "note b")
    with blocked_by(database, admin_dsn, remap(there, back), admin_dsn, remap(back, there)) as (first, call):
        first.commit()
        call.result(WAIT)
    assert rows(database, back) == set()
    assert rows(database, there) == {"note a", "note b"}


def test_writers_at_full_speed_lose_nothing_in_a_remap(
    database: Database, admin_dsn: str, theme: str
) -> None:
    new, stop = f"{theme}-new", Event()
    with database.runtime() as runtime:
        for number in range(300):
            write(runtime, theme, f"before {number}")

    def keep_writing(number: int) -> set[str]:
        accepted: set[str] = set()
        with database.runtime() as runtime:
            while not stop.is_set():
                content = f"writer {number} text {len(accepted)}"
                try:
                    if number % 2:
                        write(runtime, theme, content)
                    else:
                        batch(runtime, theme, content, uuid.uuid4())
                except psycopg.errors.SerializationFailure:
                    continue
                accepted.add(content)
        return accepted

    with ThreadPoolExecutor(4) as pool, psycopg.connect(admin_dsn, autocommit=True) as admin:
        writers = [pool.submit(keep_writing, number) for number in range(4)]
        try:
            give_up = time.monotonic() + WAIT
            while len(rows(database, theme)) < 350 and time.monotonic() < give_up:
                time.sleep(0.02)
            remap(theme, new)(admin)
            left = rows(database, theme)
            moved = len(rows(database, new))
            while len(rows(database, new)) < moved + 20 and time.monotonic() < give_up:
                time.sleep(0.02)
        finally:
            stop.set()
        accepted = {content for writer in writers for content in writer.result(WAIT)}
    assert left == set()
    assert rows(database, theme) == set()
    assert rows(database, new) == accepted | {f"before {number}" for number in range(300)}


# Deletions ------------------------------------------------------------------------------------------


def test_what_a_writer_commits_while_maintenance_waits_goes_too(
    database: Database, admin_dsn: str, theme: str
) -> None:
    contact = f"agent:main:telegram:dm:{theme}"
    for held, call in (
        (theme, maintain("SELECT * FROM memvec.cleanup(ARRAY[%s], false)", theme)),
        (theme, maintain("SELECT * FROM memvec.erase_theme(%s, false)", theme)),
        (contact, maintain("SELECT * FROM memvec.erase_person(%s, false)", contact)),
    ):
        with blocked_by(
            database,
            database.runtime_dsn,
            lambda c, held=held: write(c, held, f"late {theme}"),
            admin_dsn,
            call,
        ) as (writer, done):
            writer.commit()
            assert done.result(WAIT)["memory_entries"] == 1
    with database.admin() as superuser:
        assert superuser.execute(
            "SELECT count(*) FROM memvec.memory_entries WHERE content = %s", [f"late {theme}"]
        ).fetchone() == (0,)


def test_a_writer_that_waited_for_a_deletion_writes_afterwards(
    database: Database, admin_dsn: str, theme: str
) -> None:
    with database.runtime() as runtime:
        write(runtime, theme, "before")
    with blocked_by(
        database,
        admin_dsn,
        maintain("SELECT * FROM memvec.erase_theme(%s, false)", theme),
        database.runtime_dsn,
        lambda c: write(c, theme, "before"),
    ) as (admin, call):
        admin.commit()
        call.result(WAIT)
    assert rows(database, theme) == {"before"}


def test_an_old_turn_said_again_while_it_is_pruned_is_stored(
    database: Database, admin_dsn: str, theme: str
) -> None:
    old = ("SELECT outcome FROM memvec.append_turn(%s, 's', 'user', 'again', p_ts => '2001-01-01')", [theme])
    with database.runtime() as runtime:
        runtime.execute(*old)
    with blocked_by(
        database,
        admin_dsn,
        maintain("SELECT * FROM memvec.prune(5000, false)"),
        database.runtime_dsn,
        lambda c: c.execute(*old).fetchone(),
    ) as (admin, call):
        admin.commit()
        assert call.result(WAIT) == ("added",)
    assert rows(database, theme) == {"again"}
