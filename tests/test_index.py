"""The HNSW index of a large table: made while the database is in use, mended after a failed build."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import psycopg
import pytest
from conftest import Database

from hermes_pgsql.indexing import build_indexes, index_states

FILL = """
    WITH rows AS (
        INSERT INTO memvec.memory_entries
               (agent_identity, target, content, content_hash, search, search_version)
        SELECT 'big', 'memory', 'note ' || n, sha256(convert_to('note ' || n, 'UTF8')), '', 1
          FROM generate_series(1, 40) AS n
        RETURNING id, agent_identity, target
    )
    INSERT INTO memvec.entry_embeddings_1 (id, agent_identity, target, embedding)
    SELECT r.id, r.agent_identity, r.target, ARRAY[r.id, 1, 1]::real[]::halfvec FROM rows AS r"""


@pytest.fixture
def filled(database: Database) -> Database:
    """A space whose entries, but not its turns, are many for the settings."""
    with psycopg.connect(database.admin_dsn, autocommit=True) as connection:
        connection.execute("SELECT memvec.set_setting('exact_rows', '20')")
        connection.execute("SELECT memvec.set_setting('hnsw_visit_rows', '0')")
        connection.execute("SELECT memvec.add_embedding_space('m', 3)")
        if connection.execute("SELECT 1 FROM memvec.memory_entries").fetchone() is None:
            connection.execute(FILL)
        connection.execute("DROP INDEX IF EXISTS memvec.entry_embeddings_1_hnsw")
    return database


def states(database: Database) -> dict[str, str]:
    return {state.table_name: state.state for state in index_states(database.admin_dsn)}


def test_only_the_large_table_gets_an_index(filled: Database) -> None:
    assert states(filled) == {"entry_embeddings_1": "missing", "turn_embeddings_1": "small"}
    seen: list[tuple[str, float]] = []

    made = build_indexes(filled.admin_dsn, lambda state, share: seen.append((state.index_name, share)))

    assert [state.index_name for state in made] == ["entry_embeddings_1_hnsw"]
    assert seen[0] == ("entry_embeddings_1_hnsw", 0.0)
    assert seen[-1] == ("entry_embeddings_1_hnsw", 1.0)
    assert states(filled)["entry_embeddings_1"] == "valid"
    assert build_indexes(filled.admin_dsn) == []


def test_the_index_belongs_to_the_owner_and_recall_uses_it(filled: Database) -> None:
    build_indexes(filled.admin_dsn)
    with psycopg.connect(filled.admin_dsn) as connection:
        owner = connection.execute(
            "SELECT relowner::regrole::text FROM pg_class WHERE relname = 'entry_embeddings_1_hnsw'"
        ).fetchone()
        connection.execute("SET enable_sort = off")
        rows = connection.execute(
            "SELECT FROM memvec.recall_memory('big', p_embedding => '[1,1,1]', p_space => 1, p_limit => 5)"
        ).fetchall()
        scans = connection.execute(
            "SELECT pg_stat_get_xact_numscans('memvec.entry_embeddings_1_hnsw'::regclass)"
        ).fetchone()
    assert owner == ("memvec_owner",)
    assert len(rows) == 5
    assert scans == (1,)


def test_a_failed_build_is_dropped_and_made_again(filled: Database) -> None:
    build_indexes(filled.admin_dsn)
    with psycopg.connect(filled.admin_dsn, autocommit=True) as connection:
        connection.execute(
            """
            UPDATE pg_index SET indisvalid = false
             WHERE indexrelid = 'memvec.entry_embeddings_1_hnsw'::regclass"""
        )
    assert states(filled)["entry_embeddings_1"] == "invalid"

    build_indexes(filled.admin_dsn)

    assert states(filled)["entry_embeddings_1"] == "valid"


def test_the_command_says_what_it_made(filled: Database) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hermes_pgsql", "index", "--json"],
        env=os.environ | {"HERMES_PGSQL_ADMIN_DSN": filled.admin_dsn, "HERMES_PGSQL_DSN": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["made"] == ["entry_embeddings_1_hnsw"]
