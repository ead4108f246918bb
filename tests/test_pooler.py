"""Through PgBouncer in transaction mode: as without it, with a few server connections for many clients."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conftest import RUNTIME_ROLE, Database
from provider_support import HomeUnderTest, ModelServer, embedded, empty_home, settle, wait_for
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_pgsql import errors, pool
from hermes_pgsql.client import Memvec
from hermes_pgsql.migrate import migrate

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")
pytestmark = pytest.mark.skipif(
    PGBOUNCER is None, reason="PgBouncer is not installed (Debian: apt-get install pgbouncer)"
)

# All defaults but the mode. Two server connections, so that clients take turns on them.
CONFIGURATION = """
[databases]
{name} = host={host} port={port} dbname={name}
[pgbouncer]
pool_mode = transaction
default_pool_size = 2
listen_addr =
listen_port = 6432
unix_socket_dir = {folder}
auth_type = scram-sha-256
auth_file = {folder}/users
"""


@dataclass
class Pooler:
    """A PgBouncer in front of a database, and the logins that it knows."""

    database: Database
    folder: Path
    passwords: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def dsn(self, login: str = RUNTIME_ROLE) -> str:
        return make_conninfo(
            host=str(self.folder),
            port=6432,
            user=login,
            password=self.passwords[login],
            dbname=self.database.name,
        )

    def start(self) -> None:
        given = conninfo_to_dict(self.database.admin_dsn)
        place = {"host": given.get("host", "127.0.0.1"), "port": given.get("port", 5432)}
        text = CONFIGURATION.format(name=self.database.name, folder=self.folder, **place)
        (self.folder / "pgbouncer.ini").write_text(text)
        users = "".join(f'"{login}" "{password}"\n' for login, password in self.passwords.items())
        (self.folder / "users").write_text(users)
        assert PGBOUNCER
        options: dict[str, Any] = {}
        if os.geteuid() == 0:  # it refuses to run as root
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            options = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [PGBOUNCER, str(self.folder / "pgbouncer.ini")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", **options,
            )  # fmt: skip
        wait_for(self.answers)

    def answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "log").read_text()
        with suppress(psycopg.OperationalError), psycopg.connect(self.dsn()):
            return True
        return False

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(60)
            self.process = None


@contextmanager
def pooler_for(database: Database, logins: dict[str, str]) -> Iterator[Pooler]:
    folder = Path(tempfile.mkdtemp(prefix="pgb", dir="/tmp"))  # a socket's path is limited
    here = Pooler(database, folder, logins)
    try:
        here.start()
        yield here
    finally:
        here.stop()
        pool.close_all()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def bound(database: Database) -> dict[str, str]:
    """Two logins, each bound to the theme of its name, and their passwords."""
    found: dict[str, str] = {}
    for _number in range(2):
        login, dsn = database.make_login("memvec_runtime")
        found[login] = str(conninfo_to_dict(dsn)["password"])
        with database.admin() as connection:
            connection.execute("SELECT memvec.bind_role(%s, %s)", [login, login])
    return found


@pytest.fixture(scope="module")
def pooler(database: Database, bound: dict[str, str]) -> Iterator[Pooler]:
    # The limits of the login are set for a database, and this one is a clone.
    migrate(database.admin_dsn, RUNTIME_ROLE)
    hermes = {RUNTIME_ROLE: database.server.runtime_password or secrets.token_hex(8)}
    with pooler_for(database, hermes | bound) as here:
        yield here


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    server = ModelServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def home(pooler: Pooler, model: ModelServer, tmp_path: Path) -> Iterator[HomeUnderTest]:
    with empty_home(pooler.database, tmp_path / "home") as here:
        here.dsn = pooler.dsn()
        here.configure(embed_url=model.url.removesuffix("/v1"), embed_model="words", prefetch_budget=7.0)
        yield here


def test_an_agent_writes_and_recalls(home: HomeUnderTest) -> None:
    provider = home.provider("s1")
    for number in range(100):
        provider.on_memory_write("add", "memory", f"The locker number {number} is for guests.")
    provider.on_memory_write("add", "memory", "The backup window of the cluster is 02:00 UTC.")
    provider.sync_turn(
        "who cleans the greenhouse on the roof of the house today?",
        "Ada cleans the greenhouse, as on every Monday, at nine o'clock.",
    )
    settle(provider)
    embedded(home)
    again = home.provider("s2")
    assert "02:00 UTC" in again.prefetch("when is the backup window of the cluster?")
    assert "every Monday" in again.handle_tool_call(
        "recall_conversation", {"query": "who cleans the greenhouse"}
    )
    assert "02:00 UTC" in again.handle_tool_call("recall_memory", {"query": "backup window"})
    done = Memvec(home.dsn).housekeeping()
    assert done is not None
    assert len(home.entries()) == 101


def test_many_clients_share_few_connections(pooler: Pooler) -> None:
    def work(number: int) -> int:
        memvec = Memvec(pooler.dsn())
        memvec.add_memory(f"crowd-{number}", "memory", f"the word of client {number} is swan{number}")
        return len(memvec.recall_memory(f"crowd-{number}", f"swan{number}"))

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(work, range(40))) == [1] * 40
    with pooler.database.admin() as connection:
        ours = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s AND datname = current_database()"
        assert connection.execute(ours, [RUNTIME_ROLE]).fetchone() <= (2,)  # type: ignore[operator]


def test_bound_logins_keep_to_their_themes(pooler: Pooler, bound: dict[str, str]) -> None:
    one, two = bound
    for _round in range(5):
        for login, other in ((one, two), (two, one)):
            memvec = Memvec(pooler.dsn(login))
            memvec.add_memory(login, "memory", f"the note of {login}")
            assert [row.agent_identity for row in memvec.recall_memory(login, "note")] == [login]
            assert [row.agent_identity for row in memvec.recall_memory(login, "note", scope="all")] == [login]
            with pytest.raises(errors.HermesPgsqlError) as refused:
                memvec.add_memory(other, "memory", "not mine")
            assert getattr(refused.value, "sqlstate", "") == "MV002"


def test_the_limits_of_the_login_hold_and_a_call_that_takes_too_long_is_stopped(pooler: Pooler) -> None:
    with pool.connection(pooler.dsn()) as connection:
        assert connection.execute("SHOW statement_timeout").fetchone() == ("30s",)
        assert connection.execute("SHOW lock_timeout").fetchone() == ("5s",)
    hurried = Memvec(pooler.dsn(), timeout=2)
    with psycopg.connect(pooler.database.admin_dsn) as holder:
        holder.execute("LOCK TABLE memvec.memory_entries IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(errors.HermesPgsqlError) as stopped:
            hurried.recall_memory("ops", "anything")
        assert errors.is_retryable(stopped.value)
    for _ in range(20):
        assert hurried.recall_memory("ops", "anything") == []


def test_nothing_is_left_on_the_shared_connections(pooler: Pooler) -> None:
    memvec = Memvec(pooler.dsn())
    for number in range(30):
        memvec.append_turn("ops", "s", "user", f"turn number {number}")
    with pool.connection(pooler.dsn()) as connection:
        for question in (
            "SELECT count(*) FROM pg_prepared_statements",
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
            "SELECT count(*) FROM pg_listening_channels()",
            "SELECT count(*) FROM pg_class WHERE relpersistence = 't'",
        ):
            assert connection.execute(question.encode()).fetchone() == (0,), question


def test_a_pooler_that_is_restarted_is_not_noticed(pooler: Pooler, home: HomeUnderTest) -> None:
    provider = home.provider("s3", "restarts")
    provider.on_memory_write("add", "memory", "written before the restart of the pooler")
    settle(provider)
    pooler.stop()
    back = threading.Thread(target=pooler.start)
    provider.on_memory_write("add", "memory", "written during the restart of the pooler")
    back.start()
    back.join()
    settle(provider)
    assert "during" in provider.handle_tool_call("recall_memory", {"query": "written"})
    assert len(Memvec(home.dsn).recall_memory("restarts", "restart of the pooler")) == 2


def test_settings_in_the_connection_string_are_refused_by_name(pooler: Pooler) -> None:
    dsn = make_conninfo(pooler.dsn(), options="-c work_mem=8MB")
    with pytest.raises(errors.DatabaseUnavailable) as refused:
        Memvec(dsn).schema_version()
    assert "pooler" in refused.value.message
    assert "ignore_startup_parameters" in refused.value.hint
    assert pooler.passwords[RUNTIME_ROLE] not in str(refused.value)
