"""docs/uninstall.md is followed to the letter, and nothing is left."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from conftest import ROOT

from hermes_pgsql import embedded
from hermes_pgsql.client import Memvec
from hermes_pgsql.migrate import migrate
from pgserver import Server, run_sql, throwaway_server

GUIDE = (ROOT / "docs" / "uninstall.md").read_text(encoding="utf-8")

# Everything that belongs to the server, and what was set for or granted to anybody in the database.
FACTS = """
SELECT 'role ' || rolname FROM pg_roles
UNION ALL SELECT 'schema ' || nspname FROM pg_namespace
UNION ALL SELECT 'extension ' || extname FROM pg_extension
UNION ALL SELECT 'setting ' || setdatabase || setrole || setconfig::text FROM pg_db_role_setting
UNION ALL SELECT 'default ' || defaclrole || defaclacl::text FROM pg_default_acl
UNION ALL SELECT 'database ' || coalesce(datacl::text, '') FROM pg_database WHERE datname = current_database()
UNION ALL SELECT 'type ' || typname FROM pg_type WHERE typnamespace = 'public'::regnamespace
UNION ALL SELECT 'member ' || roleid || member FROM pg_auth_members
ORDER BY 1
"""


@pytest.fixture
def fresh() -> Iterator[Server]:
    """A server of one's own, because roles are shared by the databases of a server."""
    with throwaway_server(16) as server:
        run_sql(server.dsn(), "CREATE DATABASE fleet")
        run_sql(server.dsn("fleet"), "GRANT CONNECT ON DATABASE fleet TO public")
        yield server


def facts(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as connection:
        return [fact for (fact,) in connection.execute(FACTS.encode()).fetchall()]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, flags=re.DOTALL | re.MULTILINE)


def test_nothing_is_left_in_a_database(fresh: Server) -> None:
    dsn = fresh.dsn("fleet")
    before = facts(dsn)
    migrate(dsn, "hermes")
    memvec = Memvec(fresh.dsn("fleet", "hermes"))
    space = memvec.hello("ops", "words", 2).space_id
    memvec.add_memory("ops", "memory", "the ferry leaves at nine", embedding=[1.0, 0.0], space=space)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT memvec.bind_role('hermes', 'ops')")
    assert facts(dsn) != before
    statements = [line for block in blocks("sql") for line in block.strip().split("\n")]
    assert len(statements) == 4
    from hermes_pgsql import pool

    pool.close_all()
    for statement in statements:
        run_sql(dsn, statement)
    # A database whose rights were never changed has none on record; taking ours back leaves the defaults.
    assert [f for f in facts(dsn) if not f.startswith("database ")] == [
        f for f in before if not f.startswith("database ")
    ]
    assert "hermes" not in str(facts(dsn))
    assert "memvec" not in str(facts(dsn))


def run(command: str, environment: dict[str, str]) -> str:
    """A line of the guide, by the shell, with `hermes-pgsql` as this package's."""
    program = f'hermes-pgsql() {{ "{sys.executable}" -m hermes_pgsql "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-euc", program + command],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


def commands(heading: str) -> list[str]:
    section = GUIDE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\$ (.*?)(?:\s+#.*)?$", section, flags=re.MULTILINE)


def test_nothing_is_left_of_an_embedded_server_and_in_a_home() -> None:
    if not embedded.available():
        pytest.skip("needs the extra `embedded`")
    with tempfile.TemporaryDirectory(prefix="hpg", dir="/tmp") as name:
        place = Path(name).resolve()
        place.chmod(0o711)
        root, home = place / "root", place / "home"
        home.mkdir()
        environment = {
            "HOME": str(place),
            "HERMES_HOME": str(home),
            "HERMES_PGSQL_EMBEDDED_DIR": str(root),
            "HERMES_PGSQL_DSN": "",
            "HERMES_PGSQL_ADMIN_DSN": "",
        }
        (home / "config.yaml").write_text("memory: {provider: pgvector, pgvector: {dsn: embedded}}\n")
        before = sorted(home.rglob("*"))
        run("hermes-pgsql up", environment)
        assert embedded.status(root).pid is not None
        write = (
            "from hermes_pgsql.outbox import Outbox; import sys\nOutbox.open(sys.argv[1]).put('x', 'ops', {})"
        )
        subprocess.run([sys.executable, "-c", write, str(home)], check=True)
        run("hermes-pgsql install || true", environment)  # there is no host here to check it with
        of_host = commands("From a host")
        assert "hermes memory off" in of_host
        for command in of_host:
            if not command.startswith("hermes memory"):
                run(command, environment)
        assert [path for path in sorted(home.rglob("*")) if path.is_file()] == [
            p for p in before if p.is_file()
        ]
        stop, *removals = commands("The embedded server and its data")
        run(stop, environment)
        assert embedded.status(root).state == "stopped"
        assert len(removals) == 2
        folders = {"~/.local/share/hermes-pgsql", "/var/lib/hermes-pgsql"}
        assert {command.removeprefix("rm -rf ") for command in removals} == folders
        run(f"rm -rf {root}", environment)
        assert not list(place.rglob("PG_VERSION"))
