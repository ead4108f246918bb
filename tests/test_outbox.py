"""The outbox: what is accepted is kept, in order, whatever happens to the process or the file."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import shutil
import signal
import sqlite3
import stat
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from drain_support import finish, put_turn, python, wait_until

from hermes_pgsql import outbox as module
from hermes_pgsql.outbox import Batch, Outbox
from hermes_pgsql.outbox_store import Refusal, VectorJob

PUT = """
import os, sys
from hermes_pgsql.outbox import Outbox
outbox = Outbox.open(sys.argv[1])
for number in range(int(sys.argv[3])):
    outbox.put("append_turn", sys.argv[2], {"session_id": "s", "role": "user", "content": str(number)})
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def outbox(home: Path) -> Outbox:
    return Outbox.open(home)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unusable file is tried again at once."""
    monkeypatch.setattr(module, "RETRY_AFTER", 0.0)


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "hermes_pgsql")
    return caplog


def batch_of(outbox: Outbox, limit: int = 1000) -> Batch:
    batch = outbox.take(limit, 10**9)
    assert batch is not None
    return batch


def contents(outbox: Outbox, limit: int = 1000) -> list[Any]:
    batch = outbox.take(limit, 10**9)
    return [] if batch is None else [json.loads(o.arguments).get("content") for o in batch.operations]


def settle_all(outbox: Outbox) -> None:
    while (batch := outbox.take(1000, 10**9)) is not None:
        assert outbox.settle(batch, batch.operations)


# -- accepting --


def test_what_is_put_comes_out_in_order(outbox: Outbox) -> None:
    ids = [put_turn(outbox, "x", "s", f"turn {number}") for number in range(10)]
    batch = batch_of(outbox)
    assert [UUID(operation.op_id) for operation in batch.operations] == ids
    assert contents(outbox) == [f"turn {number}" for number in range(10)]
    assert contents(outbox, limit=3) == ["turn 0", "turn 1", "turn 2"]
    assert outbox.depth() == 10
    assert outbox.settle(batch, batch.operations[:4])
    assert contents(outbox)[0] == "turn 4"


def test_a_batch_is_bounded_in_size_but_never_empty(outbox: Outbox) -> None:
    for letter in "abc":
        put_turn(outbox, "x", "s", letter * 1000)
    batch = outbox.take(100, 1500)
    assert batch is not None
    assert len(batch.operations) == 1


def test_everything_given_is_kept(outbox: Outbox) -> None:
    governance = {"aliases": {"a": "b"}}
    outbox.put("replace_memory", "Raw:Key", {"target": "user", "content": "é 日本 🙂", "n": 1.5}, governance)
    (operation,) = batch_of(outbox).operations
    assert (operation.op, operation.identity) == ("replace_memory", "Raw:Key")
    assert json.loads(operation.arguments) == {"target": "user", "content": "é 日本 🙂", "n": 1.5}
    assert json.loads(operation.governance or "") == governance
    outbox.put("add_memory", None, {"content": "x"})
    operation = batch_of(outbox).operations[-1]
    assert operation.identity is None
    assert operation.governance is None


def test_what_postgres_cannot_hold_is_cleaned(outbox: Outbox) -> None:
    metadata = {"k\0ey": ["\udc80", float("nan"), datetime(2026, 1, 2, tzinfo=UTC), UUID(int=1)]}
    outbox.put("append_turn", "a\0b", {"content": "nul \0 half \ud83d end", "metadata": metadata})
    (operation,) = batch_of(outbox).operations
    assert operation.identity == "a b"
    arguments = json.loads(operation.arguments)
    assert arguments["content"] == "nul   half � end"
    assert arguments["metadata"] == {"k ey": ["�", None, "2026-01-02T00:00:00+00:00", str(UUID(int=1))]}


def test_an_argument_that_cannot_be_said_is_left_out_and_the_rest_kept(outbox: Outbox) -> None:
    circular: dict[str, Any] = {}
    circular["self"] = circular
    put_turn(outbox, "x", "s", "kept", metadata=circular)
    assert contents(outbox) == ["kept"]
    assert "metadata" not in json.loads(batch_of(outbox).operations[0].arguments)


def test_a_turn_happened_when_it_was_put(outbox: Outbox) -> None:
    before = datetime.now(UTC)
    put_turn(outbox, "x", "s", "without")
    given = datetime(2020, 5, 6, 7, tzinfo=UTC)
    put_turn(outbox, "x", "s", "with", ts=given)
    put_turn(outbox, "x", "s", "local", ts=datetime(2020, 5, 6, 7))  # noqa: DTZ001 (as a caller may)
    times = [datetime.fromisoformat(json.loads(o.arguments)["ts"]) for o in batch_of(outbox).operations]
    assert before <= times[0] <= datetime.now(UTC)
    assert times[1] == given
    assert times[2].tzinfo is not None


def test_counts_and_age(outbox: Outbox) -> None:
    assert outbox.counts() == module.Counts(0, 0, 0)
    assert outbox.oldest() is None
    put_turn(outbox, "x", "s", "one")
    oldest = outbox.oldest()
    assert oldest is not None
    assert timedelta(0) <= datetime.now(UTC) - oldest < timedelta(minutes=1)
    put_turn(outbox, "x", "s", "two")
    batch = batch_of(outbox)
    job = VectorJob("turn", 7, b"h", "one", "x", None)
    outbox.settle(batch, batch.operations[:1], [job], [Refusal(batch.operations[1], "MV001", "no")])
    assert outbox.counts() == module.Counts(waiting=0, sent=1, poison=1)


def test_listeners_hear_of_every_put(outbox: Outbox) -> None:
    heard: list[int] = []

    def listener() -> None:
        heard.append(1)

    outbox.subscribe(listener)
    outbox.subscribe(listener)
    put_turn(outbox, "x", "s", "one")
    assert heard == [1]
    outbox.unsubscribe(listener)
    put_turn(outbox, "x", "s", "two")
    assert heard == [1]


# -- the file --


def test_one_object_per_home_also_by_another_name(tmp_path: Path, outbox: Outbox, home: Path) -> None:
    home.mkdir()
    alias = tmp_path / "alias"
    alias.symlink_to(home)
    assert Outbox.open(alias) is outbox
    assert Outbox.open(str(home)) is outbox
    assert Outbox.open(tmp_path / "other") is not outbox


def test_file_and_folder_are_their_owners_alone(home: Path, outbox: Outbox) -> None:
    folder = home / "hermes-pgsql"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    before = os.umask(0)
    try:
        put_turn(outbox, "x", "s", "secret")
    finally:
        os.umask(before)
    assert outbox.path == folder / "outbox.db"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert set(modes) >= {"outbox.db", "outbox.db-wal"}
    assert set(modes.values()) == {0o600}


def test_the_file_says_its_format(outbox: Outbox) -> None:
    put_turn(outbox, "x", "s", "one")
    with sqlite3.connect(outbox.path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (3,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


def test_what_a_dead_process_put_is_there(home: Path, outbox: Outbox) -> None:
    finish(python(PUT + "os._exit(0)", home, "x", 50))
    assert contents(outbox) == [str(number) for number in range(50)]


def test_many_threads_and_processes_on_one_home(home: Path, outbox: Outbox) -> None:
    processes = [python(PUT, home, f"process {number}", 100) for number in range(3)]

    def put(name: str) -> None:
        for number in range(100):
            put_turn(outbox, name, "s", str(number))

    threads = [threading.Thread(target=put, args=(f"thread {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in processes:
        finish(process)
    by_writer: dict[str | None, list[str]] = {}
    for operation in batch_of(outbox).operations:
        by_writer.setdefault(operation.identity, []).append(json.loads(operation.arguments)["content"])
    assert len(by_writer) == 7
    assert all(found == [str(number) for number in range(100)] for found in by_writer.values())
    assert outbox.in_memory() == 0


def test_a_home_that_was_deleted_is_made_again(home: Path, outbox: Outbox) -> None:
    put_turn(outbox, "x", "s", "one")
    assert outbox.claim("text")
    outbox.release("text")
    shutil.rmtree(home)
    put_turn(outbox, "x", "s", "two")
    assert outbox.problem is None
    assert contents(outbox) == ["two"]
    assert outbox.path.exists()
    assert outbox.claim("text")
    assert (home / "hermes-pgsql" / "outbox.lock").exists()
    outbox.release("text")


# -- memory files --


def test_markers_of_one_file_become_one_at_the_place_of_the_last(outbox: Outbox, tmp_path: Path) -> None:
    source = uuid4()
    outbox.put_file("x", "memory", tmp_path / "MEMORY.md", source)
    outbox.put_file("x", "user", tmp_path / "USER.md", source)
    put_turn(outbox, "x", "s", "between")
    last = outbox.put_file("x", "memory", tmp_path / "MEMORY.md", source)
    operations = batch_of(outbox).operations
    assert [operation.op for operation in operations] == ["sync_memories", "append_turn", "sync_memories"]
    assert json.loads(operations[0].arguments)["target"] == "user"
    assert operations[2].op_id == str(last)
    assert json.loads(operations[2].arguments) == {
        "target": "memory",
        "source": str(source),
        "path": str(tmp_path / "MEMORY.md"),
    }


def test_a_marker_put_while_an_earlier_one_is_under_way_stays(outbox: Outbox, tmp_path: Path) -> None:
    outbox.put_file("x", "memory", tmp_path / "MEMORY.md", uuid4())
    under_way = batch_of(outbox)
    again = outbox.put_file("x", "memory", tmp_path / "MEMORY.md", uuid4())
    assert outbox.settle(under_way, under_way.operations)
    assert [operation.op_id for operation in batch_of(outbox).operations] == [str(again)]


def test_a_sent_file_answers_for_earlier_refusals_of_it(outbox: Outbox, tmp_path: Path) -> None:
    for _time in range(2):
        outbox.put_file("x", "memory", tmp_path / "MEMORY.md", uuid4())
        batch = batch_of(outbox)
        outbox.settle(batch, [], [], [Refusal(batch.operations[0], "file", "unreadable")])
        assert outbox.counts().poison == 1
    outbox.put_file("x", "memory", tmp_path / "MEMORY.md", uuid4())
    settle_all(outbox)
    assert outbox.counts() == module.Counts(0, 0, 0)


# -- vectors --


def test_vectors_wait_in_order_and_leave_when_settled(outbox: Outbox) -> None:
    put_turn(outbox, "x", "s", "one")
    batch = batch_of(outbox)
    jobs = [VectorJob("turn", row, bytes([row]), f"text {row}", "x", '{"a":1}') for row in (3, 1, 2)]
    outbox.settle(batch, batch.operations, jobs)
    assert outbox.next_vector() == 0
    taken = outbox.take_vectors(2, 10**9)
    assert taken is not None
    assert [(job.row_id, job.content_hash, job.content) for job in taken.jobs] == [
        (3, b"\3", "text 3"),
        (1, b"\1", "text 1"),
    ]
    assert taken.jobs[0].governance == '{"a":1}'
    later = time.time() + 1000
    outbox.settle_vectors(taken, taken.jobs[:1], [(taken.jobs[1], later)])
    rest = outbox.take_vectors(10, 10**9)
    assert rest is not None
    assert [job.row_id for job in rest.jobs] == [2]
    outbox.settle_vectors(rest, rest.jobs)
    assert outbox.take_vectors(10, 10**9) is None
    assert outbox.next_vector() == later
    assert outbox.counts().sent == 1


def test_a_text_that_changed_while_it_was_embedded_keeps_its_place(outbox: Outbox) -> None:
    put_turn(outbox, "x", "s", "one")
    batch = batch_of(outbox)
    outbox.settle(batch, batch.operations, [VectorJob("entry", 1, b"old", "old", "x", None)])
    taken = outbox.take_vectors(10, 10**9)
    assert taken is not None
    outbox.settle(batch, [], [VectorJob("entry", 1, b"new", "new", "x", None)])
    outbox.settle_vectors(taken, taken.jobs)
    rest = outbox.take_vectors(10, 10**9)
    assert rest is not None
    assert [job.content for job in rest.jobs] == ["new"]


def test_entries_that_have_their_vector_are_not_asked_for_again(outbox: Outbox) -> None:
    put_turn(outbox, "x", "s", "one")
    batch = batch_of(outbox)
    jobs = [VectorJob("entry", 1, b"a", "a", "x", None), VectorJob("entry", 2, b"b", "b", "x", None)]
    outbox.settle(batch, [], jobs, model="m")
    taken = outbox.take_vectors(1, 10**9)
    assert taken is not None
    outbox.settle_vectors(taken, taken.jobs, model="m")
    changed = VectorJob("entry", 1, b"changed", "c", "x", None)
    assert outbox.settle(batch, [], jobs, model="m")
    assert outbox.counts().sent == 1
    outbox.settle(batch, [], [changed], model="m")
    assert outbox.counts().sent == 2
    outbox.settle(batch, [], jobs, model="another model")
    again = outbox.take_vectors(10, 10**9)
    assert again is not None
    assert sorted(job.content for job in again.jobs) == ["a", "b"]


def test_outstanding_vectors_can_be_given_up(outbox: Outbox) -> None:
    put_turn(outbox, "x", "s", "one")
    batch = batch_of(outbox)
    outbox.settle(batch, batch.operations, [VectorJob("turn", row, b"h", "t", "x", None) for row in (1, 2)])
    assert outbox.drop_vectors() == 2
    assert outbox.counts() == module.Counts(0, 0, 0)


# -- poison --


def test_what_is_set_aside_is_listed_and_can_be_retried_or_dropped(outbox: Outbox) -> None:
    first = outbox.put("add_memory", "x", {"target": "memory", "content": "first"})
    second = outbox.put("add_memory", "y", {"target": "memory", "content": "second"})
    batch = batch_of(outbox)
    refusals = [Refusal(operation, "MV002", "may not") for operation in batch.operations]
    outbox.settle(batch, [], [], refusals)
    assert outbox.depth() == 0
    listed = outbox.poison()
    assert [(item.op_id, item.op, item.identity) for item in listed] == [
        (first, "add_memory", "x"),
        (second, "add_memory", "y"),
    ]
    assert listed[0].arguments == {"target": "memory", "content": "first"}
    assert (listed[0].code, listed[0].message) == ("MV002", "may not")
    assert listed[0].put_at <= listed[0].failed_at
    assert outbox.retry(first)
    assert not outbox.retry(first)
    assert contents(outbox) == ["first"]
    assert batch_of(outbox).operations[0].op_id == str(first)
    assert outbox.drop(second)
    assert not outbox.drop(second)
    assert outbox.poison() == []


# -- a file that cannot be used --


def test_a_file_in_the_way_keeps_nothing_from_being_accepted(
    home: Path, outbox: Outbox, warnings: pytest.LogCaptureFixture, soon: None
) -> None:
    home.mkdir()
    blocker = home / "hermes-pgsql"
    blocker.write_text("not a folder")
    for number in range(5):
        put_turn(outbox, "x", "s", f"in memory {number}")
    assert outbox.problem is not None
    assert (outbox.depth(), outbox.in_memory(), outbox.fallbacks) == (5, 5, 5)
    assert len(warnings.records) == 1
    assert str(outbox.path) in warnings.records[0].getMessage()
    assert contents(outbox) == [f"in memory {number}" for number in range(5)]
    blocker.unlink()
    put_turn(outbox, "x", "s", "in the file")
    assert outbox.problem is None
    assert outbox.in_memory() == 0
    assert contents(outbox) == [*(f"in memory {number}" for number in range(5)), "in the file"]
    assert outbox.path.exists()


def test_what_is_in_memory_is_served_like_the_rest(home: Path, outbox: Outbox) -> None:
    home.mkdir()
    (home / "hermes-pgsql").write_text("")
    put_turn(outbox, "x", "s", "one")
    put_turn(outbox, "x", "s", "two")
    batch = batch_of(outbox)
    job = VectorJob("turn", 1, b"h", "one", "x", None)
    assert outbox.settle(batch, batch.operations[:1], [job], [Refusal(batch.operations[1], "MV001", "m")])
    assert outbox.counts() == module.Counts(0, 1, 1)
    vectors = outbox.take_vectors(10, 10**9)
    assert vectors is not None
    assert outbox.settle_vectors(vectors, vectors.jobs)
    assert outbox.retry(outbox.poison()[0].op_id)
    assert contents(outbox) == ["two"]


def test_the_file_is_left_alone_for_a_while_after_it_failed(home: Path, outbox: Outbox) -> None:
    home.mkdir()
    blocker = home / "hermes-pgsql"
    blocker.write_text("")
    put_turn(outbox, "x", "s", "one")
    blocker.unlink()
    put_turn(outbox, "x", "s", "two")
    assert outbox.in_memory() == 2
    assert not outbox.path.exists()


def test_a_file_that_is_no_database_is_set_aside(outbox: Outbox, warnings: pytest.LogCaptureFixture) -> None:
    outbox.path.parent.mkdir(parents=True)
    outbox.path.write_bytes(b"this was never a database " * 1000)
    put_turn(outbox, "x", "s", "one")
    assert contents(outbox) == ["one"]
    assert outbox.in_memory() == 0
    (kept,) = outbox.path.parent.glob("outbox.db.corrupt-*")
    assert kept.read_bytes().startswith(b"this was never")
    assert [str(kept.name) in record.getMessage() for record in warnings.records] == [True]


def test_a_file_that_is_damaged_while_in_use_is_set_aside(outbox: Outbox) -> None:
    for number in range(200):
        put_turn(outbox, "x", "s", f"lost {number} " + "x" * 500)
    db = sqlite3.connect(outbox.path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    with outbox.path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(outbox.path.stat().st_size - 4096))
    for number in range(3):
        put_turn(outbox, "x", "s", f"kept {number}")
    assert outbox.depth() == 3
    assert contents(outbox) == ["kept 0", "kept 1", "kept 2"]
    assert len([path for path in outbox.path.parent.iterdir() if path.name.endswith(str(os.getpid()))]) == 1


def test_a_file_of_a_newer_version_is_not_touched(outbox: Outbox, soon: None) -> None:
    outbox.path.parent.mkdir(parents=True)
    db = sqlite3.connect(outbox.path)
    db.execute("PRAGMA user_version = 99")
    db.execute("CREATE TABLE future (x)")
    db.close()
    put_turn(outbox, "x", "s", "one")
    assert outbox.in_memory() == 1
    assert "format 99" in (outbox.problem or "")
    db = sqlite3.connect(outbox.path)
    assert db.execute("SELECT name FROM sqlite_schema").fetchall() == [("future",)]
    db.close()


def test_a_file_that_somebody_locks_delays_put_only_so_long(outbox: Outbox, soon: None) -> None:
    put_turn(outbox, "x", "s", "before")
    other = sqlite3.connect(outbox.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    put_turn(outbox, "x", "s", "while locked")
    assert outbox.in_memory() == 1
    other.execute("COMMIT")
    other.close()
    put_turn(outbox, "x", "s", "after")
    assert contents(outbox) == ["before", "while locked", "after"]


FULL = """
import json, resource, sys
from hermes_pgsql import outbox as module
outbox = module.Outbox.open(sys.argv[1])
outbox.put("append_turn", "x", {"content": "0"})
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, limits[1]))
for number in range(1, 50):
    outbox.put("append_turn", "x", {"content": str(number), "metadata": {"filling": "y" * 4000}})
assert outbox.problem is not None
assert 1 < outbox.in_memory() < 50, outbox.in_memory()
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
module.RETRY_AFTER, outbox._retry_at = 0, 0
outbox.put("append_turn", "x", {"content": "50"})
assert outbox.problem is None
assert outbox.in_memory() == 0
"""


def test_a_full_disk_loses_nothing_while_the_process_lives(home: Path, outbox: Outbox) -> None:
    finish(python(FULL, home))
    assert contents(outbox) == [str(number) for number in range(51)]


# -- claims --


CLAIM = """
import sys, time
from hermes_pgsql.outbox import Outbox
outbox = Outbox.open(sys.argv[1])
print(outbox.claim("text"), flush=True)
sys.stdin.readline()
outbox.release("text")
print("released", flush=True)
sys.stdin.readline()
"""


def test_one_process_at_a_time_may_send(home: Path, outbox: Outbox) -> None:
    assert outbox.claim("text")
    assert not outbox.claim("text")
    assert outbox.claim("vectors")
    other = python(CLAIM, home)
    assert other.stdout is not None
    assert other.stdin is not None
    assert other.stdout.readline() == "False\n"
    other.communicate("\n\n", timeout=120)
    outbox.release("text")
    outbox.release("vectors")
    other = python(CLAIM, home)
    assert other.stdout is not None
    assert other.stdin is not None
    assert other.stdout.readline() == "True\n"
    assert not outbox.claim("text")
    assert outbox.claim("vectors")
    other.stdin.write("\n")
    other.stdin.flush()
    assert other.stdout.readline() == "released\n"
    assert outbox.claim("text")
    other.communicate("\n", timeout=120)


def test_the_death_of_a_process_frees_its_claim(home: Path, outbox: Outbox) -> None:
    other = python(CLAIM, home)
    assert other.stdout is not None
    assert other.stdout.readline() == "True\n"
    assert not outbox.claim("text")
    other.send_signal(signal.SIGKILL)
    other.wait(120)
    other.communicate()
    assert outbox.claim("text")


# -- forks --


def test_parent_and_child_of_a_fork_both_go_on(home: Path, outbox: Outbox) -> None:
    put_turn(outbox, "parent", "s", "before")
    assert outbox.claim("text")

    def child() -> None:
        assert not outbox.claim("text")
        for number in range(50):
            put_turn(outbox, "child", "s", str(number))
        os._exit(0 if outbox.in_memory() == 0 else 3)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    for number in range(50):
        put_turn(outbox, "parent", "s", str(number))
    process.join(30)
    assert process.exitcode == 0
    found = [(o.identity, json.loads(o.arguments)["content"]) for o in batch_of(outbox).operations]
    assert len(found) == len(set(found)) == 101
    assert found[0] == ("parent", "before")
    for writer in ("parent", "child"):
        numbers = [content for identity, content in found if identity == writer and content != "before"]
        assert numbers == [str(number) for number in range(50)]


def test_a_child_leaves_what_is_in_memory_to_its_parent(home: Path, outbox: Outbox) -> None:
    home.mkdir()
    (home / "hermes-pgsql").write_text("")
    put_turn(outbox, "x", "s", "parent's")

    def child() -> None:
        put_turn(outbox, "x", "s", "child's")
        os._exit(0 if contents(outbox) == ["child's"] else 3)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(30)
    assert process.exitcode == 0
    assert contents(outbox) == ["parent's"]


def test_forks_while_other_threads_put(outbox: Outbox) -> None:
    stop = threading.Event()
    count = 0

    def put() -> None:
        nonlocal count
        while not stop.is_set():
            put_turn(outbox, "parent", "s", "x")
            count += 1

    thread = threading.Thread(target=put)
    thread.start()

    def child() -> None:
        put_turn(outbox, "child", "s", "y")
        os._exit(0)

    for _number in range(10):
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join(30)
        assert process.exitcode == 0
    stop.set()
    thread.join(30)
    assert not thread.is_alive()
    assert outbox.depth() == count + 10


# -- marks --


def test_a_mark_is_reached_when_all_before_it_is_sent(outbox: Outbox) -> None:
    put_turn(outbox, "x", "s", "one")
    put_turn(outbox, "x", "s", "two")
    mark = outbox.mark()
    put_turn(outbox, "x", "s", "three")
    assert not outbox.reached(mark)
    batch = batch_of(outbox)
    outbox.settle(batch, batch.operations[:1])
    assert not outbox.reached(mark)
    outbox.settle(batch, batch.operations[1:2])
    assert outbox.reached(mark)
    settle_all(outbox)
    put_turn(outbox, "x", "s", "four")
    assert outbox.reached(mark)


def test_a_task_is_due_once_per_period_for_all_processes(home: Path, outbox: Outbox) -> None:
    assert outbox.due("housekeeping", 600)
    assert not outbox.due("housekeeping", 600)
    assert outbox.due("housekeeping", 0)
    script = "import sys; from hermes_pgsql.outbox import Outbox; o = Outbox.open(sys.argv[1]);"
    assert finish(python(script + "print(o.due('housekeeping', 600))", home)) == "False\n"


def test_a_long_log_is_cleared_when_there_is_time(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(100):
        put_turn(outbox, "x", "s", f"{number}" + "x" * 8000)
    size = outbox.path.stat().st_size
    monkeypatch.setattr(module, "TIDY_ABOVE", 10**9)
    outbox.tidy()
    assert outbox.path.stat().st_size == size
    monkeypatch.setattr(module, "TIDY_ABOVE", 1000)
    outbox.tidy()
    assert outbox.path.stat().st_size > size
    assert wait_until(lambda: outbox.depth() == 100, 1)


def test_why_vectors_are_outstanding_is_one_line(tmp_path: Path) -> None:
    outbox = Outbox.open(tmp_path)
    outbox.note_vector_trouble("It cannot be reached.\nCheck that it runs.")
    trouble = outbox.vector_trouble()
    assert trouble is not None
    assert trouble.message == "It cannot be reached. Check that it runs."
