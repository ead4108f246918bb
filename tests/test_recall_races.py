"""Recall while others change what it stands on: the language of the words, and the embedding spaces. Whatever
the order of the two, every row is found, and nobody sees an error that no function names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from conftest import Database

WAIT = 60.0


@pytest.fixture(autouse=True)
def _settings(database: Database) -> Iterator[None]:
    """Nobody waits longer than a second for a writer, and the language is the usual one at the end."""
    with database.admin() as admin:
        admin.execute("SELECT memvec.set_setting('lock_seconds', '1')")
        yield
        admin.execute("SELECT memvec.set_setting('lock_seconds', '5')")
        admin.execute("SELECT memvec.set_setting('search_language', 'english')")
        assert renewed(admin)


def renewed(admin: psycopg.Connection[Any]) -> bool:
    """Renew rows until none is left."""
    give_up = time.monotonic() + WAIT
    while time.monotonic() < give_up:
        if admin.execute("SELECT memvec.reindex_search()").fetchone() == (0,):
            return True
    return False


def found(database: Database, theme: str, question: str) -> int:
    with database.runtime() as runtime:
        return len(
            runtime.execute("SELECT id FROM memvec.recall_memory(%s, %s)", [theme, question]).fetchall()
        )


def wait_until_blocked(database: Database, waiting: int, call: Future[Any]) -> None:
    give_up = time.monotonic() + WAIT
    with database.admin() as observer:
        while time.monotonic() < give_up:
            if observer.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [waiting]).fetchone() == (
                True,
            ):
                return
            assert not call.done(), f"it did not wait: {call.exception() or call.result()}"
            time.sleep(0.005)
    raise AssertionError("the call neither waits nor ends")


def test_a_row_that_was_being_written_when_the_language_changed_is_found(database: Database) -> None:
    theme = "race-language-writer"
    with database.runtime() as runtime, database.admin() as admin, runtime.transaction():
        runtime.execute("SELECT memvec.add_memory(%s, 'memory', 'running shoes')", [theme])
        admin.execute("SELECT memvec.set_setting('search_language', 'simple')")
        assert admin.execute("SELECT memvec.reindex_search()").fetchone() != (0,), "somebody still writes"
    assert found(database, theme, "running") == 1
    with database.admin() as admin:
        assert renewed(admin)
        assert admin.execute("SELECT memvec.setting('search_languages_before')").fetchone() == ("",)
    assert found(database, theme, "running") == 1


def test_two_who_renew_rows_do_not_wait_for_each_other(database: Database) -> None:
    with database.admin() as one, database.admin() as two:
        two.execute("SELECT memvec.set_setting('search_language', 'simple')")
        with one.transaction():
            assert renewed(one)
            assert two.execute("SELECT memvec.outwait_writers()").fetchone() == (True,)


def test_a_language_set_while_the_last_rows_are_renewed_keeps_the_former_one(database: Database) -> None:
    theme = "race-language-twice"
    with database.runtime() as runtime:
        runtime.execute("SELECT memvec.add_memory(%s, 'memory', 'running shoes')", [theme])
    with database.admin() as admin, database.admin() as renewing, ThreadPoolExecutor(1) as pool:
        admin.execute("SELECT memvec.set_setting('search_language', 'simple')")
        renewing.execute("SELECT memvec.reindex_search(0)")
        admin.execute(
            "UPDATE memvec.memory_entries SET search = memvec.search_vector(content),"
            " search_version = memvec.setting('search_version')::integer"
        )
        with admin.transaction():
            admin.execute("SELECT memvec.set_setting('search_language', 'english')")
            call = pool.submit(lambda: renewing.execute("SELECT memvec.reindex_search()").fetchone())
            wait_until_blocked(database, renewing.info.backend_pid, call)
        call.result(WAIT)
        assert found(database, theme, "running") == 1


def test_a_question_that_waited_for_its_space_to_be_dropped_names_the_error(database: Database) -> None:
    theme = "race-space"
    with database.admin() as admin, database.runtime() as runtime, ThreadPoolExecutor(1) as pool:
        made = admin.execute("SELECT memvec.add_embedding_space('race-space', 3)").fetchone()
        assert made is not None
        runtime.execute(
            "SELECT memvec.add_memory(%s, 'memory', 'hello', p_embedding => '[1,2,3]', p_space => %s)",
            [theme, made[0]],
        )
        with admin.transaction():
            admin.execute("SELECT memvec.drop_embedding_space(%s)", made)
            question = "SELECT id FROM memvec.recall_memory(%s, 'hello', '[1,2,3]', %s)"
            call = pool.submit(lambda: runtime.execute(question, [theme, made[0]]).fetchall())
            wait_until_blocked(database, runtime.info.backend_pid, call)
        failure = call.exception(WAIT)
        assert isinstance(failure, psycopg.Error)
        assert failure.sqlstate == "MV004"
    assert found(database, theme, "hello") == 1


def test_a_large_theme_is_answered_the_same_while_indexes_are_missing(database: Database) -> None:
    theme = "race-index"
    small = {"text_all_terms_rows": "5", "text_match_rows": "10", "rrf_depth": "10"}
    asks = [
        (theme, question, *bounds)
        for question in ("stone", "stone zebra", "unheard stone", "zebra")
        for bounds in (
            ("own", None, None),
            ("own", "memory", None),
            ("own", None, "yesterday"),
            ("all", None, None),
        )
    ]

    def answers() -> list[list[Any]]:
        with database.runtime() as runtime:
            ask = (
                "SELECT id FROM memvec.recall_memory("
                "%s, %s, p_scope => %s, p_target => %s, p_since => %s::timestamptz)"
            )
            return [runtime.execute(ask, asked).fetchall() for asked in asks]

    with database.runtime() as runtime:
        for number in range(40):
            note = f"stone {number}{' zebra' if number % 9 == 0 else ''}"
            runtime.execute("SELECT memvec.add_memory(%s, 'memory', %s)", [theme, note])
    with database.admin() as admin:
        former = {name: admin.execute("SELECT memvec.setting(%s)", [name]).fetchone() for name in small}
        for name, value in small.items():
            admin.execute("SELECT memvec.set_setting(%s, %s)", [name, value])
        admin.execute("SELECT memvec.count_themes()")
        admin.execute("INSERT INTO memvec.term_statistics VALUES ('entry', 'stone', 40)")
        before = answers()
        assert [len(answer) for answer in before] == [10] * 12 + [5] * 4
        admin.execute("DROP INDEX memvec.memory_entries_theme, memvec.memory_entries_search")
        assert answers() == before
        found = admin.execute("SELECT fix FROM memvec.health() WHERE name = 'indexes'").fetchone()
        assert found is not None
        for command in found[0].strip(";").split(";"):
            admin.execute(command)
        assert answers() == before
        admin.execute("DELETE FROM memvec.term_statistics")
        for name, value in former.items():
            assert value is not None
            admin.execute("SELECT memvec.set_setting(%s, %s)", [name, value[0]])
