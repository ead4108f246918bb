"""What was accepted is stored, once, whatever dies: the process, several of them, or the database."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from conftest import Database
from drain_support import LocalEmbedder, embedded_texts, finish, put_turn, python, turns, wait_until

from hermes_pgsql import embedded, pool
from hermes_pgsql.drain import Drain
from hermes_pgsql.migrate import migrate
from hermes_pgsql.outbox import Counts, Outbox

# Accepts turns as fast as it can, tells when it has accepted them all, and lives on.
WRITER = """
import sys, time
from hermes_pgsql.drain import Drain
from hermes_pgsql.outbox import Outbox
from drain_support import LocalEmbedder, put_turn
home, dsn, theme, prefix, count = sys.argv[1:]
outbox = Outbox.open(home)
Drain.for_dsn(dsn).attach(outbox, LocalEmbedder())
for number in range(int(count)):
    put_turn(outbox, theme, "s", f"{prefix} {number}")
print("accepted", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module", autouse=True)
def space(database: Database) -> None:
    with database.admin() as connection:
        connection.execute("SELECT memvec.add_embedding_space('test-model', 4)")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def theme() -> str:
    return f"theme-{os.urandom(6).hex()}"


@pytest.fixture
def drain(database: Database) -> Iterator[Drain]:
    drain = Drain(database.runtime_dsn)
    yield drain
    drain.stop(10)
    pool.close_all()


def accepted(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "accepted\n"


def killed(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(120)
    process.communicate()


def expected(prefix: str, count: int) -> list[str]:
    return [f"{prefix} {number}" for number in range(count)]


def test_a_process_killed_just_after_its_writes_loses_none(
    database: Database, drain: Drain, home: Path, theme: str
) -> None:
    writer = python(WRITER, home, database.runtime_dsn, theme, "turn", 500)
    accepted(writer)
    time.sleep(0.01)
    killed(writer)
    outbox = Outbox.open(home)
    drain.attach(outbox, LocalEmbedder())
    assert drain.flush_vectors(120, outbox)
    assert turns(database, theme) == expected("turn", 500)
    assert embedded_texts(database, "turn", theme) == set(expected("turn", 500))
    assert outbox.counts() == Counts(0, 0, 0)


def test_processes_killed_again_and_again_double_nothing(
    database: Database, drain: Drain, home: Path, theme: str
) -> None:
    outbox = Outbox.open(home)
    for number in range(1000):
        put_turn(outbox, theme, "s", f"turn {number}")
    for pause in (0.0, 0.02, 0.05, 0.1, 0.2):
        writer = python(WRITER, home, database.runtime_dsn, theme, "none", 0)
        accepted(writer)
        time.sleep(pause)
        killed(writer)
    drain.attach(outbox, LocalEmbedder())
    assert drain.flush_vectors(120, outbox)
    assert turns(database, theme) == expected("turn", 1000)
    assert len(embedded_texts(database, "turn", theme)) == 1000


def test_two_processes_on_one_home_each_keep_their_order(database: Database, home: Path, theme: str) -> None:
    writers = [
        python(WRITER, home, database.runtime_dsn, theme, prefix, 300) for prefix in ("first", "second")
    ]
    for writer in writers:
        accepted(writer)
    outbox = Outbox.open(home)
    assert wait_until(lambda: outbox.counts() == Counts(0, 0, 0))
    for writer in writers:
        finish_writer(writer)
    stored = turns(database, theme)
    assert len(stored) == 600
    for prefix in ("first", "second"):
        assert [content for content in stored if content.startswith(prefix)] == expected(prefix, 300)
    assert len(embedded_texts(database, "turn", theme)) == 600


def finish_writer(writer: subprocess.Popen[str]) -> None:
    assert writer.stdin is not None
    writer.stdin.write("\n")
    finish(writer)


def test_one_of_two_processes_is_killed_and_the_other_sends_the_rest(
    database: Database, home: Path, theme: str
) -> None:
    first = python(WRITER, home, database.runtime_dsn, theme, "first", 300)
    second = python(WRITER, home, database.runtime_dsn, theme, "second", 300)
    accepted(first)
    killed(first)
    accepted(second)
    outbox = Outbox.open(home)
    assert wait_until(lambda: outbox.counts() == Counts(0, 0, 0))
    finish_writer(second)
    stored = turns(database, theme)
    assert sorted(stored) == sorted(expected("first", 300) + expected("second", 300))


# -- a database that goes away --


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """The root of an embedded server of the module's own, migrated."""
    if not embedded.available():
        pytest.skip("needs the extra `embedded`")
    folder = Path(tempfile.mkdtemp(prefix="hpg", dir="/tmp")).resolve()
    folder.chmod(0o711)
    try:
        migrate(embedded.up(folder / "root").admin_dsn)
        yield folder / "root"
    finally:
        embedded.down(folder / "root")
        shutil.rmtree(folder)


def stored_turns(root: Path, theme: str) -> list[str]:
    query = "SELECT content FROM memvec.conversations WHERE agent_identity = %s ORDER BY id"
    with psycopg.connect(embedded.up(root).admin_dsn) as connection:
        return [content for (content,) in connection.execute(query, [theme]).fetchall()]


@pytest.fixture
def embedded_drain(root: Path) -> Iterator[Drain]:
    drain = Drain(embedded.up(root).runtime_dsn)
    yield drain
    drain.stop(10)
    pool.close_all()


def test_a_database_stopped_amid_the_writes_gets_them_when_it_is_back(
    root: Path, embedded_drain: Drain, home: Path, theme: str
) -> None:
    outbox = Outbox.open(home)
    embedded_drain.attach(outbox, LocalEmbedder())
    stopping = threading.Thread(target=embedded.down, args=(root,))
    for number in range(500):
        if number == 250:
            stopping.start()
        put_turn(outbox, theme, "s", f"turn {number}")
        time.sleep(0.001)
    stopping.join()
    for number in range(500, 520):
        put_turn(outbox, theme, "s", f"turn {number}")
    assert not embedded_drain.flush(30)
    assert embedded_drain.status().last_error is not None
    assert outbox.in_memory() == 0
    embedded.up(root)
    # Nobody asks it to: it notices by itself, and soon.
    assert wait_until(lambda: outbox.counts() == Counts(0, 0, 0))
    assert stored_turns(root, theme) == expected("turn", 520)
    assert outbox.poison() == []


def test_a_database_killed_amid_the_writes_gets_them_when_it_is_back(
    root: Path, embedded_drain: Drain, home: Path, theme: str
) -> None:
    outbox = Outbox.open(home)
    embedded_drain.attach(outbox, LocalEmbedder(), revive=lambda: embedded.up(root))
    pid = embedded.status(root).pid
    assert pid is not None
    for number in range(500):
        if number == 250:
            os.kill(pid, signal.SIGKILL)
        put_turn(outbox, theme, "s", f"turn {number}")
    # ``revive`` starts it again.
    assert wait_until(lambda: outbox.counts() == Counts(0, 0, 0))
    assert stored_turns(root, theme) == expected("turn", 500)


def test_a_database_that_freezes_delays_only(
    root: Path, embedded_drain: Drain, home: Path, theme: str
) -> None:
    outbox = Outbox.open(home)
    embedded_drain.attach(outbox, None)
    put_turn(outbox, theme, "s", "turn 0")
    assert any(embedded_drain.flush(30) for _attempt in range(3))
    with psycopg.connect(embedded.up(root).admin_dsn) as connection:
        backends = "SELECT pid FROM pg_stat_activity WHERE application_name = 'hermes-pgsql'"
        pids = [pid for (pid,) in connection.execute(backends).fetchall()]
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        # Few, to be done before the drain gives the frozen connections up and makes new ones.
        for number in range(1, 20):
            put_turn(outbox, theme, "s", f"turn {number}")
        assert not embedded_drain.flush(1)
        assert outbox.depth() == 19
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert any(embedded_drain.flush(120) for _attempt in range(3))
    assert stored_turns(root, theme) == expected("turn", 20)
