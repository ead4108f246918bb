"""Upgrades: every earlier schema with its data moves forward, and clients of earlier releases go on.

An earlier state is the migrations up to a version, without functions: those are written anew by each
migration. The calls of a release are frozen in tests/data/calls-VERSION.json (tools/freeze_calls.py).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
from conftest import ROOT, RUNTIME_ROLE, Database, TestServer
from psycopg import sql

from freeze_calls import calls
from hermes_pgsql import pool
from hermes_pgsql.client import Memvec
from hermes_pgsql.migrate import migrate

DB = ROOT / "db"
VERSIONS = [int(path.name[:4]) for path in sorted((DB / "migrations").glob("*.sql"))]
RELEASES = sorted((ROOT / "tests" / "data").glob("calls-*.json"))

# What an installation of that version has stored, by the version that brought the tables.
DATA = {
    1: """
        INSERT INTO memvec.memory_agents (agent_identity, kind, attrs)
        VALUES ('ops', 'theme', '{"team": "x"}');
        INSERT INTO memvec.identity_aliases VALUES ('operations', 'ops');
        INSERT INTO memvec.memory_agent_edges (parent_identity, parent_session_id, child_session_id)
        VALUES ('ops', 's1', 'child');
        UPDATE memvec.settings SET value = '400' WHERE name = 'history_days';
        """,
    2: """
        INSERT INTO memvec.memory_entries
               (agent_identity, target, content, content_hash, search, search_version)
        SELECT 'ops', 'memory', t, sha256(convert_to(t, 'UTF8')), to_tsvector('english', t), 1
          FROM (VALUES ('the harbour gate opens at six'), ('the lamp of the lighthouse is green')) AS v (t);
        INSERT INTO memvec.entry_sources (entry_id, source)
        SELECT id, '00000000-0000-0000-0000-000000000001' FROM memvec.memory_entries;
        INSERT INTO memvec.conversations
               (agent_identity, session_id, role, content, content_hash, search, search_version)
        SELECT 'ops', 's1', 'user', t, sha256(convert_to(t, 'UTF8')), to_tsvector('english', t), 1
          FROM (VALUES ('who has the key of the harbour gate?')) AS v (t);
        INSERT INTO memvec.memory_history (entry_id, agent_identity, target, content, created_at, updated_at,
                                           metadata, embed, action)
        VALUES (99, 'ops', 'memory', 'the harbour gate opens at five', now(), now(), '{}', true, 'replace');
        """,
    4: """
        INSERT INTO memvec.applied_ops (op_id, outcome, row_id)
        VALUES ('00000000-0000-4000-8000-000000000001', 'added', 1);
        INSERT INTO memvec.maintenance_log (operation) VALUES ('prune');
        INSERT INTO memvec.theme_counts (kind, agent_identity, rows) VALUES ('entry', 'ops', 2);
        """,
}


def tree_of(version: int, root: Path) -> Path:
    """The SQL files of a package whose newest migration was that one, without functions."""
    for name in ("migrations", "functions"):
        (root / name).mkdir(parents=True)
    for name in ("bootstrap.sql", "verify.sql"):
        shutil.copy(DB / name, root / name)
    for path in sorted((DB / "migrations").glob("*.sql")):
        if int(path.name[:4]) <= version:
            shutil.copy(path, root / "migrations" / path.name)
    return root


def schema(server: TestServer, dsn: str) -> str:
    command = [str(server.bin_dir / "pg_dump"), "--schema-only", "--schema=memvec", "-d", dsn]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return re.sub(r"^\\(un)?restrict .*$", "", done.stdout, flags=re.MULTILINE)


@pytest.fixture
def older(request: pytest.FixtureRequest, empty_database: Database, tmp_path: Path) -> Database:
    """A database of that version, with data."""
    version = request.param
    report = migrate(empty_database.admin_dsn, RUNTIME_ROLE, db_dir=tree_of(version, tmp_path / "db"))
    assert report.schema_version == version
    with empty_database.admin() as connection:
        connection.execute("SET ROLE memvec_owner")
        for at in range(1, version + 1):
            connection.execute(DATA.get(at, "SELECT 1").encode())
    return empty_database


@pytest.fixture(autouse=True)
def no_pools() -> Iterator[None]:
    yield
    pool.close_all()


@pytest.mark.parametrize("older", VERSIONS[:-1], indirect=True)
def test_data_of_an_earlier_version_moves_forward(older: Database, server: TestServer, template: str) -> None:
    with older.admin() as connection:
        row = connection.execute("SELECT max(version) FROM memvec.schema_migrations").fetchone()
    assert row is not None
    before = int(row[0])

    report = migrate(older.admin_dsn, RUNTIME_ROLE)

    assert report.schema_version == VERSIONS[-1]
    assert [int(name[:4]) for name in report.applied] == [v for v in VERSIONS if v > before]
    assert schema(server, older.admin_dsn) == schema(server, server.dsn(template))
    assert migrate(older.admin_dsn, RUNTIME_ROLE).applied == []
    memvec = Memvec(older.runtime_dsn)
    with older.admin() as connection:
        kept = connection.execute(
            "SELECT (SELECT value FROM memvec.settings WHERE name = 'history_days'),"
            " (SELECT attrs ->> 'team' FROM memvec.memory_agents WHERE agent_identity = 'ops')"
        ).fetchone()
    assert kept == ("400", "x")
    assert memvec.canonical_identity("operations").agent_identity == "ops"
    old_rows = 2 if before >= 2 else 0
    everything_works(memvec, old_rows)
    if before >= 4:
        with older.admin() as connection:
            assert connection.execute("SELECT count(*) FROM memvec.maintenance_log").fetchone() == (1,)


def everything_works(memvec: Memvec, old_entries: int) -> None:
    """What an agent does, on the rows that were there before too."""
    space = memvec.hello("ops", "words", 2).space_id
    assert space is not None
    if old_entries:
        assert [row.content for row in memvec.recall_memory("ops", "when does the harbour gate open?")][
            :1
        ] == ["the harbour gate opens at six"]
        assert memvec.add_memory("ops", "memory", "the harbour gate opens at six").outcome == "duplicate"
        assert memvec.replace_memory(
            "ops", "memory", "opens at six", "the harbour gate opens at seven"
        ).outcome == ("replaced")
        assert memvec.append_turn("ops", "s1", "user", "who has the key of the harbour gate?").outcome == (
            "duplicate"
        )
        assert [row.role for row in memvec.recall_conversation("ops", "harbour key")] == ["user"]
        assert (
            memvec.sync_memories(
                "ops",
                UUID("00000000-0000-0000-0000-000000000001"),
                "memory",
                ["the lamp of the lighthouse is green"],
            ).kept
            == 1
        )
    added = memvec.add_memory("ops", "memory", "the ferry leaves at nine", embedding=[1.0, 0.0], space=space)
    assert added.outcome == "added"
    assert memvec.recall_memory("ops", None, embedding=[1.0, 0.0], space=space)[0].content == (
        "the ferry leaves at nine"
    )
    assert memvec.prefetch("ops", "when does the ferry leave?")[0].content == "the ferry leaves at nine"
    operation = {"op_id": str(uuid4()), "op": "append_turn", "identity": "ops", "session_id": "s2"}
    (applied,) = memvec.apply_ops([{**operation, "role": "user", "content": "the ferry is late"}])
    assert (applied.outcome, applied.error_code) == ("added", None)
    assert memvec.remove_memory("ops", "memory", "ferry leaves").outcome == "removed"
    memvec.housekeeping()
    assert [row.turns for row in memvec.stats() if row.agent_identity == "ops"] == [1 + bool(old_entries)]


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.stem)
def test_the_calls_of_a_release_are_still_possible(database: Database, release: Path) -> None:
    """Each with all of its arguments, by name and type, for all columns it read, by the groups that could."""
    now = {str(call["name"]): call for call in calls(database.admin_dsn)}
    broken: list[str] = []
    with database.admin() as connection:
        connection.execute("SET search_path = public")  # where the types of the extension are
        for call in json.loads(release.read_text()):
            arguments = [
                sql.SQL("{} => NULL::{}").format(sql.Identifier(name), sql.SQL(kind))
                for name, kind in call["arguments"].items()
            ]
            columns = [
                sql.SQL("pg_typeof({}) = {}::regtype").format(sql.Identifier(name), sql.Literal(kind))
                for name, kind in call["columns"].items()
            ]
            prepare = sql.SQL("PREPARE the_call AS SELECT {} FROM memvec.{}({})").format(
                sql.SQL(", ").join(columns or [sql.SQL("*")]),
                sql.Identifier(call["name"]),
                sql.SQL(", ").join(arguments),
            )
            try:
                connection.execute(prepare)
                connection.execute("DEALLOCATE the_call")
            except psycopg.Error as error:
                broken.append(f"{call['name']}: {error.diag.message_primary}")
                continue
            known = now[call["name"]]
            for what in ("arguments", "columns"):
                changed = {
                    name: kind
                    for name, kind in call[what].items()
                    if known[what].get(name) != kind  # type: ignore[attr-defined]
                }
                if changed:
                    broken.append(f"{call['name']}: {what} {changed} are others now")
            if missing := set(call["groups"]) - set(known["groups"]):  # type: ignore[call-overload]
                broken.append(f"{call['name']}: {missing} may not call it any more")
    assert broken == [], "clients of that release would fail; see docs/upgrading.md"


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.stem)
def test_new_arguments_have_defaults(database: Database, release: Path) -> None:
    """An old client gives its own arguments only: those it left out by their defaults, too."""
    query = """
        SELECT p.proname, p.proargnames[1:p.pronargs - p.pronargdefaults]
          FROM pg_proc AS p WHERE p.pronamespace = 'memvec'::regnamespace
    """
    with database.admin() as connection:
        needed = {name: set(arguments or ()) for name, arguments in connection.execute(query.encode())}
    frozen = {call["name"]: set(call["arguments"]) for call in json.loads(release.read_text())}
    assert {name: needed[name] - given for name, given in frozen.items() if needed[name] - given} == {}
