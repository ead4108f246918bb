"""The drain against a real database: each operation once and in order, text before vectors, nothing lost."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from conftest import Database, TestServer
from drain_support import (
    LocalEmbedder,
    column,
    embedded_texts,
    entries,
    finish,
    put_turn,
    python,
    turns,
    vector_of,
    wait_until,
)
from psycopg.conninfo import make_conninfo

from hermes_pgsql import drain as module
from hermes_pgsql import pool
from hermes_pgsql.drain import Drain
from hermes_pgsql.embedding import EmbeddingFailure
from hermes_pgsql.embedding.http import HttpEmbedder
from hermes_pgsql.migrate import migrate
from hermes_pgsql.outbox import Counts, Outbox

NOTHING = Counts(0, 0, 0)


@pytest.fixture(scope="module", autouse=True)
def space(database: Database) -> None:
    """The space of the tests' model: only the first model of a database gets one by itself."""
    with database.admin() as connection:
        connection.execute("SELECT memvec.add_embedding_space('test-model', 4)")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def outbox(home: Path) -> Outbox:
    return Outbox.open(home)


@pytest.fixture
def theme() -> str:
    """A theme of the test's own, as the tests share a database."""
    return f"theme-{uuid4().hex[:12]}"


@pytest.fixture
def drains() -> Iterator[Callable[[str], Drain]]:
    """Drains that end with the test."""
    made: list[Drain] = []

    def make(dsn: str) -> Drain:
        made.append(Drain(dsn))
        return made[-1]

    yield make
    for drain in made:
        drain.stop(10)


@pytest.fixture
def drain(database: Database, drains: Callable[[str], Drain]) -> Drain:
    return drains(database.runtime_dsn)


@pytest.fixture
def embedder() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses after failures."""
    for side in (module.text, module.vectors):
        monkeypatch.setattr(side, "UNAVAILABLE_CAP", 0.2)
    monkeypatch.setattr(module.worker, "FAILURE_CAP", 0.2)
    monkeypatch.setattr(module.vectors, "EMBED_RETRY", 0.05)


@pytest.fixture(autouse=True)
def no_pools() -> Iterator[None]:
    yield
    pool.close_all()


def sent(drain: Drain, outbox: Outbox) -> bool:
    return drain.flush(90, outbox)


def complete(drain: Drain, outbox: Outbox) -> bool:
    return drain.flush_vectors(90, outbox)


# -- text --


def test_operations_reach_the_database_in_order_and_leave_the_outbox(
    database: Database, drain: Drain, outbox: Outbox, theme: str
) -> None:
    drain.attach(outbox, None)
    note = {"target": "memory"}
    outbox.put("register_agent", theme, {"attrs": {"team": "x"}})
    outbox.put("add_memory", theme, {**note, "content": "the port is 5432"})
    outbox.put("replace_memory", theme, {**note, "old_text": "port is 5432", "content": "the port is 6543"})
    outbox.put("add_memory", theme, {**note, "content": "to be removed"})
    outbox.put("remove_memory", theme, {**note, "old_text": "to be removed"})
    outbox.put("record_delegation", theme, {"session_id": "s", "child_session_id": "c"})
    for number in range(450):
        put_turn(outbox, theme, "s", f"turn {number}")
    assert sent(drain, outbox)
    assert outbox.counts() == NOTHING
    assert entries(database, theme) == ["the port is 6543"]
    assert turns(database, theme) == [f"turn {number}" for number in range(450)]
    assert drain.status().sent == 456


def test_governance_travels_with_the_operation(
    database: Database, drain: Drain, outbox: Outbox, theme: str
) -> None:
    drain.attach(outbox, None)
    arguments = {"session_id": "s", "role": "user", "content": "aliased"}
    outbox.put("append_turn", "short", arguments, {"aliases": {"short": theme}})
    assert sent(drain, outbox)
    assert turns(database, theme) == ["aliased"]


def test_an_outbox_left_by_a_dead_process_is_sent_when_it_is_attached(
    database: Database, drain: Drain, outbox: Outbox, theme: str
) -> None:
    put_turn(outbox, theme, "s", "left behind")
    drain.attach(outbox, None)
    assert wait_until(lambda: turns(database, theme) == ["left behind"])


def test_what_another_process_leaves_later_is_found_too(
    database: Database, drain: Drain, home: Path, outbox: Outbox, theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.text, "IDLE", 0.1)
    drain.attach(outbox, None)
    script = "import sys; from hermes_pgsql.outbox import Outbox; from drain_support import put_turn;"
    finish(python(script + "put_turn(Outbox.open(sys.argv[1]), sys.argv[2], 's', 'x')", home, theme))
    assert wait_until(lambda: turns(database, theme) == ["x"])


def test_sending_everything_again_changes_nothing(
    database: Database, drain: Drain, outbox: Outbox, home: Path, theme: str, tmp_path: Path
) -> None:
    note = {"target": "memory"}
    outbox.put("add_memory", theme, {**note, "content": "a"})
    outbox.put("replace_memory", theme, {**note, "old_text": "a", "content": "b"})
    outbox.put("remove_memory", theme, {**note, "old_text": "b"})
    outbox.put("add_memory", theme, {**note, "content": "a"})
    for number in range(20):
        put_turn(outbox, theme, "s", f"turn {number}")
    outbox.before_fork()  # closes the file
    outbox.after_fork_in_parent()
    copy = tmp_path / "copy"
    shutil.copytree(home, copy)
    drain.attach(outbox, None)
    assert sent(drain, outbox)
    before = turns(database, theme), entries(database, theme)
    assert before == ([f"turn {number}" for number in range(20)], ["a"])
    # As after a crash between the database's commit and the outbox's.
    again = Outbox.open(copy)
    assert again.depth() == 24
    drain.attach(again, None)
    assert sent(drain, again)
    assert (turns(database, theme), entries(database, theme)) == before


def test_a_refused_operation_is_set_aside_and_the_rest_goes_on(
    database: Database, drain: Drain, outbox: Outbox, theme: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    drain.attach(outbox, None)
    put_turn(outbox, theme, "s", "before")
    blank = outbox.put("add_memory", theme, {"target": "memory", "content": "  "})
    unknown = outbox.put("no_such_thing", theme, {})
    put_turn(outbox, theme, "s", "after")
    assert sent(drain, outbox)
    assert turns(database, theme) == ["before", "after"]
    listed = outbox.poison()
    assert [(item.op_id, item.code) for item in listed] == [(blank, "MV001"), (unknown, "MV001")]
    assert "blank" in listed[0].message
    assert drain.status().poison == drain.status().poisoned == 2
    assert sum("set aside" in record.getMessage() for record in caplog.records) == 2


def test_what_was_set_aside_is_stored_when_the_cause_is_mended(
    database: Database, drains: Callable[[str], Drain], outbox: Outbox, theme: str
) -> None:
    login, dsn = database.make_login("memvec_runtime")
    with database.admin() as connection:
        connection.execute("SELECT memvec.bind_role(%s, 'elsewhere', false)", [login])
    drain = drains(dsn)
    drain.attach(outbox, None)
    put_turn(outbox, "elsewhere", "s", f"ours {theme}")
    put_turn(outbox, theme, "s", "not ours")
    assert sent(drain, outbox)
    (refused,) = outbox.poison()
    assert refused.code == "MV002"
    assert turns(database, theme) == []
    with database.admin() as connection:
        connection.execute("SELECT memvec.bind_role(%s, %s, false)", [login, theme])
    assert outbox.retry(refused.op_id)
    assert sent(drain, outbox)
    assert turns(database, theme) == ["not ours"]
    assert outbox.counts() == NOTHING


# What stands before the function that reads a batch: p_ops is the batch.
IN_FRONT = """
ALTER FUNCTION memvec.resolve_ops RENAME TO sound_resolve_ops;
CREATE FUNCTION memvec.resolve_ops(p_ops jsonb) RETURNS memvec.batch_op [] LANGUAGE plpgsql STABLE AS $$
BEGIN
    %s
    RETURN memvec.sound_resolve_ops(p_ops);
END;
$$;
"""
SPOILT = """
    IF p_ops::text LIKE '%spoils%' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'a value nobody thought of';
    END IF;
"""
SLOW = """
    IF jsonb_array_length(p_ops) > 20 OR p_ops::text LIKE '%hopeless%' THEN
        PERFORM pg_sleep(600);
    END IF;
"""


@pytest.fixture
def own_database(server: TestServer, template: str) -> Iterator[Database]:
    """A database for one test, which may change its functions."""
    database = Database(server, f"memvec_{uuid4().hex[:8]}")
    server.create_database(database.name, template)
    yield database
    pool.close_all()
    server.drop_database(database.name)


def put_in_front(database: Database, statements: str) -> None:
    with database.admin() as connection:
        connection.execute(IN_FRONT.replace("%s", statements).encode())


def test_one_that_spoils_its_whole_batch_is_found(
    own_database: Database, drains: Callable[[str], Drain], outbox: Outbox, theme: str
) -> None:
    put_in_front(own_database, SPOILT)
    drain = drains(own_database.runtime_dsn)
    good = [f"turn {number}" for number in range(40)]
    for content in [*good[:20], "spoils", *good[20:], "spoils too"]:
        put_turn(outbox, theme, "s", content)
    drain.attach(outbox, None)
    assert sent(drain, outbox)
    assert turns(own_database, theme) == good
    assert [(item.arguments["content"], item.code) for item in outbox.poison()] == [
        ("spoils", "22023"),
        ("spoils too", "22023"),
    ]


def spoil(outbox: Outbox, old: str, new: str) -> None:
    """Change what is kept of the operations, as a bug or a bit flip would."""
    import sqlite3

    db = sqlite3.connect(outbox.path)
    with db:
        db.execute("UPDATE waiting SET arguments = replace(arguments, ?, ?)", (old, new))
    db.close()


def test_what_cannot_be_read_back_is_set_aside(
    database: Database, drain: Drain, outbox: Outbox, theme: str
) -> None:
    put_turn(outbox, theme, "s", "broken")
    spoil(outbox, "{", "")
    put_turn(outbox, theme, "s", "whole")
    drain.attach(outbox, None)
    assert sent(drain, outbox)
    assert turns(database, theme) == ["whole"]
    assert [item.code for item in outbox.poison()] == ["json"]


# -- a database that fails --


def test_connections_that_break_lose_and_double_nothing(
    database: Database, drain: Drain, outbox: Outbox, theme: str, quick: None
) -> None:
    drain.attach(outbox, None)
    ours = "datname = %s AND application_name = 'hermes-pgsql'"
    for number in range(300):
        put_turn(outbox, theme, "s", f"turn {number}")
        if number % 30 == 0:
            with database.admin() as connection:
                query = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}"
                connection.execute(query.encode(), [database.name])
    assert wait_until(lambda: outbox.depth() == 0)
    assert turns(database, theme) == [f"turn {number}" for number in range(300)]
    assert outbox.poison() == []


def test_a_database_without_the_schema_is_waited_for(
    empty_database: Database, drains: Callable[[str], Drain], outbox: Outbox, theme: str, quick: None,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level(logging.WARNING)
    drain = drains(empty_database.runtime_dsn)
    drain.attach(outbox, None)
    put_turn(outbox, theme, "s", "early")
    assert not drain.flush(20)
    status = drain.status()
    assert "hermes-pgsql migrate" in (status.last_error or "")
    assert status.retry_in is not None
    assert status.waiting == 1
    migrate(empty_database.admin_dsn)
    assert wait_until(lambda: outbox.depth() == 0)
    assert turns(empty_database, theme) == ["early"]
    assert drain.status().last_error is None
    assert len([r for r in caplog.records if "Nothing can be stored" in r.getMessage()]) == 1


def test_a_database_that_is_not_there_is_said_at_once_and_revived(
    tmp_path: Path, drains: Callable[[str], Drain], outbox: Outbox, quick: None
) -> None:
    drain = drains(f"host={tmp_path} user=hermes password=s3cret dbname=x")
    revived = threading.Event()
    drain.attach(outbox, None, revive=revived.set)
    put_turn(outbox, "x", "s", "kept")
    began = time.monotonic()
    assert not drain.flush(60)
    assert time.monotonic() - began < 30
    assert revived.wait(90)
    assert outbox.depth() == 1
    assert "s3cret" not in repr(drain.status())


def test_a_lock_that_is_not_obtained_is_nobodys_fault(
    database: Database, drains: Callable[[str], Drain], outbox: Outbox, theme: str, quick: None
) -> None:
    drain = drains(make_conninfo(database.runtime_dsn, options="-c lock_timeout=50ms"))
    with psycopg.connect(database.admin_dsn) as holder:
        holder.execute("SELECT memvec.lock_theme(%s)", [theme])
        holder.execute("SELECT pg_advisory_xact_lock_shared(1, 1)")
        exclusive = column(
            database,
            "SELECT pg_get_functiondef('memvec.lock_theme'::regproc)",
        )[0]
        assert "shared" in exclusive  # else the lines below would block by themselves
        locked = "SELECT classid, objid, objsubid FROM pg_locks WHERE locktype = 'advisory' AND pid = %s"
        found = holder.execute(locked, [holder.info.backend_pid]).fetchall()
        key = next((high << 32) | low for high, low, kind in found if kind == 1)
        key = key - 2**64 if key >= 2**63 else key
        holder.execute("SELECT pg_advisory_xact_lock(%s)", [key])
        drain.attach(outbox, None)
        put_turn(outbox, theme, "s", "waits")
        assert wait_until(lambda: drain.status().last_error is not None)
        assert outbox.counts() == Counts(1, 0, 0)
    assert wait_until(lambda: outbox.depth() == 0)
    assert turns(database, theme) == ["waits"]


def test_a_role_without_rights_sets_nothing_aside(
    database: Database, drains: Callable[[str], Drain], outbox: Outbox, theme: str, quick: None
) -> None:
    login, dsn = database.make_login("memvec_reader")
    drain = drains(dsn)
    drain.attach(outbox, None)
    put_turn(outbox, theme, "s", "one")
    put_turn(outbox, theme, "s", "two")
    assert wait_until(lambda: "may not" in (drain.status().last_error or ""))
    assert outbox.counts() == Counts(2, 0, 0)
    with database.admin() as connection:
        connection.execute(f"GRANT memvec_runtime TO {login}".encode())
    pool.close_all()
    assert wait_until(lambda: outbox.depth() == 0)
    assert turns(database, theme) == ["one", "two"]


def test_statements_that_take_too_long_are_sent_in_smaller_batches(
    own_database: Database, drains: Callable[[str], Drain], outbox: Outbox, theme: str, quick: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(module.text, "LONE_TIMEOUTS", 3)
    put_in_front(own_database, SLOW)
    # As long as a slow machine needs for what is quick.
    drain = drains(make_conninfo(own_database.runtime_dsn, options="-c statement_timeout=1500ms"))
    for number in range(60):
        put_turn(outbox, theme, "s", f"turn {number}")
    hopeless = put_turn(outbox, theme, "s", "hopeless")
    put_turn(outbox, theme, "s", "turn 60")
    drain.attach(outbox, None)
    assert wait_until(lambda: outbox.depth() == 0)
    assert turns(own_database, theme) == [f"turn {number}" for number in range(61)]
    assert [(item.op_id, item.code) for item in outbox.poison()] == [(hopeless, "57014")]


# -- homes and processes --


def test_two_homes_with_the_same_themes_in_opposite_order(
    database: Database, drains: Callable[[str], Drain], tmp_path: Path, theme: str
) -> None:
    names = [f"{theme}-{letter}" for letter in "abcd"]
    first, second = Outbox.open(tmp_path / "first"), Outbox.open(tmp_path / "second")
    for number in range(100):
        for name in names:
            first.put("add_memory", name, {"target": "memory", "content": f"first {number}"})
        for name in reversed(names):
            second.put("add_memory", name, {"target": "memory", "content": f"second {number}"})
    for outbox in (first, second):
        # Two connections at once: each home has a drain of its own.
        drains(make_conninfo(database.runtime_dsn, options=f"-c application_name={outbox is first}")).attach(
            outbox, None
        )
    assert wait_until(lambda: first.depth() + second.depth() == 0)
    assert first.poison() == second.poison() == []
    for name in names:
        found = entries(database, name)
        for home in ("first", "second"):
            ours = [text for text in found if text.startswith(home)]
            assert ours == [f"{home} {number}" for number in range(100)]


def test_a_home_belongs_to_the_database_it_was_attached_to_last(
    database: Database, empty_database: Database, outbox: Outbox, theme: str
) -> None:
    old, new = Drain.for_dsn(empty_database.runtime_dsn), Drain.for_dsn(database.runtime_dsn)
    try:
        old.attach(outbox, None)
        new.attach(outbox, None)
        put_turn(outbox, theme, "s", "moved")
        assert sent(new, outbox)
        assert old.status().waiting == 0
        assert turns(database, theme) == ["moved"]
    finally:
        for drain in (old, new):
            drain.stop(10)
            module._drains.pop(drain._state.dsn)


def test_providers_share_one_drain_two_threads_and_one_embedder(
    database: Database, outbox: Outbox, theme: str
) -> None:
    before = set(threading.enumerate())
    try:
        drain = Drain.for_dsn(database.runtime_dsn)
        assert Drain.for_dsn(database.runtime_dsn) is drain
        first = LocalEmbedder()
        assert drain.attach(outbox, first) is first
        for number in range(50):
            assert Drain.for_dsn(database.runtime_dsn).attach(outbox, LocalEmbedder()) is first
            put_turn(outbox, theme, "s", f"turn {number}")
        other = LocalEmbedder(model="another")
        assert drain.attach(outbox, other) is other
        assert sent(drain, outbox)
        ours = [
            thread
            for thread in set(threading.enumerate()) - before
            if thread.name.startswith("hermes-pgsql-")
        ]
        assert {"hermes-pgsql-drain"} <= {thread.name for thread in ours}
        assert len(ours) <= 2 + 3  # and three of the pool
        assert all(thread.daemon for thread in ours)
    finally:
        drain.stop(10)
        module._drains.clear()


def test_a_forked_child_sends_for_itself(
    database: Database, drain: Drain, outbox: Outbox, theme: str
) -> None:
    drain.attach(outbox, None)
    put_turn(outbox, theme, "s", "parent before")
    assert sent(drain, outbox)
    module._drains[database.runtime_dsn] = drain  # what for_dsn would have done

    def child() -> None:
        put_turn(outbox, theme, "s", "child")
        os._exit(0 if drain.flush(90, outbox) else 3)

    try:
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join(120)
        assert process.exitcode == 0
    finally:
        module._drains.clear()
    put_turn(outbox, theme, "s", "parent after")
    assert sent(drain, outbox)
    assert turns(database, theme) == ["parent before", "child", "parent after"]


def test_an_unusable_file_is_no_reason_not_to_store(
    database: Database, drain: Drain, outbox: Outbox, home: Path, theme: str, embedder: LocalEmbedder
) -> None:
    home.mkdir()
    (home / "hermes-pgsql").write_text("in the way")
    drain.attach(outbox, embedder)
    put_turn(outbox, theme, "s", "from memory")
    assert wait_until(lambda: turns(database, theme) == ["from memory"])
    assert wait_until(lambda: embedded_texts(database, "turn", theme) == {"from memory"})
    assert outbox.counts() == NOTHING


# -- memory files --


def test_a_memory_file_is_read_when_it_is_sent(
    database: Database, drain: Drain, outbox: Outbox, theme: str, tmp_path: Path
) -> None:
    file = tmp_path / "MEMORY.md"
    file.write_text("old")
    outbox.put_file(theme, "memory", file, uuid4())
    file.write_text(" one \n§\ntwo\n§\none\n§\n\n")
    drain.attach(outbox, None)
    assert sent(drain, outbox)
    assert sorted(entries(database, theme)) == ["one", "two"]


def test_a_memory_file_that_changed_this_moment_waits_with_what_is_behind_it(
    database: Database,
    drain: Drain,
    outbox: Outbox,
    theme: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module.requests, "FRESH_FILE", 3600.0)
    file = tmp_path / "MEMORY.md"
    file.write_text("one")
    put_turn(outbox, theme, "s", "before it")
    outbox.put_file(theme, "memory", file, uuid4())
    put_turn(outbox, theme, "s", "behind it")
    drain.attach(outbox, None)
    assert wait_until(lambda: turns(database, theme) == ["before it"] and outbox.depth() == 2)
    os.utime(file, (0, 0))
    monkeypatch.setattr(module.requests, "FRESH_FILE", 0.1)
    assert sent(drain, outbox)
    assert entries(database, theme) == ["one"]
    assert turns(database, theme) == ["before it", "behind it"]


def test_the_database_follows_the_file_to_its_end(
    database: Database, drain: Drain, outbox: Outbox, theme: str, tmp_path: Path
) -> None:
    source, file = uuid4(), tmp_path / "memories" / "MEMORY.md"
    drain.attach(outbox, None)

    def follow() -> list[str]:
        outbox.put_file(theme, "memory", file, source)
        assert sent(drain, outbox)
        return sorted(entries(database, theme))

    file.parent.mkdir()
    file.write_text("one\n§\ntwo")
    assert follow() == ["one", "two"]
    file.write_text("two\n§\nthree")
    assert follow() == ["three", "two"]
    shutil.rmtree(file.parent)
    assert follow() == ["three", "two"]  # nobody can say what the memory is
    file.parent.mkdir()
    assert follow() == []
    assert outbox.counts() == NOTHING


def test_a_memory_file_that_cannot_be_read_takes_nothing_away(
    database: Database, drain: Drain, outbox: Outbox, theme: str, tmp_path: Path
) -> None:
    source, file = uuid4(), tmp_path / "MEMORY.md"
    drain.attach(outbox, None)
    file.write_text("one")
    outbox.put_file(theme, "memory", file, source)
    assert sent(drain, outbox)
    file.unlink()
    file.mkdir()
    outbox.put_file(theme, "memory", file, source)
    put_turn(outbox, theme, "s", "behind it")
    assert sent(drain, outbox)
    assert entries(database, theme) == ["one"]
    assert turns(database, theme) == ["behind it"]
    assert [(item.op, item.code) for item in outbox.poison()] == [("sync_memories", "file")]
    file.rmdir()
    file.write_text("two")
    assert outbox.retry(outbox.poison()[0].op_id)
    assert sent(drain, outbox)
    assert entries(database, theme) == ["two"]


def test_secrets_in_memory_files_are_redacted(
    database: Database, drain: Drain, outbox: Outbox, theme: str, tmp_path: Path, embedder: LocalEmbedder
) -> None:
    file = tmp_path / "MEMORY.md"
    file.write_text("password: hunter2\n§\npassword: hunter3\n§\nplain")
    drain.attach(outbox, embedder, redact=lambda text: text.replace("hunter2", "*").replace("hunter3", "*"))
    outbox.put_file(theme, "memory", file, uuid4())
    assert complete(drain, outbox)
    assert sorted(entries(database, theme)) == ["password: *", "plain"]
    assert embedded_texts(database, "entry", theme) == {"password: *", "plain"}
    assert not any("hunter" in text for text in embedder.texts)


def test_entries_of_a_file_are_embedded_once(
    database: Database, drain: Drain, outbox: Outbox, theme: str, tmp_path: Path, embedder: LocalEmbedder
) -> None:
    source, file = uuid4(), tmp_path / "MEMORY.md"
    drain.attach(outbox, embedder)
    for text in ("one\n§\ntwo", "one\n§\ntwo\n§\nthree", "one\n§\nthree"):
        file.write_text(text)
        outbox.put_file(theme, "memory", file, source)
        assert complete(drain, outbox)
    assert sorted(embedder.texts) == ["one", "three", "two"]
    assert embedded_texts(database, "entry", theme) == {"one", "three"}


# -- vectors --


def test_everything_written_gets_its_vector(
    database: Database, drain: Drain, outbox: Outbox, theme: str, embedder: LocalEmbedder
) -> None:
    drain.attach(outbox, embedder)
    note = {"target": "memory"}
    outbox.put("add_memory", theme, {**note, "content": "old note"})
    assert complete(drain, outbox)
    outbox.put("replace_memory", theme, {**note, "old_text": "old note", "content": "new note"})
    outbox.put("add_memory", theme, {**note, "content": "no vector, please", "embed": False})
    for number in range(150):
        put_turn(outbox, theme, "s", f"turn {number}")
    put_turn(outbox, theme, "s", "turn 0")
    put_turn(outbox, theme, "s", "text only", embed=False)
    assert complete(drain, outbox)
    assert embedded_texts(database, "entry", theme) == {"new note"}
    assert embedded_texts(database, "turn", theme) == {f"turn {number}" for number in range(150)}
    assert len(embedder.texts) == len(set(embedder.texts)) == 152
    assert outbox.counts() == NOTHING


def test_the_vector_is_the_one_of_the_text(
    database: Database, drain: Drain, outbox: Outbox, theme: str, embedder: LocalEmbedder
) -> None:
    drain.attach(outbox, embedder)
    for number in range(20):
        put_turn(outbox, theme, "s", f"text {number}")
    assert complete(drain, outbox)
    (table,) = column(database, "SELECT turn_table::text FROM memvec.embedding_spaces WHERE dim = 4")
    with database.admin() as connection:
        rows = connection.execute(
            f"SELECT c.content, e.embedding::text FROM memvec.conversations AS c JOIN memvec.{table} AS e"
            " USING (id) WHERE c.agent_identity = %s".encode(),
            [theme],
        ).fetchall()
    assert len(rows) == 20
    for content, embedding in rows:
        assert json.loads(embedding) == pytest.approx(list(vector_of(content)), rel=0.01)


def test_without_an_embedder_nothing_waits_for_a_vector(
    database: Database, drain: Drain, outbox: Outbox, theme: str
) -> None:
    drain.attach(outbox, None)
    put_turn(outbox, theme, "s", "words only")
    assert complete(drain, outbox)
    assert outbox.counts() == NOTHING


def test_text_flows_while_the_embedder_hangs(
    database: Database, drain: Drain, outbox: Outbox, theme: str, embedder: LocalEmbedder, quick: None
) -> None:
    embedder.gate.clear()
    drain.attach(outbox, embedder)
    put_turn(outbox, theme, "s", "first")
    assert wait_until(lambda: outbox.counts().sent == 1)
    for number in range(50):
        put_turn(outbox, theme, "s", f"turn {number}")
    assert sent(drain, outbox)
    assert len(turns(database, theme)) == 51
    assert not drain.flush_vectors(0.1, outbox)
    embedder.gate.set()
    assert complete(drain, outbox)
    assert len(embedded_texts(database, "turn", theme)) == 51


def test_one_homes_dead_endpoint_is_not_anothers(
    database: Database, drain: Drain, tmp_path: Path, theme: str, quick: None
) -> None:
    dead, alive = LocalEmbedder(endpoint="dead"), LocalEmbedder(endpoint="alive")
    down = EmbeddingFailure("refused", kind="unreachable", unavailable=True)
    dead.fails = lambda _text: down
    first, second = Outbox.open(tmp_path / "first"), Outbox.open(tmp_path / "second")
    drain.attach(first, dead)
    drain.attach(second, alive)
    for number in range(100):
        put_turn(first, f"{theme}-first", "s", f"turn {number}")
        put_turn(second, f"{theme}-second", "s", f"turn {number}")
    assert complete(drain, second)
    assert len(embedded_texts(database, "turn", f"{theme}-second")) == 100
    assert sent(drain, first)
    assert first.counts() == Counts(0, 100, 0)
    status = drain.status()
    assert status.embed_error == "refused"
    assert status.embed_retry_in is not None
    dead.fails = lambda _text: None
    assert complete(drain, first)
    assert len(embedded_texts(database, "turn", f"{theme}-first")) == 100
    assert drain.status().embed_error is None


def test_why_vectors_are_outstanding_is_told_to_those_who_look_from_outside(
    drain: Drain, outbox: Outbox, theme: str, embedder: LocalEmbedder, quick: None
) -> None:
    """In the home's file, because the host is another process; and it is gone when it is mended or erased."""
    outside = Outbox.open(outbox.path.parent.parent)
    assert outside.path == outbox.path
    embedder.fails = lambda _text: EmbeddingFailure("no route to it", kind="unreachable", unavailable=True)
    drain.attach(outbox, embedder)
    put_turn(outbox, theme, "s", "one turn")
    assert wait_until(lambda: outside.vector_trouble() is not None)
    trouble = outside.vector_trouble()
    assert trouble is not None
    assert trouble.message == "no route to it"
    assert outside.counts().sent == 1
    embedder.fails = lambda _text: None
    assert complete(drain, outbox)
    assert wait_until(lambda: outside.vector_trouble() is None)


def test_the_pause_an_endpoint_asks_for_is_kept(
    drain: Drain, outbox: Outbox, theme: str, embedder: LocalEmbedder
) -> None:
    """Also when new text comes; but not for hours."""
    asked = 100.0
    embedder.fails = lambda _text: EmbeddingFailure(
        "slow down", kind="rate_limited", unavailable=True, retry_after=asked
    )
    drain.attach(outbox, embedder)
    put_turn(outbox, theme, "s", "one turn")
    assert wait_until(lambda: drain.status().embed_retry_in is not None)
    assert 30 < (drain.status().embed_retry_in or 0) <= 100
    tried = len(embedder.texts)
    put_turn(outbox, theme, "s", "another turn")
    assert sent(drain, outbox)
    assert len(embedder.texts) == tried
    asked = 1e9
    drain.flush_vectors(0.1)
    assert wait_until(lambda: (drain.status().embed_retry_in or 0) > 200)
    assert (drain.status().embed_retry_in or 0) <= 300


def test_a_text_that_cannot_be_embedded_holds_up_no_other(
    database: Database, drain: Drain, outbox: Outbox, theme: str, embedder: LocalEmbedder, quick: None
) -> None:
    never = EmbeddingFailure("too long", permanent=True, kind="too_long")
    embedder.fails = lambda text: never if text == "never" else None
    drain.attach(outbox, embedder)
    for text in ("one", "never", "two"):
        put_turn(outbox, theme, "s", text)
    assert complete(drain, outbox)
    assert embedded_texts(database, "turn", theme) == {"one", "two"}
    assert embedder.texts.count("never") == 1
    assert drain.status().given_up == 1


def test_a_text_that_fails_for_now_is_tried_again_but_not_for_ever(
    database: Database, drain: Drain, outbox: Outbox, theme: str, embedder: LocalEmbedder, quick: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(module.vectors, "EMBED_ATTEMPTS", 4)
    odd = EmbeddingFailure("NaN", kind="server")
    embedder.fails = lambda text: (
        odd if text == "never" or (text == "twice" and embedder.texts.count(text) < 3) else None
    )
    drain.attach(outbox, embedder)
    for text in ("never", "twice", "once"):
        put_turn(outbox, theme, "s", text)
    assert complete(drain, outbox)
    assert embedded_texts(database, "turn", theme) == {"twice", "once"}
    assert embedder.texts.count("never") == 4
    assert embedder.texts.count("twice") == 3


def test_a_text_that_changed_meanwhile_gets_its_own_vector(
    database: Database, drain: Drain, outbox: Outbox, theme: str, embedder: LocalEmbedder, quick: None
) -> None:
    embedder.gate.clear()
    drain.attach(outbox, embedder)
    outbox.put("add_memory", theme, {"target": "memory", "content": "before"})
    outbox.put("add_memory", theme, {"target": "memory", "content": "to go"})
    assert sent(drain, outbox)
    outbox.put("replace_memory", theme, {"target": "memory", "old_text": "before", "content": "after"})
    outbox.put("remove_memory", theme, {"target": "memory", "old_text": "to go"})
    assert sent(drain, outbox)
    embedder.gate.set()
    assert complete(drain, outbox)
    assert embedded_texts(database, "entry", theme) == {"after"}


def test_vectors_wait_for_a_space_that_an_administrator_adds(
    database: Database,
    drain: Drain,
    outbox: Outbox,
    theme: str,
    quick: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with database.admin() as connection:
        connection.execute("SELECT memvec.add_embedding_space('taken', 8)")
    embedder = LocalEmbedder(model=f"new-{theme}")
    drain.attach(outbox, embedder)
    put_turn(outbox, theme, "s", "early")
    assert wait_until(lambda: "add_embedding_space" in (drain.status().embed_error or ""))
    assert outbox.counts() == Counts(0, 1, 0)
    assert turns(database, theme) == ["early"]
    before = len(embedder.texts)
    assert before == 1
    with database.admin() as connection:
        connection.execute("SELECT memvec.add_embedding_space(%s, 4)", [embedder.model])
    assert complete(drain, outbox)
    assert embedded_texts(database, "turn", theme) == {"early"}
    assert len([r for r in caplog.records if "add_embedding_space" in r.getMessage()]) == 1
    # Dropped and made again, it is another space: the drain asks which one is its own.
    with database.admin() as connection:
        spaces = "SELECT id FROM memvec.embedding_spaces WHERE model = %s"
        row = connection.execute(spaces, [embedder.model]).fetchone()
        assert row is not None
        connection.execute("SELECT memvec.drop_embedding_space(%s)", row)
        connection.execute("SELECT memvec.add_embedding_space(%s, 4)", [embedder.model])
    put_turn(outbox, theme, "s", "late")
    assert complete(drain, outbox)
    assert embedded_texts(database, "turn", theme) == {"late"}


class Endpoint:
    """An embedding service on a fixed port that can be down, silent, dripping or well."""

    def __init__(self) -> None:
        self.mode = "well"
        self.port = 0
        self.server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
                data = [{"index": at, "embedding": list(vector_of(text))} for at, text in enumerate(texts)]
                body = json.dumps({"data": data}).encode()
                if endpoint.mode == "silent":
                    time.sleep(3)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if endpoint.mode == "dripping":
                    for byte in body[:30]:
                        self.wfile.write(bytes([byte]))
                        self.wfile.flush()
                        time.sleep(0.1)
                    return
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    service = Endpoint()
    service.start()
    yield service
    service.stop()


@pytest.mark.parametrize("mode", ["refusing", "silent", "dripping"])
def test_an_endpoint_that_fails_delays_vectors_only(
    database: Database, drain: Drain, outbox: Outbox, theme: str, endpoint: Endpoint, mode: str, quick: None
) -> None:
    endpoint.mode = mode
    if mode == "refusing":
        endpoint.stop()
    url = f"http://127.0.0.1:{endpoint.port}"
    embedder = HttpEmbedder(url, "test-model", protocol="openai", backoff=0.01)
    drain.attach(outbox, embedder, embed_timeout=0.5)
    for number in range(100):
        put_turn(outbox, theme, "s", f"turn {number}")
    assert sent(drain, outbox)
    assert len(turns(database, theme)) == 100
    assert wait_until(lambda: drain.status().embed_error is not None)
    assert outbox.counts() == Counts(0, 100, 0)
    if mode == "refusing":
        endpoint.start()
    endpoint.mode = "well"
    assert complete(drain, outbox)
    assert embedded_texts(database, "turn", theme) == {f"turn {number}" for number in range(100)}


# -- ends --


EXIT = """
import sys
from pathlib import Path
from hermes_pgsql.drain import Drain
from hermes_pgsql.outbox import Outbox
from drain_support import LocalEmbedder, put_turn
home, dsn, theme = sys.argv[1:]
outbox, drain, embedder = Outbox.open(home), Drain.for_dsn(dsn), LocalEmbedder()
embedder.gate.clear()
drain.attach(outbox, embedder, embed_timeout=60)
for number in range(50):
    put_turn(outbox, theme, "s", f"turn {number}")
"""


@pytest.mark.parametrize("reachable", [True, False])
def test_a_process_that_just_ends_loses_nothing_and_ends_well(
    database: Database, drain: Drain, outbox: Outbox, home: Path, theme: str, tmp_path: Path, reachable: bool
) -> None:
    dsn = database.runtime_dsn if reachable else f"host={tmp_path} dbname=x user=y"
    finish(python(EXIT, home, dsn, theme), 120)
    drain.attach(outbox, LocalEmbedder())
    assert complete(drain, outbox)
    assert turns(database, theme) == [f"turn {number}" for number in range(50)]
    assert len(embedded_texts(database, "turn", theme)) == 50


def test_housekeeping_is_done_now_and_then_by_one(
    database: Database, drain: Drain, outbox: Outbox, theme: str
) -> None:
    with database.admin() as connection:
        connection.execute("DELETE FROM memvec.theme_counts")
    drain.attach(outbox, None)
    put_turn(outbox, theme, "s", "one")
    counted = "SELECT count(*) FROM memvec.theme_counts WHERE agent_identity = %s"
    assert wait_until(lambda: column(database, counted, theme) == [1])
    assert not outbox.due("housekeeping", 300)
