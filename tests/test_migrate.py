"""migrate() and db/migrate.sh against real servers: what they install, what they refuse, and that they agree.

Most tests use a small tree of SQL files of their own around the real bootstrap.sql and verify.sql. Roles
belong to a server, so the tests about missing roles have a throw-away server of the other PostgreSQL version,
whose roles go after each test.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from conftest import ROOT, Database, TestServer
from psycopg import sql

from hermes_pgsql.errors import MigrationError
from hermes_pgsql.migrate import MigrationReport, migrate
from pgserver import throwaway_server

DB = ROOT / "db"
GROUPS = ("memvec_owner", "memvec_runtime", "memvec_embedder", "memvec_reader", "memvec_admin")

TABLE = """\
CREATE TABLE memvec.thing (id int PRIMARY KEY, name text NOT NULL, shape public.halfvec(3));
CREATE INDEX thing_shape ON memvec.thing USING hnsw (shape public.halfvec_cosine_ops);
INSERT INTO memvec.thing VALUES (1, 'one', '[1,0,0]'), (2, 'two', '[0,1,0]');
"""
FUNCTION = """\
CREATE OR REPLACE FUNCTION memvec.nearest(p_shape public.halfvec) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET hnsw.ef_search = 100
AS $$
BEGIN
    RETURN (SELECT t.name FROM memvec.thing AS t ORDER BY t.shape OPERATOR(public.<=>) p_shape LIMIT 1);
END
$$;
REVOKE ALL ON FUNCTION memvec.nearest(public.halfvec) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION memvec.nearest(public.halfvec) TO memvec_runtime;
"""
OTHER_FUNCTION = """\
CREATE OR REPLACE FUNCTION memvec.other() RETURNS int LANGUAGE sql IMMUTABLE RETURN 1;
REVOKE ALL ON FUNCTION memvec.other() FROM PUBLIC;
"""
MORE = "ALTER TABLE memvec.thing ADD COLUMN weight real;\n"
CONCURRENTLY = """\
-- migrate: no-transaction
-- Names are unique from now on.
CREATE UNIQUE INDEX CONCURRENTLY thing_name ON memvec.thing (name);
"""


class Tree:
    """A copy of the SQL tree whose migrations and functions the test writes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("migrations", "functions"):
            (root / name).mkdir(parents=True)
        for name in ("bootstrap.sql", "verify.sql", "migrate.sh"):
            shutil.copy(DB / name, root / name)
        self.write("migrations/0001_thing.sql", TABLE)
        self.write("functions/recall/nearest.sql", FUNCTION)

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())

    def remove(self, path: str) -> None:
        (self.root / path).unlink()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "db")


def run_sh(
    server: TestServer, dsn: str, root: Path = DB, *roles: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    path = f"{server.bin_dir}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", str(root / "migrate.sh"), dsn, *roles],
        env=os.environ | {"PATH": path} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def refused(dsn: str, tree: Tree, runtime_role: str = "hermes") -> MigrationError:
    with pytest.raises(MigrationError) as caught:
        migrate(dsn, runtime_role, db_dir=tree.root)
    return caught.value


def refused_by_both(server: TestServer, dsn: str, tree: Tree) -> MigrationError:
    """Both runners refuse, in the same words."""
    error = refused(dsn, tree)
    done = run_sh(server, dsn, tree.root)
    assert done.returncode not in {0, 2}, done.stdout
    assert error.message in done.stderr
    assert error.hint in done.stderr
    return error


def dump(server: TestServer, dsn: str, *options: str) -> str:
    """Schema, grants, default privileges and data as pg_dump writes them, without its random lines."""
    done = subprocess.run(
        [str(server.bin_dir / "pg_dump"), *options, "-d", dsn], capture_output=True, text=True, check=True
    )
    return re.sub(r"^\\(un)?restrict .*$", "", done.stdout, flags=re.MULTILINE)


def roles_and_settings(dsn: str) -> list[tuple[object, ...]]:
    """What a dump of one database leaves out."""
    with psycopg.connect(dsn) as connection:
        members = connection.execute(
            "SELECT roleid::regrole::text, member::regrole::text, admin_option, inherit_option, set_option"
            " FROM pg_auth_members WHERE roleid::regrole::text LIKE 'memvec%' ORDER BY 1, 2, 3"
        ).fetchall()
        settings = connection.execute(
            "SELECT setrole::regrole::text, setconfig FROM pg_db_role_setting AS s JOIN pg_database AS d"
            " ON d.oid = s.setdatabase WHERE d.datname = current_database() ORDER BY 1"
        ).fetchall()
    return members + settings


def value(dsn: str, query: str, *parameters: object) -> object:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(query.encode(), parameters or None).fetchone()
    assert row is not None
    return row[0]


def wait_until(dsn: str, query: str, seconds: float = 90) -> None:
    """Poll a query about the database of `dsn` until it says true."""
    deadline = time.monotonic() + seconds
    while value(dsn, f"{query} AND datname = current_database()") is not True:
        assert time.monotonic() < deadline, f"not true after {seconds:.0f} s: {query}"
        time.sleep(0.05)


def execute(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def has_schema(dsn: str) -> bool:
    return value(dsn, "SELECT to_regnamespace('memvec') IS NOT NULL") is True


# --- what it installs ---


def test_fresh_install_then_nothing_to_do(server: TestServer, empty_database: Database) -> None:
    dsn = empty_database.admin_dsn
    names = sorted(path.name for path in (DB / "migrations").glob("*.sql"))
    first = migrate(dsn)
    assert first.applied == names
    assert first.schema_version == len(names)
    assert first.functions == len(list((DB / "functions").rglob("*.sql")))
    assert first.warnings == []
    assert "granted USAGE on schema memvec to memvec_runtime" in first.granted

    before = dump(server, dsn), roles_and_settings(dsn)
    second = migrate(dsn)
    assert second == MigrationReport([], first.functions, first.schema_version, [], [])
    assert (dump(server, dsn), roles_and_settings(dsn)) == before


def test_login_may_call_functions_and_touch_no_table(empty_database: Database, tree: Tree) -> None:
    report = migrate(empty_database.admin_dsn, db_dir=tree.root)
    assert "set lock_timeout = 5s for hermes in database " + empty_database.name in report.granted
    with empty_database.admin() as connection:
        connection.execute("SET SESSION AUTHORIZATION hermes")
        assert connection.execute("SELECT memvec.nearest('[0,1,0.1]')").fetchone() == ("two",)
        for table in ("thing", "schema_migrations"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(sql.SQL("TABLE {}").format(sql.Identifier("memvec", table)))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("CREATE TABLE memvec.mine (x int)")


def test_new_function_of_the_owner_is_closed_to_public(empty_database: Database, tree: Tree) -> None:
    migrate(empty_database.admin_dsn, db_dir=tree.root)
    execute(
        empty_database.admin_dsn,
        "SET ROLE memvec_owner; CREATE FUNCTION memvec.later() RETURNS int LANGUAGE sql RETURN 1",
    )
    assert (
        value(
            empty_database.admin_dsn, "SELECT has_function_privilege('hermes', 'memvec.later()', 'EXECUTE')"
        )
        is False
    )


def test_upgrade_applies_only_what_is_new(empty_database: Database, tree: Tree) -> None:
    dsn = empty_database.admin_dsn
    migrate(dsn, db_dir=tree.root)
    tree.write("migrations/0002_more.sql", MORE)
    tree.write("functions/recall/nearest.sql", FUNCTION.replace("t.name", "upper(t.name)"))
    report = migrate(dsn, db_dir=tree.root)
    assert (report.applied, report.schema_version) == (["0002_more.sql"], 2)
    assert value(dsn, "SELECT memvec.nearest('[0,1,0]')") == "TWO"


def test_line_ends_do_not_change_a_checksum(server: TestServer, empty_database: Database, tree: Tree) -> None:
    dsn = empty_database.admin_dsn
    migrate(dsn, db_dir=tree.root)
    tree.write("migrations/0001_thing.sql", TABLE.replace("\n", "\r\n"))
    assert migrate(dsn, db_dir=tree.root).applied == []
    assert run_sh(server, dsn, tree.root).returncode == 0


def test_no_login_role_wanted(empty_database: Database, tree: Tree) -> None:
    report = migrate(empty_database.admin_dsn, None, db_dir=tree.root)
    assert not [sentence for sentence in report.granted if "hermes" in sentence]


def test_login_roles_are_made_and_their_settings_respected(
    server: TestServer, empty_database: Database, tree: Tree
) -> None:
    dsn = empty_database.admin_dsn
    agent, worker = f"t {secrets.token_hex(4)}", f"t_{secrets.token_hex(4)}"
    server.logins += [agent, worker]
    server.execute(sql.SQL("CREATE ROLE {} LOGIN NOINHERIT").format(sql.Identifier(agent)))
    server.execute(sql.SQL("ALTER ROLE {} SET statement_timeout = '7s'").format(sql.Identifier(agent)))
    report = migrate(dsn, agent, embedder_role=worker, db_dir=tree.root)
    assert f'granted memvec_runtime to "{agent}"' in report.granted
    assert value(dsn, "SELECT pg_has_role(%s, 'memvec_runtime', 'USAGE')", agent) is True
    assert f"created login role {worker}, without a password" in report.granted
    assert f"granted memvec_embedder to {worker}" in report.granted
    assert not [
        sentence for sentence in report.granted if f'statement_timeout = 30s for "{agent}"' in sentence
    ]
    assert migrate(dsn, agent, embedder_role=worker, db_dir=tree.root).granted == []


def test_superuser_as_login_role_is_a_warning(empty_database: Database, tree: Tree) -> None:
    superuser = str(value(empty_database.admin_dsn, "SELECT current_user"))
    report = migrate(empty_database.admin_dsn, superuser, db_dir=tree.root)
    try:
        assert any("SUPERUSER" in warning for warning in report.warnings)
    finally:
        execute(empty_database.admin_dsn, f'REVOKE memvec_runtime FROM "{superuser}"')


def test_group_role_is_no_login_role(empty_database: Database, tree: Tree) -> None:
    error = refused(empty_database.admin_dsn, tree, "memvec_owner")
    assert error.sqlstate == "MV104"
    assert "memvec_owner" in error.message


# --- psql alone does the same ---


def test_psql_and_python_install_the_same(server: TestServer, empty_database: Database) -> None:
    other = f"memvec_{secrets.token_hex(4)}"
    server.create_database(other)
    try:
        by_python, by_psql = empty_database.admin_dsn, server.dsn(other)
        migrate(by_python)
        done = run_sh(server, by_psql)
        assert done.returncode == 0, done.stderr
        assert "created schema memvec" in done.stderr
        assert dump(server, by_psql, "-s") == dump(server, by_python, "-s")
        ledger = (
            "SELECT array_agg((version, name, sha256)::text ORDER BY version) FROM memvec.schema_migrations"
        )
        assert value(by_psql, ledger) == value(by_python, ledger)

        # Each after the other: nothing changes.
        before = [(dump(server, dsn), roles_and_settings(dsn)) for dsn in (by_python, by_psql)]
        done = run_sh(server, by_python)
        assert done.returncode == 0, done.stderr
        assert "applied" not in done.stdout
        assert migrate(by_psql).applied == []
        assert [(dump(server, dsn), roles_and_settings(dsn)) for dsn in (by_python, by_psql)] == before
    finally:
        server.drop_database(other)


@pytest.mark.parametrize("schema", ["extensions", "My ext-1"])
@pytest.mark.parametrize("runner", ["python", "psql"])
def test_extension_in_another_schema(
    server: TestServer, empty_database: Database, tree: Tree, schema: str, runner: str
) -> None:
    dsn = empty_database.admin_dsn
    execute(dsn, f'CREATE SCHEMA "{schema}"', f'CREATE EXTENSION vector SCHEMA "{schema}"')
    if runner == "python":
        migrate(dsn, db_dir=tree.root)
    else:
        done = run_sh(server, dsn, tree.root)
        assert done.returncode == 0, done.stderr
    with empty_database.admin() as connection:
        connection.execute("SET SESSION AUTHORIZATION hermes")
        row = connection.execute(
            f"""SELECT memvec.nearest('[1,0,0]'::"{schema}".halfvec)""".encode()
        ).fetchone()
    assert row == ("one",)
    assert value(dsn, "SELECT count(*) FROM pg_extension WHERE extname = 'vector'") == 1


def test_real_tree_with_the_extension_in_another_schema(server: TestServer, empty_database: Database) -> None:
    dsn = empty_database.admin_dsn
    execute(dsn, "CREATE SCHEMA extensions", "CREATE EXTENSION vector SCHEMA extensions")
    migrate(dsn)
    before = dump(server, dsn, "-s")
    assert run_sh(server, dsn).returncode == 0
    assert dump(server, dsn, "-s") == before
    assert "public.halfvec" not in before


# --- several at once ---


@pytest.mark.parametrize("start", ["empty", "older"])
def test_migrations_at_once_apply_once(
    server: TestServer, empty_database: Database, tree: Tree, start: str
) -> None:
    dsn = empty_database.admin_dsn
    applied: list[str] = migrate(dsn, db_dir=tree.root).applied if start == "older" else []
    # Whoever comes first stops in the middle, until the others wait as well.
    tree.write(
        "migrations/0002_gate.sql", MORE + "SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(42);\n"
    )
    tree.write("migrations/0003_unique.sql", CONCURRENTLY)
    program = (
        "import json, pathlib, sys; from hermes_pgsql.migrate import migrate;"
        "print(json.dumps(migrate(sys.argv[1], db_dir=pathlib.Path(sys.argv[2])).applied))"
    )
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "PATH": f"{server.bin_dir}{os.pathsep}{os.environ['PATH']}",
    }
    python, shell = (
        [sys.executable, "-c", program, dsn, str(tree.root)],
        ["sh", str(tree.root / "migrate.sh"), dsn],
    )
    with empty_database.admin() as gate:
        gate.execute("SELECT pg_advisory_lock(42)")
        running = [
            subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            for command in (python, python, shell)
        ]
        wait_until(dsn, "SELECT count(*) = 3 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    outcomes = [process.communicate(timeout=180) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], outcomes
    applied += [name for output, _ in outcomes[:2] for name in json.loads(output)]
    applied += re.findall(r"^applied (\S+)$", outcomes[2][0], flags=re.MULTILINE)
    assert sorted(applied) == ["0001_thing.sql", "0002_gate.sql", "0003_unique.sql"]


# --- the ledger ---


def test_changed_migration_is_refused(server: TestServer, empty_database: Database, tree: Tree) -> None:
    dsn = empty_database.admin_dsn
    migrate(dsn, db_dir=tree.root)
    before = dump(server, dsn)
    tree.write("migrations/0001_thing.sql", TABLE + "-- and a comment\n")
    error = refused_by_both(server, dsn, tree)
    assert error.sqlstate == "MV107"
    assert "0001_thing.sql" in error.message
    assert "0002" in error.hint
    assert error.step == "bootstrap.sql"
    assert dump(server, dsn) == before


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("0003_gap.sql", "migration 0002 is missing"),
        ("0001_twice.sql", "two migrations have the number 0001"),
        ("2_short.sql", '"2_short.sql" among the migrations has no proper name'),
        ("0002_Capital.sql", "no proper name"),
    ],
)
def test_misnumbered_migrations_are_refused(
    server: TestServer, empty_database: Database, tree: Tree, name: str, words: str
) -> None:
    tree.write(f"migrations/{name}", "SELECT 1;\n")
    error = refused_by_both(server, empty_database.admin_dsn, tree)
    assert error.sqlstate == "MV107"
    assert words in error.message
    assert not has_schema(empty_database.admin_dsn)


def test_database_newer_than_the_package(server: TestServer, empty_database: Database, tree: Tree) -> None:
    tree.write("migrations/0002_more.sql", MORE)
    migrate(empty_database.admin_dsn, db_dir=tree.root)
    tree.remove("migrations/0002_more.sql")
    error = refused_by_both(server, empty_database.admin_dsn, tree)
    assert error.sqlstate == "MV110"
    assert "database is newer than this package" in error.message
    assert error.detail == "0002_more.sql"


# --- failures ---


@pytest.mark.parametrize("path", ["migrations/0002_wrong.sql", "functions/admin/wrong.sql"])
def test_failing_file_leaves_nothing_and_is_named(
    server: TestServer, empty_database: Database, tree: Tree, path: str
) -> None:
    dsn = empty_database.admin_dsn
    tree.write(path, "SELECT 1;\n\nSELECT nonsense\n  FROM nowhere;\n")
    error = refused(dsn, tree)
    assert error.step == f"{path}, line 4"
    assert error.sqlstate == "42P01"
    assert path in error.message
    assert not has_schema(dsn)

    done = run_sh(server, dsn, tree.root)
    assert done.returncode != 0
    assert f"{path}:" in done.stderr
    assert not has_schema(dsn)


def test_failing_upgrade_leaves_the_old_release(
    server: TestServer, empty_database: Database, tree: Tree
) -> None:
    dsn = empty_database.admin_dsn
    migrate(dsn, db_dir=tree.root)
    before = dump(server, dsn)
    tree.write("migrations/0002_more.sql", MORE)
    tree.write("functions/recall/nearest.sql", FUNCTION.replace("RETURNS text", "RETURNS int"))
    error = refused(dsn, tree)
    assert error.step == "functions/recall/nearest.sql"
    assert "return type" in error.message
    assert dump(server, dsn) == before


def test_function_without_a_file_is_refused(server: TestServer, empty_database: Database, tree: Tree) -> None:
    dsn = empty_database.admin_dsn
    tree.write("functions/admin/other.sql", OTHER_FUNCTION)
    migrate(dsn, db_dir=tree.root)
    tree.remove("functions/admin/other.sql")
    # A grant writes the function's catalogue row, which must not make it look like one that came from a file.
    execute(dsn, "GRANT EXECUTE ON FUNCTION memvec.other() TO memvec_reader")
    error = refused_by_both(server, dsn, tree)
    assert error.sqlstate == "MV108"
    assert "memvec.other()" in error.message
    assert "DROP ROUTINE memvec.other();" in error.hint
    assert error.step == "verify.sql"

    tree.write("migrations/0002_drop.sql", "DROP FUNCTION memvec.other();\n")
    assert migrate(dsn, db_dir=tree.root).applied == ["0002_drop.sql"]


def test_function_of_a_generated_column_belongs_to_its_migration(
    empty_database: Database, tree: Tree
) -> None:
    tree.write(
        "migrations/0002_generated.sql",
        OTHER_FUNCTION
        + "ALTER TABLE memvec.thing ADD COLUMN one int GENERATED ALWAYS AS (memvec.other()) STORED;\n",
    )
    migrate(empty_database.admin_dsn, db_dir=tree.root)
    assert migrate(empty_database.admin_dsn, db_dir=tree.root).applied == []


def test_function_open_to_public_is_refused(empty_database: Database, tree: Tree) -> None:
    tree.write(
        "functions/admin/other.sql",
        OTHER_FUNCTION + "GRANT EXECUTE ON FUNCTION memvec.other() TO PUBLIC;\n",
    )
    error = refused(empty_database.admin_dsn, tree)
    assert error.sqlstate == "MV106"
    assert "memvec.other()" in error.message


def test_default_privileges_for_public_are_refused(empty_database: Database, tree: Tree) -> None:
    dsn = empty_database.admin_dsn
    migrate(dsn, db_dir=tree.root)
    execute(
        dsn,
        "ALTER DEFAULT PRIVILEGES FOR ROLE memvec_owner IN SCHEMA memvec GRANT SELECT ON TABLES TO PUBLIC",
    )
    assert refused(dsn, tree).sqlstate == "MV106"
    # The global ones are put back, as after a restore from a dump.
    execute(
        dsn,
        "ALTER DEFAULT PRIVILEGES FOR ROLE memvec_owner IN SCHEMA memvec REVOKE SELECT ON TABLES FROM PUBLIC",
        "ALTER DEFAULT PRIVILEGES FOR ROLE memvec_owner GRANT EXECUTE ON FUNCTIONS TO PUBLIC",
    )
    migrate(dsn, db_dir=tree.root)


# --- files that cannot run in a transaction ---


@pytest.mark.parametrize("runner", ["python", "psql"])
def test_no_transaction_file_and_its_leftover(
    server: TestServer, empty_database: Database, tree: Tree, runner: str
) -> None:
    dsn = empty_database.admin_dsn
    tree.write("migrations/0001_thing.sql", TABLE + "INSERT INTO memvec.thing VALUES (3, 'two');\n")
    tree.write("migrations/0002_unique.sql", CONCURRENTLY)
    tree.write("migrations/0003_more.sql", MORE)
    if runner == "python":
        error = refused(dsn, tree)
        assert error.step == "migrations/0002_unique.sql"
        assert error.sqlstate == "23505"
        assert "Run the migration again" in error.hint
    else:
        done = run_sh(server, dsn, tree.root)
        assert done.returncode != 0
        assert "migrations/0002_unique.sql" in done.stderr
        assert "Run the migration again" in done.stderr
    assert value(dsn, "SELECT array_agg(version ORDER BY version) FROM memvec.schema_migrations") == [1, 3]
    valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'memvec.thing_name'::regclass"
    assert value(dsn, valid) is False

    execute(dsn, "DELETE FROM memvec.thing WHERE id = 3")
    if runner == "python":
        report = migrate(dsn, db_dir=tree.root)
        assert (report.applied, report.schema_version) == (["0002_unique.sql"], 3)
    else:
        done = run_sh(server, dsn, tree.root)
        assert done.returncode == 0, done.stderr
        assert "applied 0002_unique.sql" in done.stdout
    assert value(dsn, valid) is True
    assert migrate(dsn, db_dir=tree.root).applied == []


# --- the database and its extension ---


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_other_encodings_are_refused(server: TestServer, tree: Tree, encoding: str) -> None:
    name = f"memvec_{secrets.token_hex(4)}"
    create = (
        "CREATE DATABASE {} TEMPLATE template0 ENCODING {} LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    server.execute(sql.SQL(create).format(sql.Identifier(name), sql.Literal(encoding)))
    try:
        error = refused_by_both(server, server.dsn(name), tree)
        assert error.sqlstate == "MV101"
        assert encoding in error.message
        assert not has_schema(server.dsn(name))
    finally:
        server.drop_database(name)


def test_schema_of_somebody_else_is_refused(server: TestServer, empty_database: Database, tree: Tree) -> None:
    dsn = empty_database.admin_dsn
    execute(dsn, "CREATE SCHEMA memvec", "CREATE TABLE memvec.mine (x int)")
    error = refused_by_both(server, dsn, tree)
    assert error.sqlstate == "MV106"
    assert "belongs to" in error.message
    assert value(dsn, "SELECT to_regclass('memvec.mine') IS NOT NULL") is True


def test_schema_writable_by_others_is_refused(empty_database: Database, tree: Tree) -> None:
    dsn = empty_database.admin_dsn
    migrate(dsn, db_dir=tree.root)
    execute(dsn, "GRANT CREATE ON SCHEMA memvec TO memvec_admin")
    error = refused(dsn, tree)
    assert error.sqlstate == "MV106"
    assert "REVOKE CREATE ON SCHEMA memvec FROM memvec_admin" in error.hint
    execute(dsn, "REVOKE CREATE ON SCHEMA memvec FROM memvec_admin", "GRANT ALL ON SCHEMA memvec TO PUBLIC")
    migrate(dsn, db_dir=tree.root)
    assert value(dsn, "SELECT nspacl::text ~ '[{,]=' FROM pg_namespace WHERE nspname = 'memvec'") is False


def test_extension_schema_open_to_everybody_is_refused(empty_database: Database, tree: Tree) -> None:
    execute(empty_database.admin_dsn, "GRANT CREATE ON SCHEMA public TO PUBLIC")
    error = refused(empty_database.admin_dsn, tree)
    assert error.sqlstate == "MV106"
    assert "REVOKE CREATE ON SCHEMA public FROM PUBLIC" in error.hint


# Case X05, as are the encodings, the login roles, the second run and the failing file above.
@pytest.mark.parametrize(
    ("version", "sqlstate"),
    [("0.5.1", "MV103"), ("0.6.2", "MV103"), ("0.7.4", "MV103"), ("0.8.2", None), ("0.8.4", None)],
)
def test_age_of_the_extension(
    empty_database: Database, tree: Tree, version: str, sqlstate: str | None
) -> None:
    dsn = empty_database.admin_dsn
    # Its real older versions cannot be had here; the catalogue says the same.
    execute(
        dsn,
        "CREATE EXTENSION vector SCHEMA public",
        f"UPDATE pg_extension SET extversion = '{version}' WHERE extname = 'vector'",
    )
    if sqlstate:
        error = refused(dsn, tree)
        assert error.sqlstate == sqlstate
        assert version in error.message
        assert "ALTER EXTENSION vector UPDATE" in error.hint
    else:
        warnings = migrate(dsn, db_dir=tree.root).warnings
        assert [version in warning for warning in warnings] == ([True] if version == "0.8.2" else [])


def test_collation_that_does_not_fold_is_refused(empty_database: Database, tree: Tree) -> None:
    dsn = empty_database.admin_dsn
    migrate(dsn, db_dir=tree.root)
    execute(
        dsn,
        "SET ROLE memvec_owner; ALTER COLLATION memvec.folding RENAME TO folding_old;"
        "CREATE COLLATION memvec.folding (provider = libc, locale = 'C')",
    )
    assert refused(dsn, tree).sqlstate == "MV109"


# --- connecting ---


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://admin:s3cr3t@127.0.0.1:1/memvec",
        "host=/nowhere user=admin password=s3cr3t dbname=memvec",
        "postgresql://admin:x@s3cr3t@127.0.0.1:1/memvec",
        "postgresql://admin:s3cr3t/x@127.0.0.1:1/memvec",
        "postgresql://admin:s3cr3t@[::1/memvec",
        "password=s3cr3t nonsense",
    ],
)
def test_connection_errors_are_one_line_without_the_password(dsn: str, tree: Tree) -> None:
    error = refused(dsn, tree)
    shown = f"{error} {error.message} {error.detail} {error.hint} {error.__cause__}"
    assert "s3cr3t" not in shown
    assert "\n" not in error.message
    assert error.step == "connecting"
    assert error.hint


def test_missing_sql_files_are_an_error(empty_database: Database, tmp_path: Path) -> None:
    with pytest.raises(MigrationError, match=r"no bootstrap\.sql"):
        migrate(empty_database.admin_dsn, db_dir=tmp_path)


# --- administrators and roles, on servers of their own ---


@pytest.fixture(scope="module")
def own_server() -> Iterator[TestServer]:
    other = 18 if os.environ.get("PGSQL_TEST_PG") == "16" else 16
    with throwaway_server(other) as started:
        yield TestServer(started.dsn(), started.bin_dir)


class Bare:
    """A server without our roles, with an administrator `boss` who is no superuser."""

    def __init__(self, server: TestServer) -> None:
        self.server = server
        self.superuser_dsn = server.dsn("bare")
        self.boss_dsn = server.dsn("bare", "boss")

    def as_superuser(self, *statements: str) -> None:
        execute(self.superuser_dsn, *statements)

    def roles(self) -> set[object]:
        ours = "rolname !~ '^pg_|^postgres$|^boss$'"
        query = f"SELECT coalesce(array_agg(rolname::text), '{{}}') FROM pg_roles WHERE {ours}"
        found = value(self.superuser_dsn, query)
        assert isinstance(found, list)
        return set(found)


@pytest.fixture
def bare(own_server: TestServer) -> Iterator[Bare]:
    own_server.execute(sql.SQL("CREATE ROLE boss LOGIN"))
    own_server.create_database("bare")
    server = Bare(own_server)
    yield server
    left = server.roles()
    own_server.drop_database("bare")
    for role in [*left, "boss"]:
        own_server.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(str(role))))


def test_administrator_with_createrole(bare: Bare, tree: Tree) -> None:
    bare.as_superuser(
        "ALTER ROLE boss CREATEROLE",
        "GRANT CREATE ON DATABASE bare TO boss",
        "CREATE EXTENSION vector SCHEMA public",
    )
    report = migrate(bare.boss_dsn, db_dir=tree.root)
    assert report.warnings == []
    assert bare.roles() == {*GROUPS, "hermes"}
    assert (
        value(
            bare.boss_dsn,
            "SELECT pg_has_role('memvec_owner', 'SET') AND NOT pg_has_role('memvec_owner', 'USAGE')",
        )
        is True
    )
    before = dump(bare.server, bare.superuser_dsn), roles_and_settings(bare.superuser_dsn)
    assert migrate(bare.boss_dsn, db_dir=tree.root).granted == []
    done = run_sh(bare.server, bare.boss_dsn, tree.root)
    assert done.returncode == 0, done.stderr
    assert (dump(bare.server, bare.superuser_dsn), roles_and_settings(bare.superuser_dsn)) == before


def test_first_migrations_of_two_databases_at_once(bare: Bare, tree: Tree) -> None:
    # Roles are shared between databases, the lock is not.
    tree.write("migrations/0002_slow.sql", "SELECT pg_sleep(0.3);\n")
    bare.server.create_database("bare2")
    try:
        dsns = [bare.superuser_dsn, bare.server.dsn("bare2")]
        with ThreadPoolExecutor() as threads:
            reports = list(threads.map(lambda dsn: migrate(dsn, db_dir=tree.root), dsns))
        assert [report.schema_version for report in reports] == [2, 2]
        created = [
            sentence for report in reports for sentence in report.granted if "created role" in sentence
        ]
        assert len(created) == len(GROUPS)
    finally:
        bare.server.drop_database("bare2")


def test_administrator_without_createrole_gets_the_commands(bare: Bare, tree: Tree) -> None:
    bare.as_superuser("CREATE EXTENSION vector SCHEMA public", "GRANT CREATE ON DATABASE bare TO boss")
    error = refused_by_both(bare.server, bare.boss_dsn, tree)
    assert error.sqlstate == "MV104"
    assert bare.roles() == set()

    # The commands of the hints, one after the other, are all it takes.
    bare.as_superuser(error.hint.removeprefix("As such a role run: "))
    assert bare.roles() == set(GROUPS)
    error = refused(bare.boss_dsn, tree, "agent")
    assert (error.sqlstate, '"agent"' in error.message) == ("MV104", True)
    bare.as_superuser(error.hint.removeprefix("As such a role run: "))
    report = migrate(bare.boss_dsn, "agent", db_dir=tree.root)
    assert len(report.warnings) == 3, "the timeouts of a role it may not alter"
    assert all("ALTER ROLE agent IN DATABASE bare SET" in warning for warning in report.warnings)


def test_administrator_who_may_not_act_as_the_owner(bare: Bare, tree: Tree) -> None:
    bare.as_superuser(*(f"CREATE ROLE {group}" for group in GROUPS), "CREATE EXTENSION vector SCHEMA public")
    error = refused(bare.boss_dsn, tree)
    assert error.sqlstate == "MV105"
    assert "GRANT memvec_owner TO boss WITH SET TRUE, INHERIT FALSE;" in error.hint


def test_administrator_who_may_not_create_the_schema(bare: Bare, tree: Tree) -> None:
    bare.as_superuser("ALTER ROLE boss CREATEROLE", "CREATE EXTENSION vector SCHEMA public")
    error = refused_by_both(bare.server, bare.boss_dsn, tree)
    assert error.sqlstate == "MV105"
    assert "GRANT CREATE ON DATABASE bare TO boss;" in error.hint
    assert bare.roles() == set()


def test_missing_extension_without_superuser(bare: Bare, tree: Tree) -> None:
    bare.as_superuser("ALTER ROLE boss CREATEROLE", "GRANT CREATE ON DATABASE bare TO boss")
    error = refused_by_both(bare.server, bare.boss_dsn, tree)
    assert error.sqlstate == "MV102"
    assert "CREATE EXTENSION vector SCHEMA public;" in error.hint
    assert bare.roles() == set()


def test_owner_who_may_log_in_is_refused(bare: Bare, tree: Tree) -> None:
    bare.as_superuser("CREATE ROLE memvec_owner LOGIN BYPASSRLS")
    error = refused(bare.superuser_dsn, tree)
    assert error.sqlstate == "MV106"
    assert "LOGIN, BYPASSRLS" in error.message


def test_group_that_is_a_member_of_the_owner_is_refused(bare: Bare, tree: Tree) -> None:
    bare.as_superuser("CREATE ROLE memvec_owner", "CREATE ROLE memvec_admin IN ROLE memvec_owner")
    error = refused(bare.superuser_dsn, tree)
    assert error.sqlstate == "MV106"
    assert "REVOKE memvec_owner FROM memvec_admin;" in error.hint


def test_groups_may_connect_where_public_may_not(bare: Bare, tree: Tree) -> None:
    bare.as_superuser("REVOKE ALL ON DATABASE bare FROM PUBLIC", "REVOKE ALL ON SCHEMA public FROM PUBLIC")
    report = migrate(bare.superuser_dsn, db_dir=tree.root)
    assert "granted CONNECT on database bare to memvec_runtime" in report.granted
    assert "granted USAGE on schema public to memvec_owner" in report.granted
    with psycopg.connect(bare.server.dsn("bare", "hermes")) as connection:
        assert connection.execute("SELECT memvec.nearest('[1,0,0]')").fetchone() == ("one",)


def test_database_that_folds_ascii_only(server: TestServer, own_server: TestServer, tree: Tree) -> None:
    name = f"memvec_{secrets.token_hex(4)}"
    create = "CREATE DATABASE {} TEMPLATE template0 LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C'"
    for each in (server, own_server):  # PostgreSQL 17 and newer have a built-in collation for it, 16 has not
        dsn = each.dsn(name)
        each.execute(sql.SQL(create).format(sql.Identifier(name)))
        try:
            migrate(dsn, None, db_dir=tree.root)
            assert value(dsn, "SELECT lower('ЖÀI')") == "ЖÀi"
            assert value(dsn, "SELECT lower('ЖÀI' COLLATE memvec.folding)") == "жài"
        finally:
            each.drop_database(name)
    for group in GROUPS:
        own_server.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(group)))


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"], ["a", "b", "c", "d"]])
def test_the_script_takes_no_option_for_a_connection_string(arguments: list[str]) -> None:
    script = Path(__file__).parent.parent / "db" / "migrate.sh"
    done = subprocess.run(["sh", str(script), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")


def test_views_are_made_anew_so_that_their_columns_may_change(empty_database: Database, tree: Tree) -> None:
    view = "CREATE VIEW memvec.v_things WITH (security_barrier = true) AS SELECT name FROM memvec.things;"
    tree.write("migrations/0002_things.sql", "CREATE TABLE memvec.things (name text);")
    tree.write("views/v_things.sql", view)
    migrate(empty_database.admin_dsn, db_dir=tree.root)
    tree.write("migrations/0003_things.sql", "ALTER TABLE memvec.things ALTER name TYPE varchar(10);")
    tree.write("views/v_things.sql", view.replace("SELECT name", "SELECT name AS called"))
    run_sh(empty_database.server, empty_database.admin_dsn, tree.root).check_returncode()
    with empty_database.admin() as admin:
        admin.execute("SELECT called FROM memvec.v_things")
        admin.execute("CREATE VIEW public.mine AS SELECT * FROM memvec.v_things")
    with pytest.raises(MigrationError, match=r"built on the view memvec\.v_things"):
        migrate(empty_database.admin_dsn, db_dir=tree.root)
    with empty_database.admin() as admin:
        admin.execute("SELECT called FROM public.mine")
