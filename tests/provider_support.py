"""A home and a provider in it, for the tests of the host side."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

sys.path.insert(0, str(Path(__file__).resolve().parent / "host"))

from model_server import ModelServer, embed

from hermes_pgsql import drain
from hermes_pgsql.provider import PgvectorProvider

__all__ = ["HomeUnderTest", "ModelServer", "embed", "empty_home", "outage", "wait_for"]


@contextmanager
def empty_home(database: Any, path: Path) -> Iterator[HomeUnderTest]:
    """A home and an empty database; after it, nothing of the home comes to the database any more."""
    _empty(database)
    try:
        yield HomeUnderTest(path, database.runtime_dsn, database.admin_dsn)
    finally:
        for each in list(drain._drains.values()):
            for home in list(each._state.homes.values()):
                each.detach(home.outbox)
                wait_for(lambda outbox=home.outbox: outbox.claim("text"))
                home.outbox.release("text")


def _empty(database: Any) -> None:
    while True:
        try:
            with database.admin() as connection:
                connection.execute(
                    "TRUNCATE memvec.memory_entries, memvec.conversations, memvec.memory_agents,"
                    " memvec.memory_agent_edges CASCADE"
                )
        except psycopg.errors.DeadlockDetected:  # with a vector or housekeeping of the test before
            continue
        return


@dataclass
class HomeUnderTest:
    """A HERMES_HOME and what is in its database."""

    path: Path
    dsn: str
    admin_dsn: str
    settings: dict[str, Any] = field(default_factory=dict)

    def configure(self, **settings: Any) -> None:
        """Write config.yaml with these settings added to those before."""
        self.settings = {"dsn": self.dsn, **self.settings, **settings}
        self.path.mkdir(parents=True, exist_ok=True)
        document = {"memory": {"provider": "pgvector", "pgvector": self.settings}}
        (self.path / "config.yaml").write_text(json.dumps(document), encoding="utf-8")

    def provider(self, session: str = "s1", theme: str = "marketing", **more: Any) -> PgvectorProvider:
        """A provider as the host makes one, in a session of `theme`."""
        provider = PgvectorProvider()
        given = {
            "hermes_home": str(self.path),
            "platform": "cli",
            "agent_context": "primary",
            "agent_identity": "default",
            "agent_workspace": "hermes",
            "gateway_session_key": theme,
        }
        given = {key: value for key, value in {**given, **more}.items() if value is not None}
        provider.initialize(session, **given)
        return provider

    def write_file(self, name: str, *entries: str) -> None:
        folder = self.path / "memories"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text("\n§\n".join(entries), encoding="utf-8")

    # The database ------------------------------------------------------------

    def query(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.admin_dsn, autocommit=True) as connection:
            return connection.execute(statement, parameters).fetchall()

    def entries(self) -> list[tuple[str, str, str]]:
        return self.query(
            "SELECT agent_identity, target, content FROM memvec.memory_entries ORDER BY agent_identity, id"
        )

    def turns(self) -> list[tuple[str, str, str]]:
        return self.query("SELECT session_id, role, content FROM memvec.conversations ORDER BY ts, id")

    def metadata(self, table: str = "conversations") -> list[Mapping[str, Any]]:
        statement = sql.SQL("SELECT metadata FROM memvec.{} ORDER BY id").format(sql.Identifier(table))
        with psycopg.connect(self.admin_dsn) as connection:
            return [row[0] for row in connection.execute(statement).fetchall()]


def settle(provider: PgvectorProvider, seconds: float = 90.0) -> None:
    """Until everything the provider wrote is in the database. A flush ends early at a sign of an outage."""
    link = provider._link
    assert link is not None
    wait_for(lambda: link.flush(seconds), seconds)


def embedded(home: HomeUnderTest, seconds: float = 90.0) -> None:
    """Until every row has its vector. Before the first one there is no space, and nothing pending."""
    complete = """
        SELECT NOT EXISTS (SELECT FROM memvec.embedding_coverage() WHERE pending > 0)
           AND (EXISTS (SELECT FROM memvec.embedding_spaces)
                OR NOT EXISTS (SELECT FROM memvec.memory_entries WHERE embed
                               UNION ALL SELECT FROM memvec.conversations WHERE embed))
    """
    wait_for(lambda: home.query(complete) == [(True,)], seconds)


def wait_for(condition: Callable[[], object], seconds: float = 90.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "what was waited for did not happen"
        time.sleep(0.02)


class outage:  # noqa: N801 (used as a statement: with outage(database))
    """A database that nobody can connect to for the length of the block."""

    def __init__(self, server_dsn: str, name: str) -> None:
        self.server_dsn = server_dsn
        self.name = name

    def __enter__(self) -> None:
        self._run("ALTER DATABASE {} ALLOW_CONNECTIONS false")
        with psycopg.connect(self.server_dsn, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (self.name,)
            )

    def __exit__(self, *_: object) -> None:
        self._run("ALTER DATABASE {} ALLOW_CONNECTIONS true")

    def _run(self, statement: Any) -> None:
        with psycopg.connect(self.server_dsn, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(sql.Identifier(self.name)))
