"""A database that was dumped and restored into a fresh cluster answers as before.

The procedure, as an operator would follow it on the new server (DSN: an administrator's, of the new and empty
database; the old one is only read):

1. `pg_dump -Fc -f memvec.dump OLD_DSN`
2. `hermes-pgsql migrate --admin-dsn DSN` makes what no dump of one database carries: the group roles, the
   login role with its limits, the right to connect, and the extension. Further login roles, such as those
   that memvec.bind_role has tied to themes, are created by hand, with passwords as everywhere.
3. `psql -c 'DROP SCHEMA memvec CASCADE' DSN` makes room for the dump.
4. `pg_restore --exit-on-error -d DSN memvec.dump`
5. `hermes-pgsql migrate --admin-dsn DSN` checks what was restored, and upgrades it if the package is newer.

The secret that keys chat contacts is data, so persons stay the same persons.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conftest import RUNTIME_ROLE, Database
from psycopg import sql

from hermes_pgsql.migrate import MigrationReport, migrate
from pgserver import Server, run_sql, throwaway_server

THEMES = ("default", "marketing", "ops", "desk:signal:9am", "тест")
PEOPLE = ("agent:main:telegram:dm:42", "agent:main:whatsapp:dm:15550100123", "agent:main:slack:channel:C1")
WORDS = (
    "harbour",
    "certificate",
    "rollback",
    "naïve",
    "E4711",
    "docs/setup.md",
    "记忆",
    "배포",
    "parseHTTP",
    "tide",
)

QUESTIONS: list[tuple[str, str, str | None, int | None, str]] = [
    # function, key, question, seed of the vector (None: words only), scope
    *(("recall_memory", theme, f"what about {WORDS[i]}?", None, "own") for i, theme in enumerate(THEMES)),
    *(("recall_memory", theme, f"{WORDS[-i]} and {WORDS[i]}", i, "own") for i, theme in enumerate(THEMES)),
    *(("recall_conversation", theme, "harbour E4711 记忆", i, "own") for i, theme in enumerate(THEMES)),
    *(("recall_memory", key, "certificate or naive", 3, "own") for key in PEOPLE),
    *(("recall_conversation", key, None, 4, "all") for key in PEOPLE),
    *(("prefetch", key, "what was the rollback of the harbour certificate?", 5, "") for key in PEOPLE),
    ("recall_memory", "marketing", "setup", 6, "all"),
    ("recall_memory", "marketing", None, 7, "all"),
    ("recall_conversation", "marketing", "tide", None, "all"),
    ("recall_conversation", "ops", "parse http", 8, "MARKETING"),
    ("recall_memory", "ops", "배포", None, "default"),
    ("prefetch", "ops", "tide E4711", None, ""),
]

FILL = """
DO $fill$
DECLARE
    v_space int;
    v_key text;
    v_words text[] := %(words)s;
    v_text text;
BEGIN
    SELECT space_id INTO v_space FROM memvec.hello('ops', 'test-model', 16, p_min_similarity => 0.1);
    FOREACH v_key IN ARRAY %(keys)s::text[] LOOP
        FOR i IN 1..40 LOOP
            v_text := format('%%s %%s, note %%s', v_words[1 + i %% 10], v_words[1 + i * 3 %% 7], i);
            PERFORM memvec.add_memory(
                v_key, (ARRAY['memory', 'user'])[1 + i %% 2], v_text, jsonb_build_object('n', i),
                p_source => '00000000-0000-0000-0000-000000000001', p_space => v_space,
                p_embedding => CASE WHEN i %% 5 > 0 THEN pg_temp.vec(i + length(v_key)) END);
            PERFORM memvec.append_turn(
                v_key, 's' || i %% 4, (ARRAY['user', 'assistant'])[1 + i %% 2], v_text,
                p_ts => '2026-01-01Z'::timestamptz + i * interval '1 hour', p_space => v_space,
                p_embedding => CASE WHEN i %% 5 > 0 THEN pg_temp.vec(i + 3) END);
        END LOOP;
        PERFORM memvec.replace_memory(v_key, 'memory', 'note 4', 'replaced: the tide of ' || v_words[4]);
        PERFORM memvec.remove_memory(v_key, 'memory', 'note 8');
    END LOOP;
END
$fill$
"""

VEC = """
CREATE FUNCTION pg_temp.vec(p_seed int) RETURNS public.halfvec LANGUAGE sql AS $$
    SELECT array_agg(sin(p_seed * 13.7 + i * i)::real ORDER BY i)::public.halfvec
      FROM generate_series(1, 16) AS i
$$
"""


@dataclass(frozen=True)
class Restored:
    """The source, the new server, and the report of the migration that checked the restored database."""

    source: Database
    server: Server
    report: MigrationReport
    before: str
    bound_login: str

    @property
    def admin_dsn(self) -> str:
        return self.server.dsn("memvec")

    @property
    def runtime_dsn(self) -> str:
        return self.server.dsn("memvec", RUNTIME_ROLE)


def fill(database: Database, bound_login: str) -> None:
    with database.runtime() as runtime:
        runtime.execute(VEC)
        runtime.execute(literal(FILL, words=list(WORDS), keys=[*THEMES, *PEOPLE]))
    with database.admin() as admin:
        admin.execute("SELECT memvec.add_embedding_space('other-model', 24, 'query: ', 'passage: ')")
        admin.execute("SELECT memvec.set_setting('rrf_k', '7')")
        admin.execute("SELECT memvec.set_setting('history_days', '99')")
        admin.execute("SELECT memvec.bind_role(%s, 'marketing')", (bound_login,))
        admin.execute("INSERT INTO memvec.identity_aliases VALUES ('sales', 'marketing')")
        admin.execute(
            "CREATE INDEX entry_embeddings_1_hnsw ON memvec.entry_embeddings_1"
            " USING hnsw (embedding public.halfvec_cosine_ops)"
        )
        admin.execute("SELECT memvec.housekeeping()")


def literal(query: str, **values: object) -> bytes:
    """A DO block takes no parameters: the values as literals."""
    quoted = {name: sql.Literal(value).as_string() for name, value in values.items()}
    return (query % quoted).encode()


def run(program: Path, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr.lower()
    return done.stdout


def schema_of(bin_dir: Path, dsn: str) -> str:
    """The schema as pg_dump writes it, without its random lines."""
    return re.sub(r"^\\(un)?restrict .*$", "", run(bin_dir / "pg_dump", "-s", "-d", dsn), flags=re.MULTILINE)


def answers(dsn: str) -> list[list[tuple[Any, ...]]]:
    """The rows of every question in their order, scores included."""
    found: list[list[tuple[Any, ...]]] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(VEC)
        for function, key, question, seed, scope in QUESTIONS:
            arguments = {"key": key, "question": question, "seed": seed, "scope": scope}
            call = "SELECT * FROM memvec.{}(%(key)s, %(question)s, pg_temp.vec(%(seed)s), 1{})"
            if seed is None:
                call = "SELECT * FROM memvec.{}(%(key)s, %(question)s{})"
            rest = "" if function == "prefetch" else ", p_scope => %(scope)s"
            query = call.format(function, rest)
            found.append(connection.execute(query.encode(), arguments).fetchall())
    return found


@pytest.fixture(scope="module")
def restored(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restored]:
    bound_login, _ = database.make_login("memvec_runtime")
    fill(database, bound_login)
    dump = tmp_path_factory.mktemp("dump") / "memvec.dump"
    run(database.server.bin_dir / "pg_dump", "-Fc", "-f", str(dump), "-d", database.admin_dsn)
    with throwaway_server() as server:
        run_sql(server.dsn(), "CREATE DATABASE memvec")
        dsn = server.dsn("memvec")
        migrate(dsn, RUNTIME_ROLE)
        run_sql(dsn, f"CREATE ROLE {bound_login} LOGIN IN ROLE memvec_runtime")
        run_sql(dsn, "DROP SCHEMA memvec CASCADE")
        run(server.bin_dir / "pg_restore", "--exit-on-error", "-d", dsn, str(dump))
        before = schema_of(server.bin_dir, dsn)
        yield Restored(database, server, migrate(dsn, RUNTIME_ROLE), before, bound_login)


def test_migrating_what_was_restored_changes_nothing(restored: Restored) -> None:
    assert restored.report.applied == []
    assert restored.report.granted == []
    assert restored.report.warnings == []
    assert schema_of(restored.server.bin_dir, restored.admin_dsn) == restored.before
    if restored.source.server.bin_dir == restored.server.bin_dir:
        assert schema_of(restored.server.bin_dir, restored.source.admin_dsn) == restored.before


def test_thirty_questions_have_the_same_answers(restored: Restored) -> None:
    expected = answers(restored.source.runtime_dsn)

    assert len(expected) == 30
    assert all(expected), [q for q, rows in zip(QUESTIONS, expected, strict=True) if not rows]
    assert answers(restored.runtime_dsn) == expected


def test_persons_stay_the_same_and_apart(restored: Restored) -> None:
    query = "SELECT person_key FROM memvec.canonical_identity(%s)"
    with restored.source.runtime() as old, psycopg.connect(restored.runtime_dsn) as new:
        for key in PEOPLE:
            assert new.execute(query, (key,)).fetchone() == old.execute(query, (key,)).fetchone()
        seen = new.execute(
            "SELECT count(*) FROM memvec.recall_memory('agent:main:telegram:dm:43', 'harbour')"
        ).fetchone()
        assert seen == (0,)


def test_settings_bindings_and_history_are_there(restored: Restored) -> None:
    tables = (
        "settings",
        "role_identities",
        "identity_aliases",
        "memory_history",
        "entry_sources",
        "embedding_spaces",
    )
    with restored.source.admin() as old, psycopg.connect(restored.admin_dsn) as new:
        for table in tables:
            query = sql.SQL("SELECT * FROM memvec.{} ORDER BY 1, 2").format(sql.Identifier(table))
            rows = old.execute(query).fetchall()
            assert rows, table
            assert new.execute(query).fetchall() == rows, table
    with psycopg.connect(restored.server.dsn("memvec", restored.bound_login), autocommit=True) as bound:
        bound.execute("SELECT * FROM memvec.recall_memory('marketing', 'harbour')")
        with pytest.raises(psycopg.Error) as refused:
            bound.execute("SELECT * FROM memvec.recall_memory('ops', 'harbour')")
        assert refused.value.sqlstate == "MV002"


def test_the_runtime_login_reads_no_table(restored: Restored) -> None:
    with psycopg.connect(restored.runtime_dsn, autocommit=True) as runtime:
        tables = [
            row[0]
            for row in runtime.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'memvec'::regnamespace AND relkind = 'r'"
            )
        ]
        assert {"memory_entries", "secrets", "entry_embeddings_1"} <= set(tables)
        for table in tables:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                runtime.execute(sql.SQL("SELECT FROM memvec.{}").format(sql.Identifier(table)))


def test_the_vector_index_is_there_and_used(restored: Restored) -> None:
    query = (
        "SELECT id FROM memvec.recall_memory('ops', NULL, pg_temp.vec(1), 1, p_scope => 'all', p_limit => 10)"
    )
    with psycopg.connect(restored.admin_dsn) as admin:
        admin.execute(VEC)
        exact = admin.execute(query).fetchall()
        admin.execute("SELECT memvec.set_setting('exact_rows', '10')")
        admin.execute("SELECT memvec.set_setting('hnsw_visit_rows', '0')")
        for name in ("enable_seqscan", "enable_sort", "enable_bitmapscan"):
            admin.execute(sql.SQL("SET LOCAL {} = off").format(sql.Identifier(name)))
        near = admin.execute(query).fetchall()
        scans = admin.execute(
            "SELECT pg_stat_get_xact_numscans('memvec.entry_embeddings_1_hnsw'::regclass)"
        ).fetchone()
        admin.rollback()
    assert scans is not None
    assert scans[0] > 0
    assert len(set(exact) & set(near)) >= 9


def test_writing_goes_on(restored: Restored) -> None:
    """Identity columns continue after the last id, and the replay of a known text is a duplicate."""
    with psycopg.connect(restored.runtime_dsn) as runtime:
        known = runtime.execute(
            "SELECT content FROM memvec.recall_memory('ops', 'harbour', p_target => 'user')"
        ).fetchone()
        assert known is not None
        added = runtime.execute("SELECT outcome FROM memvec.add_memory('ops', 'user', %s)", known).fetchone()
        assert added == ("duplicate",)
        added = runtime.execute(
            "SELECT outcome FROM memvec.add_memory('ops', 'user', 'something new')"
        ).fetchone()
        assert added == ("added",)
        runtime.rollback()
