"""The real hermes-agent, in an environment of its own, with this package installed as a user would.

`make test-host` makes that environment and says in HERMES_PGSQL_TEST_HOST where it is; without it these
tests are left out. The model is scripted (model_server.py), the database the one of all tests.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from host_home import Home
from model_server import ModelServer, says

HOST = Path(named).resolve() if (named := os.environ.get("HERMES_PGSQL_TEST_HOST")) else None
collect_ignore_glob = [] if HOST else ["test_*.py"]


@pytest.fixture(scope="session")
def model() -> Iterator[ModelServer]:
    server = ModelServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def first_run(model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the host has run once: the first run of a home takes three times as long."""
    assert HOST
    path = tmp_path_factory.mktemp("first")
    home = Home(path, HOST / "bin", "", "", model)
    home.configure()
    (path / "config.yaml").write_text(
        (path / "config.yaml").read_text().replace("provider: pgvector", "provider: ''")
    )
    model.script(says("Hello."))
    home.ask("Hello there, this is the first run of this home.")
    return path


@pytest.fixture
def home(database: Any, model: ModelServer, first_run: Path, tmp_path: Path) -> Home:
    """A home of one's own, with the provider found by the host as `hermes-pgsql install` makes it found."""
    assert HOST
    path = tmp_path / "home"
    shutil.copytree(
        first_run, path, ignore=shutil.ignore_patterns("state.db*", "sessions", "logs", "*.lock", "*.pid")
    )
    here = Home(path, HOST / "bin", database.runtime_dsn, database.admin_dsn, model)
    here.configure()
    here.run("hermes-pgsql", "install")
    model.embed_status, model.embed_delay = 200, 0.0
    with psycopg.connect(database.admin_dsn, autocommit=True) as connection:
        connection.execute(
            "TRUNCATE memvec.memory_entries, memvec.conversations, memvec.memory_agent_edges CASCADE"
        )
    return here
