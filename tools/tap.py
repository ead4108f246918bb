"""Run the SQL tests below db/tests with pgTAP against a freshly migrated database, or (`--restored`) against
one that was restored from the dump of another, as docs/operations.md says.

The server is a throw-away one, or the scratch server that PGSQL_TEST_ADMIN_DSN names (a superuser there;
the database made for the run and the test logins are dropped again, the roles of the product stay). pgTAP
is loaded as plain SQL, so the server needs no extension but `vector`. A run in which no test ran has
failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from pgserver import run_sql, throwaway_server, wheel_installation

ROOT = Path(__file__).resolve().parent.parent
PGTAP = ROOT / "build" / "pgtap"
TESTS = ROOT / "db" / "tests"
TEST_LOGINS = ("tap_bound", "tap_embedder", "tap_reader", "tap_admin", "tap_nobody")
# Two files at a time: the tests are bound by the processor, and this is what the smallest machine has.
PARALLEL = 2


@dataclass(frozen=True)
class Target:
    """An empty database to test in: how Python reaches it, and the environment for psql and pg_prove."""

    admin_dsn: str
    environment: dict[str, str]


@dataclass(frozen=True)
class Outcome:
    passed: int
    failed: int


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the SQL tests with pgTAP.")
    parser.add_argument("--pg16", action="store_true", help="on a throw-away PostgreSQL 16 instead of 18")
    parser.add_argument(
        "--restored",
        action="store_true",
        help="in a database restored from a dump of one that was used; on a throw-away server only",
    )
    parser.add_argument("--results", type=Path, help="write the counts to this JSON file")
    parser.add_argument("files", nargs="*", type=Path, help="test files or folders (default: db/tests)")
    arguments = parser.parse_args()
    if arguments.results:
        arguments.results.unlink(missing_ok=True)
    given = "" if arguments.pg16 else os.environ.get("PGSQL_TEST_ADMIN_DSN", "")
    with scratch_on(given) if given else scratch_on_throwaway(16 if arguments.pg16 else 18) as target:
        # A server that somebody names may be of another version than the pg_dump that is at hand.
        if arguments.restored and not given:
            restore(target)
        prepare(target)
        outcome = prove(target, arguments.files or [TESTS.relative_to(ROOT)])
    if arguments.results:
        arguments.results.parent.mkdir(parents=True, exist_ok=True)
        arguments.results.write_text(json.dumps(asdict(outcome)))
    if outcome.passed + outcome.failed == 0:
        print("No SQL test ran.", file=sys.stderr)
        return 1
    return 1 if outcome.failed else 0


@contextlib.contextmanager
def scratch_on_throwaway(major: int) -> Iterator[Target]:
    with throwaway_server(major) as server:
        run_sql(server.dsn(), "CREATE DATABASE memvec_tap")
        print(f"SQL tests on PostgreSQL {major}", flush=True)
        yield Target(server.dsn("memvec_tap"), server.environment("memvec_tap"))


@contextlib.contextmanager
def scratch_on(admin_dsn: str) -> Iterator[Target]:
    name = f"memvec_tap_{os.getpid()}"
    run_sql(admin_dsn, f"CREATE DATABASE {name}")
    try:
        dsn = psycopg.conninfo.make_conninfo(admin_dsn, dbname=name)
        print("SQL tests on the server of PGSQL_TEST_ADMIN_DSN", flush=True)
        yield Target(dsn, os.environ | libpq_environment(dsn) | {"PATH": path_with_psql()})
    finally:
        run_sql(admin_dsn, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        for login in TEST_LOGINS:
            run_sql(admin_dsn, f"DROP ROLE IF EXISTS {login}")


def libpq_environment(dsn: str) -> dict[str, str]:
    """The DSN as environment variables, which keeps its password out of the process list."""
    names = {option.keyword.decode(): option.envvar for option in psycopg.pq.Conninfo.get_defaults()}
    settings = conninfo_to_dict(dsn)
    return {
        variable.decode(): str(settings[keyword])
        for keyword, variable in names.items()
        if variable and settings.get(keyword) is not None
    }


def path_with_psql() -> str:
    path = os.environ.get("PATH", os.defpath)
    return path if shutil.which("psql") else f"{wheel_installation(18) / 'bin'}{os.pathsep}{path}"


# A database that was used and emptied again, because tests count rows: its identity columns have moved on.
# That rows come back as they were is tested in tests/test_dump_restore.py.
USED = """
    SELECT memvec.add_memory('restored', 'memory', 'note ' || n) FROM generate_series(1, 20) AS n;
    SELECT memvec.append_turn('restored', 's', 'user', 'turn ' || n) FROM generate_series(1, 20) AS n;
    SELECT memvec.replace_memory('restored', 'memory', 'note 20', 'note 21');
    SELECT memvec.add_memory('agent:main:telegram:dm:42', 'user', 'of a contact');
    SELECT memvec.drop_embedding_space(memvec.add_embedding_space('restored', 8));
    DELETE FROM memvec.memory_entries;
    DELETE FROM memvec.conversations;
    DELETE FROM memvec.memory_history;
    DELETE FROM memvec.maintenance_log;
    SELECT memvec.housekeeping();
"""


def restore(target: Target) -> None:
    """Fill the empty database from the dump of another one."""
    from hermes_pgsql.migrate import migrate

    name = f"{conninfo_to_dict(target.admin_dsn)['dbname']}_source"
    source = psycopg.conninfo.make_conninfo(target.admin_dsn, dbname=name)
    run_sql(target.admin_dsn, f"CREATE DATABASE {name}")
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "memvec.dump"
        try:
            migrate(source)
            run_sql(source, USED)
            program(target, "pg_dump", "-Fc", "-f", dump, "-d", name)
        finally:
            run_sql(target.admin_dsn, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        migrate(target.admin_dsn)
        run_sql(target.admin_dsn, "DROP SCHEMA memvec CASCADE")
        program(target, "pg_restore", "--exit-on-error", "-d", target.environment["PGDATABASE"], dump)
    print("in a database restored from a dump", flush=True)


def program(target: Target, *command: str | Path) -> None:
    subprocess.run(command, env=target.environment, check=True, stdin=subprocess.DEVNULL)


def prepare(target: Target) -> None:
    from hermes_pgsql.migrate import migrate

    run_sql(target.admin_dsn, "CREATE SCHEMA tap")
    psql(target, PGTAP / "pgtap.sql", search_path="tap")
    # Shadowed variables and the like are errors here, warnings nowhere else.
    database = conninfo_to_dict(target.admin_dsn)["dbname"]
    run_sql(target.admin_dsn, f"ALTER DATABASE {database} SET plpgsql.extra_errors = 'all'")
    migrate(target.admin_dsn)
    psql(target, TESTS / "fixtures.psql", search_path="public")


def psql(target: Target, file: Path, search_path: str) -> None:
    environment = target.environment | {
        "PGOPTIONS": f"-c search_path={search_path} -c client_min_messages=warning"
    }
    command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-o", os.devnull, "-f", file]
    subprocess.run(command, env=environment, check=True, stdin=subprocess.DEVNULL)


def prove(target: Target, files: Sequence[Path]) -> Outcome:
    options = ["--ext", ".sql", "-r", "-j", str(PARALLEL), "--failures", "--comments"]
    command = [PGTAP / "pg_prove", *options, *files]
    environment = target.environment | {
        "PGOPTIONS": "-c search_path=public,tap -c client_min_messages=warning"
    }
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    return count("".join(lines), process.wait())


def count(output: str, exit_code: int) -> Outcome:
    """What pg_prove's report says. A file that broke off counts as one failure more."""
    ran = re.search(r"^Files=\d+, Tests=(\d+)", output, re.MULTILINE)
    total = int(ran[1]) if ran else 0
    summary = output.partition("Test Summary Report")[2]
    failed = sum(int(number) for number in re.findall(r"Tests: \d+ Failed: (\d+)\)", summary))
    broken = len(re.findall(r"^  (?:Parse errors|Non-zero (?:exit|wait) status):", summary, re.MULTILINE))
    passed = max(0, total - failed)
    if exit_code and failed + broken == 0:
        return Outcome(passed, 1)
    return Outcome(passed, failed + broken)


if __name__ == "__main__":
    sys.exit(main())
