"""Recall where one SQL session is not enough: databases of other locales, and several sessions at once.

Everything else about recall is tested in db/tests/recall.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from conftest import RUNTIME_ROLE, Database, TestServer
from psycopg import sql

from hermes_pgsql.migrate import migrate

# Case R03: notes in many scripts, and questions with the number of the note that must come first.
NOTES = (
    "我们现在的记忆提供商是本地数据库",
    "桌面后端watchdog误杀健康后端",
    "배포는 금요일에 한다",
    "今月の売上を確認する",
    "部署方案放在仓库根目录",
    "Frau Müller wohnt in Köln",
    "Сервер стоит в Москве",
)
QUESTIONS = (
    ("记忆", 0),
    ("watchdog", 1),
    ("배포", 2),
    ("売上", 3),
    ("go 部署 deployment", 4),
    ("Muller", 5),
    ("MÜLLER köln", 5),
    ("МОСКВЕ", 6),
    ("我们现在的记忆提供商是什么？", 0),
    ("猫", None),
)


@pytest.fixture(scope="module", params=["C.UTF-8", "C"])
def localised(request: pytest.FixtureRequest, server: TestServer, template: str) -> Iterator[Database]:
    """A migrated database of that locale. `template` gives the runtime login its password where one is
    needed."""
    del template
    name = f"memvec_{secrets.token_hex(4)}"
    create = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER libc LOCALE {}")
    try:
        server.execute(create.format(sql.Identifier(name), sql.Literal(request.param)))
    except psycopg.errors.WrongObjectType as error:  # "invalid locale name"
        pytest.skip(f"the server has no locale {request.param}: {error}")
    migrate(server.dsn(name), RUNTIME_ROLE)
    yield Database(server, name)
    server.drop_database(name)


@pytest.fixture
def noted(localised: Database) -> Iterator[psycopg.Connection]:
    with localised.runtime() as runtime, runtime.transaction(force_rollback=True):
        for note in NOTES:
            runtime.execute("SELECT memvec.add_memory('t', 'memory', %s)", (note,))
            runtime.execute("SELECT memvec.append_turn('t', 's', 'user', %s)", (note,))
        yield runtime


@pytest.mark.parametrize(("question", "first"), QUESTIONS)
@pytest.mark.parametrize("function", ["recall_memory", "recall_conversation"])
def test_every_script_in_every_locale(
    noted: psycopg.Connection, function: str, question: str, first: int | None
) -> None:
    query = sql.SQL("SELECT content FROM memvec.{}('t', %s, p_limit => 3)").format(sql.Identifier(function))

    contents = [row[0] for row in noted.execute(query, (question,))]

    assert contents[:1] == ([] if first is None else [NOTES[first]])


def test_prefetch_in_every_locale(noted: psycopg.Connection) -> None:
    query = "SELECT content FROM memvec.prefetch('t', '我们现在的记忆提供商是什么？')"

    assert (NOTES[0],) in noted.execute(query).fetchall()


def test_names_fold_in_every_locale(localised: Database) -> None:
    query = "SELECT agent_identity FROM memvec.canonical_identity(%s)"
    with localised.runtime() as runtime:
        for raw, theme in (("МАРКЕТИНГ", "маркетинг"), ("ÄRGER", "ärger"), ("Ops", "ops")):
            assert runtime.execute(query, (raw,)).fetchone() == (theme,)


@pytest.fixture
def space(database: Database) -> int:
    with database.admin() as admin:
        row = admin.execute("SELECT memvec.add_embedding_space('cases', 8)").fetchone()
    assert row is not None
    return row[0]


def test_parallel_workers_share_the_rows(database: Database, space: int) -> None:
    _, dsn = database.make_login("memvec_embedder")
    with database.runtime() as runtime:
        wanted = {
            runtime.execute(
                "SELECT id FROM memvec.add_memory('shared', 'memory', %s)", (f"note {i}",)
            ).fetchone()
            for i in range(60)
        }

    def work(_: int) -> list[tuple[int]]:
        claimed: list[tuple[int]] = []
        with psycopg.connect(dsn, autocommit=True) as embedder:
            while rows := embedder.execute("SELECT id FROM memvec.claim_pending(%s, 7)", (space,)).fetchall():
                claimed += rows
        return claimed

    with ThreadPoolExecutor(4) as pool:
        claimed = [row for rows in pool.map(work, range(4)) for row in rows]

    assert len(claimed) == len(set(claimed))
    assert set(claimed) == wanted


def test_housekeeping_goes_away_when_another_is_at_it(database: Database) -> None:
    with database.runtime() as first, database.runtime() as second:
        with first.transaction():
            assert first.execute("SELECT * FROM memvec.housekeeping()").fetchall() != []
            assert second.execute("SELECT * FROM memvec.housekeeping()").fetchall() == []
        assert second.execute("SELECT * FROM memvec.housekeeping()").fetchall() != []


def test_a_vector_waits_for_a_text_that_is_just_changing(database: Database, space: int) -> None:
    """The text is replaced while its vector arrives: the vector of the old text is not stored."""
    with database.runtime() as editor, database.runtime() as drain, ThreadPoolExecutor(1) as pool:
        row = editor.execute(
            "SELECT id, content_hash FROM memvec.add_memory('racing', 'memory', 'before')"
        ).fetchone()
        assert row is not None
        with editor.transaction():
            editor.execute("SELECT memvec.replace_memory('racing', 'memory', 'before', 'after')")
            store = pool.submit(
                lambda: drain.execute(
                    "SELECT stored FROM memvec.store_embeddings(%s, '{entry}', ARRAY[%s::bigint],"
                    " ARRAY[%s::bytea], ARRAY['[1,0,0,0,0,0,0,0]'::public.halfvec])",
                    (space, *row),
                ).fetchone()
            )
            wait_until_blocked(database, drain)
        assert store.result(120) == (0,)
    with database.admin() as admin:
        vectors = sql.SQL("SELECT count(*) FROM memvec.{} WHERE agent_identity = 'racing'")
        assert admin.execute(vectors.format(sql.Identifier(f"entry_embeddings_{space}"))).fetchone() == (0,)


def wait_until_blocked(database: Database, connection: psycopg.Connection) -> None:
    blocked = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock')"
    with database.admin() as admin:
        for _ in range(9000):
            row = admin.execute(blocked, (connection.info.backend_pid,)).fetchone()
            if row == (True,):
                return
            admin.execute("SELECT pg_sleep(0.01)")
    pytest.fail("the other session never waited")
