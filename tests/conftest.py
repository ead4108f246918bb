"""A migrated database for every test module.

One server serves the whole run: the scratch server that PGSQL_TEST_ADMIN_DSN names (a superuser there),
else a throw-away one (PostgreSQL 18, or 16 with PGSQL_TEST_PG=16). A template database is migrated once and
cloned for each module that asks for `database`. Roles belong to the server, not to a database: a test that
changes `hermes` or binds a role of its own affects all modules, so make roles with a name of your own
(`Database.make_login`) and they are dropped at the end.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from pgserver import throwaway_server, wheel_installation  # noqa: E402

RUNTIME_ROLE = "hermes"


@dataclass
class TestServer:
    """The server of this run. `admin_dsn` is a superuser's; `runtime_password` is None where none is
    needed."""

    __test__ = False

    admin_dsn: str
    bin_dir: Path
    runtime_password: str | None = None
    logins: list[str] = field(default_factory=list)

    def execute(self, statement: sql.Composable) -> None:
        with psycopg.connect(self.admin_dsn, autocommit=True) as connection:
            connection.execute(statement)

    def create_database(self, name: str, template: str | None = None) -> None:
        clone = sql.SQL(" TEMPLATE {}").format(sql.Identifier(template)) if template else sql.SQL("")
        self.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)) + clone)

    def drop_database(self, name: str) -> None:
        self.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def dsn(self, database: str, user: str | None = None, password: str | None = None) -> str:
        if user is None:
            return make_conninfo(self.admin_dsn, dbname=database)
        return make_conninfo(self.admin_dsn, dbname=database, user=user, password=password or "")


@dataclass(frozen=True)
class Database:
    """A migrated database of one's own: DSNs of the superuser and of the runtime login `hermes`."""

    server: TestServer
    name: str

    @property
    def admin_dsn(self) -> str:
        return self.server.dsn(self.name)

    @property
    def runtime_dsn(self) -> str:
        return self.server.dsn(self.name, RUNTIME_ROLE, self.server.runtime_password)

    def admin(self) -> psycopg.Connection:
        """An autocommit connection as superuser, to arrange and to look at what no login may see."""
        return psycopg.connect(self.admin_dsn, autocommit=True)

    def runtime(self) -> psycopg.Connection:
        """An autocommit connection as `hermes`."""
        return psycopg.connect(self.runtime_dsn, autocommit=True)

    def make_login(self, group: str) -> tuple[str, str]:
        """A new login in one of the groups (`memvec_runtime`, …): its name and its DSN."""
        name, password = f"t_{secrets.token_hex(4)}", secrets.token_hex(16)
        login = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} IN ROLE {}")
        self.server.execute(login.format(sql.Identifier(name), sql.Literal(password), sql.Identifier(group)))
        self.server.logins.append(name)
        return name, self.server.dsn(self.name, name, password)

    def psql(self, script: str, *arguments: str) -> str:
        """Run a script with psql as superuser and return what it printed. Errors: CalledProcessError."""
        command = [
            str(self.server.bin_dir / "psql"),
            "-XqAt",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            self.admin_dsn,
            *arguments,
        ]
        done = subprocess.run(command, input=script, capture_output=True, text=True, check=True)
        return done.stdout


@pytest.fixture(scope="session")
def server() -> Iterator[TestServer]:
    given = os.environ.get("PGSQL_TEST_ADMIN_DSN")
    if given:
        here = TestServer(given, wheel_installation(18) / "bin")
        yield here
        drop_logins(here)
        return
    with throwaway_server(int(os.environ.get("PGSQL_TEST_PG", "18"))) as started:
        yield TestServer(started.dsn(), started.bin_dir)


def drop_logins(server: TestServer) -> None:
    for login in server.logins:
        server.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(login)))


@pytest.fixture(scope="session")
def template(server: TestServer) -> Iterator[str]:
    """The name of a migrated database without data. Clone it; nobody may stay connected to it."""
    from hermes_pgsql.migrate import migrate

    name = f"memvec_template_{os.getpid()}"
    server.create_database(name)
    migrate(server.dsn(name), runtime_role=RUNTIME_ROLE)
    if login_needs_password(server, name):
        server.runtime_password = secrets.token_hex(16)
        change = sql.SQL("ALTER ROLE {} PASSWORD {}")
        server.execute(change.format(sql.Identifier(RUNTIME_ROLE), sql.Literal(server.runtime_password)))
    yield name
    server.drop_database(name)


def login_needs_password(server: TestServer, database: str) -> bool:
    try:
        psycopg.connect(server.dsn(database, RUNTIME_ROLE)).close()
    except psycopg.OperationalError:
        return True
    return False


@pytest.fixture(scope="module")
def database(server: TestServer, template: str) -> Iterator[Database]:
    """A clone of the template that the module's tests share."""
    name = f"memvec_{secrets.token_hex(4)}"
    server.create_database(name, template)
    yield Database(server, name)
    server.drop_database(name)


@pytest.fixture
def empty_database(server: TestServer) -> Iterator[Database]:
    """A database without our schema, for one test."""
    name = f"memvec_{secrets.token_hex(4)}"
    server.create_database(name)
    yield Database(server, name)
    server.drop_database(name)
