"""Backfill and the spaces it fills: the real command, database and endpoint client, an endpoint of ours."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conftest import ROOT, Database
from drain_support import wait_until
from embedding_services import Service, words_vector
from test_cli import Commands, run  # noqa: F401 (fixture)

from hermes_pgsql import backfill as backfill_module
from hermes_pgsql import pool
from hermes_pgsql.backfill import Target, backfill
from hermes_pgsql.client import Memvec
from hermes_pgsql.embedding.http import HttpEmbedder

Row = tuple[Any, ...]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses before an endpoint is asked again."""
    monkeypatch.setattr(backfill_module, "_FIRST_PAUSE", 0.05)


@pytest.fixture
def service() -> Iterator[Service]:
    started = Service(models={"words": words_vector}).start()
    yield started
    started.stop()


@pytest.fixture
def clean(database: Database) -> Iterator[Database]:
    """The module's database without rows and spaces."""
    yield database
    pool.close_all()
    with database.admin() as connection:
        for (space,) in connection.execute("SELECT id FROM memvec.embedding_spaces").fetchall():
            connection.execute("SELECT memvec.drop_embedding_space(%s)", (space,))
        connection.execute("TRUNCATE memvec.memory_entries, memvec.conversations CASCADE")


class Rows:
    """Rows in the database, and what became of them."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.memvec = Memvec(database.admin_dsn)

    def add(self, *texts: str) -> None:
        for text in texts:
            self.memvec.add_memory("fleet", "memory", text)

    def add_many(self, entries: int, turns: int) -> None:
        self.query(
            "SELECT memvec.add_memory('fleet', 'memory', format('row entry %%s about topic %%s', n, n))"
            " FROM generate_series(1, %s) AS n",
            entries,
        )
        self.query(
            "SELECT memvec.append_turn('fleet', 's', 'user', format('row turn %%s about topic %%s', n, n))"
            " FROM generate_series(1, %s) AS n",
            turns,
        )

    def space(self, model: str = "words", dim: int = 64) -> int:
        return self.memvec.add_embedding_space(model, dim)

    def query(self, statement: str, *parameters: object) -> list[Row]:
        with psycopg.connect(self.database.admin_dsn, autocommit=True) as connection:
            return connection.execute(statement.encode(), parameters or None).fetchall()

    def vectors(self, space: int) -> dict[str, list[float]]:
        """The text of each row that has a vector, and the vector."""
        rows = self.query(
            f"SELECT m.content, e.embedding::text FROM memvec.entry_embeddings_{space} AS e"
            " JOIN memvec.memory_entries AS m USING (id)"
            f" UNION ALL SELECT c.content, e.embedding::text FROM memvec.turn_embeddings_{space} AS e"
            " JOIN memvec.conversations AS c USING (id)"
        )
        return {content: json.loads(vector) for content, vector in rows}


@pytest.fixture
def rows(clean: Database) -> Rows:
    return Rows(clean)


def target(service: Service, space: int, **options: Any) -> Target:
    embedder = HttpEmbedder(service.url, "words", dim=64, protocol="openai", backoff=0.01, **options)
    return Target(space, "words", 64, embedder)


@pytest.fixture
def fill(run: Commands, clean: Database, service: Service) -> Any:  # noqa: F811
    """The command, with the endpoint's options."""

    def command(*options: str) -> Any:
        return run(
            "backfill",
            "--admin-dsn",
            clean.admin_dsn,
            "--embed-url",
            service.url,
            "--embed-protocol",
            "openai",
            "--json",
            *options,
        )

    return command


def assert_own_vectors(vectors: dict[str, list[float]], embed: Any = words_vector) -> None:
    """Every stored vector is the one of its own text."""
    for text, vector in vectors.items():
        assert vector == pytest.approx(embed(text), abs=2e-3), text


# What one run does


def test_every_row_gets_the_vector_of_its_own_text(fill: Any, rows: Rows, service: Service) -> None:
    space = rows.space()
    rows.add_many(50, 50)
    service.spoil = lambda items: random.sample(items, len(items))
    done = fill("--model", "words", "--batch", "8", "--jobs", "3")
    assert (done.code, done.json["outcome"], done.json["embedded"], done.json["left"]) == (0, "done", 100, 0)
    vectors = rows.vectors(space)
    assert len(vectors) == 100
    assert_own_vectors(vectors)
    again = fill("--model", "words")
    assert (again.code, again.json["embedded"]) == (0, 0)
    assert len(service.texts()) == 100


def test_items_that_are_missing_from_a_reply_never_shift_vectors(
    fill: Any, rows: Rows, service: Service
) -> None:
    # case X11
    space = rows.space()
    rows.add_many(100, 0)
    seen = 0

    def spoiled(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        nonlocal seen
        kept: list[dict[str, Any]] = []
        for item in random.sample(items, len(items)):
            seen += 1
            if seen % 7:
                kept.append(item)
        return kept

    service.spoil = spoiled
    done = fill("--model", "words", "--batch", "32", "--jobs", "1")
    vectors = rows.vectors(space)
    assert done.json["embedded"] == len(vectors)
    assert done.json["embedded"] + done.json["failed"] == 100
    assert done.code == (3 if done.json["failed"] else 0)
    assert_own_vectors(vectors)


def test_texts_that_fail_are_tried_once_a_run_and_told(fill: Any, rows: Rows, service: Service) -> None:
    # case R11
    rows.space()
    rows.add(*[f"POISON {number}" for number in range(10)], *[f"good row {number}" for number in range(25)])
    rows.query(
        "INSERT INTO memvec.memory_entries"
        " (agent_identity, target, content, content_hash, search, search_version)"
        " SELECT 'fleet', 'memory', b, sha256(convert_to(b, 'UTF8')), '', 1"
        " FROM unnest(ARRAY[U&'\\00a0', U&'\\3000\\2003', U&'\\001c']) AS b RETURNING id"
    )
    service.fails = lambda text: (500, "the model chokes") if "POISON" in text else None
    first = fill("--model", "words", "--batch", "10", "--jobs", "1")
    assert first.code == 3
    counts = ("embedded", "failed", "unembeddable", "left", "given_up")
    assert [first.json[name] for name in counts] == [25, 10, 3, 13, 3]
    assert len(service.requests) <= 60
    reasons = [failure["reason"] for failure in first.json["failures"]]
    assert sum("the model chokes" in reason for reason in reasons) == 10
    assert sum("blank" in reason for reason in reasons) == 3

    service.requests.clear()
    second = fill("--model", "words", "--batch", "10")
    assert second.code == 3
    assert [second.json[name] for name in counts] == [0, 10, 0, 13, 3]
    assert {row["last_error"] for row in second.json["given_up_rows"]} == {
        "nothing to embed: the text is blank"
    }
    # As a person reads it
    told = fill("--model", "words")
    assert "the model chokes" in told.out

    service.down = True
    dead = fill("--model", "words")
    assert dead.code == 2
    assert service.url in dead.json["unavailable"]
    assert [row[0] for row in rows.query("SELECT DISTINCT attempts FROM memvec.embedding_work")] == [3, 5]
    assert not rows.query("SELECT FROM memvec.embedding_work WHERE leased_until > now()")

    # The cause is mended: those that were not given up are embedded, the others only when told so.
    service.down = False
    service.fails = lambda _text: None
    mended = fill("--model", "words")
    assert [mended.json[name] for name in counts] == [10, 0, 0, 3, 3]
    assert fill("--model", "words", "--retry").json["unembeddable"] == 3


def test_after_some_runs_a_failing_text_is_given_up(rows: Rows, service: Service) -> None:
    space = rows.space()
    rows.add("POISON", "good")
    service.fails = lambda text: (500, "no") if "POISON" in text else None
    for _run in range(6):
        report = backfill(rows.memvec, target(service, space), jobs=1)
    assert (report.failed, report.given_up, report.outcome) == (0, 1, "partly")
    assert sum("POISON" in text for text in service.texts()) == 6  # once with the other text, then alone


def test_rows_marked_never_to_be_embedded_are_left_alone(rows: Rows, service: Service) -> None:
    space = rows.space()
    rows.memvec.add_memory("fleet", "memory", "private", embed=False)
    rows.memvec.append_turn("fleet", "s", "user", "chatter", embed=False)
    rows.memvec.append_turn("fleet", "s", "user", "substance")
    report = backfill(rows.memvec, target(service, space))
    assert (report.outcome, report.embedded) == ("done", 1)
    assert service.texts() == ["substance"]


def test_an_endpoint_of_another_width_stores_nothing_and_blames_no_row(
    fill: Any, rows: Rows, service: Service
) -> None:
    rows.space()
    rows.add_many(40, 0)
    service.models["words"] = lambda text: words_vector(text, 32)
    done = fill("--model", "words")
    assert done.code == 2
    assert "expected 64 dims, got 32" in done.json["unavailable"]
    assert not rows.query("SELECT FROM memvec.embedding_work WHERE attempts > 0")
    service.models.clear()
    missing = fill("--model", "words")
    assert missing.code == 2
    assert "correct embed_model" in missing.json["unavailable"]


def test_a_slow_endpoint_gets_smaller_batches_and_loses_nothing(rows: Rows, service: Service) -> None:
    space = rows.space()
    rows.add_many(24, 0)
    service.fails = lambda _text: None
    slow = service.answer

    def answer(body: dict[str, Any]) -> tuple[int, object]:
        service.delay = 0.12 * len(body["input"])
        return slow(body)

    service.answer = answer  # type: ignore[method-assign]
    report = backfill(rows.memvec, target(service, space, batch_size=16), jobs=1, batch=16, timeout=1.2)
    assert (report.outcome, report.embedded, report.failed) == ("done", 24, 0)


def test_rows_that_appear_or_change_during_a_run_are_embedded_too(rows: Rows, service: Service) -> None:
    space = rows.space()
    rows.add_many(30, 0)
    answer = service.answer
    changed = False

    def meddling(body: dict[str, Any]) -> tuple[int, object]:
        nonlocal changed
        if not changed:
            changed = True
            rows.memvec.replace_memory("fleet", "memory", body["input"][0], "other words than before")
            rows.add("a row that came late")
        return answer(body)

    service.answer = meddling  # type: ignore[method-assign]
    report = backfill(rows.memvec, target(service, space), jobs=1, batch=8)
    assert (report.outcome, report.changed) == ("done", 1)
    vectors = rows.vectors(space)
    assert {"other words than before", "a row that came late"} <= vectors.keys()
    assert_own_vectors(vectors)


def test_a_run_looks_at_each_row_a_few_times_however_small_its_batches(rows: Rows, service: Service) -> None:
    space = rows.space()
    rows.add_many(600, 600)
    report = backfill(rows.memvec, target(service, space, batch_size=8), jobs=1, batch=8)
    assert report.outcome == "done"
    pool.close_all()
    probes = (
        "SELECT sum(idx_scan)::int FROM pg_stat_user_indexes"
        f" WHERE indexrelname IN ('entry_embeddings_{space}_pkey', 'turn_embeddings_{space}_pkey')"
    )
    # Statistics arrive when their sessions end.
    assert wait_until(lambda: rows.query(probes)[0][0] >= 1200, 60)
    assert rows.query(probes)[0][0] < 6 * 1200


# Many runs


def backfill_process(database: Database, service: Service, **environment: str) -> subprocess.Popen[str]:
    command = [
        *(sys.executable, "-m", "hermes_pgsql", "backfill", "--model", "words", "--json"),
        *("--batch", "4", "--jobs", "2", "--embed-url", service.url, "--embed-protocol", "openai"),
    ]
    env = {key: value for key, value in os.environ.items() if not key.startswith(("HERMES_", "PG"))}
    env |= {"HERMES_PGSQL_ADMIN_DSN": database.admin_dsn, "HERMES_HOME": "/nonexistent", **environment}
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)


def test_four_parallel_backfills_embed_each_row_once(rows: Rows, service: Service) -> None:
    space = rows.space()
    rows.add_many(100, 100)
    service.delay = 0.02
    started = [backfill_process(rows.database, service) for _ in range(4)]
    reports = [json.loads(one.communicate(timeout=120)[0]) for one in started]
    assert [one.returncode for one in started] == [0] * 4
    assert sum(report["embedded"] for report in reports) == 200
    assert len(service.texts()) == len(set(service.texts())) == 200
    assert len(rows.vectors(space)) == 200


def test_a_killed_backfill_is_resumed_without_repeating_finished_work(rows: Rows, service: Service) -> None:
    space = rows.space()
    rows.add_many(60, 60)
    service.delay = 0.05
    killed = backfill_process(rows.database, service)
    assert wait_until(lambda: len(rows.vectors(space)) >= 20, 60)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    finished = rows.vectors(space).keys()
    # The leases of the dead end by themselves; here they need not be waited for.
    rows.query("UPDATE memvec.embedding_work SET leased_until = now() + interval '1 s' RETURNING row_id")
    service.requests.clear()
    resumed = backfill_process(rows.database, service)
    report = json.loads(resumed.communicate(timeout=120)[0])
    assert (resumed.returncode, report["left"]) == (0, 0)
    assert not finished & set(service.texts())
    assert len(rows.vectors(space)) == 120


def test_a_restart_of_the_database_does_not_end_a_run(rows: Rows, service: Service) -> None:
    space = rows.space()
    rows.add_many(60, 0)
    answer = service.answer

    def breaking(body: dict[str, Any]) -> tuple[int, object]:
        if len(service.requests) == 3:
            rows.query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        return answer(body)

    service.answer = breaking  # type: ignore[method-assign]
    report = backfill(Memvec(rows.database.admin_dsn), target(service, space, batch_size=4), jobs=2, batch=4)
    assert report.left == 0
    assert len(rows.vectors(space)) == 60


def test_a_space_that_is_dropped_ends_the_run_with_a_sentence(
    fill: Any, rows: Rows, service: Service
) -> None:
    space = rows.space()
    rows.add_many(20, 0)
    answer = service.answer

    def dropping(body: dict[str, Any]) -> tuple[int, object]:
        if not service.requests:
            assert rows.query("SELECT memvec.drop_embedding_space(%s)", space) == [(True,)]
        return answer(body)

    service.answer = dropping  # type: ignore[method-assign]
    ended = fill("--model", "words", "--batch", "2", "--jobs", "1")
    assert ended.code == 1
    assert "the model words was dropped" in ended.err


def test_rows_that_change_between_claim_and_store_get_no_stale_vector(
    fill: Any, rows: Rows, service: Service
) -> None:
    """Replaced, deleted or marked never to be embedded, while the endpoint has their text."""
    space = rows.space()
    rows.add_many(6, 1)
    answer = service.answer

    def meddling(body: dict[str, Any]) -> tuple[int, object]:
        if not service.requests:
            rows.query(
                "DELETE FROM memvec.memory_entries WHERE content LIKE 'row entry 2 %%' RETURNING %s", 1
            )
            rows.query("SELECT memvec.replace_memory('fleet', 'memory', 'row entry 3 about topic 3', 'new')")
            rows.query("UPDATE memvec.conversations SET embed = false RETURNING id")
        return answer(body)

    service.answer = meddling  # type: ignore[method-assign]
    report = fill("--model", "words", "--jobs", "1").json
    assert (report["outcome"], report["embedded"], report["changed"]) == ("done", 5, 3)
    vectors = rows.vectors(space)
    assert set(vectors) == {"new", *(f"row entry {n} about topic {n}" for n in (1, 4, 5, 6))}
    assert_own_vectors(vectors)


def test_an_endpoint_may_say_what_no_database_can_hold(fill: Any, rows: Rows, service: Service) -> None:
    rows.space()
    rows.add("good", "bad")
    service.fails = lambda text: (500, "NUL \0 half \ud800 escape \x1b[31m") if text == "bad" else None
    ended = fill("--model", "words")
    assert ended.code == 3
    (failure,) = ended.json["failures"]
    assert "NUL" in failure["reason"]
    assert failure["reason"].isprintable()
    assert rows.query("SELECT last_error FROM memvec.embedding_work")[0][0] == failure["reason"]


# The command's options


def test_flags_come_before_the_file_and_the_file_before_defaults(
    run: Commands,  # noqa: F811
    rows: Rows,
    service: Service,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows.space("from-file", 64)
    rows.space("from-flag", 64)
    rows.add("a row")
    service.models = {"from-file": words_vector, "from-flag": words_vector}
    file = tmp_path / "other.yaml"
    settings = {"embed_url": service.url, "embed_model": "from-file", "embed_dim": 64}
    file.write_text(json.dumps({"plugins": {"pgvector": settings}}), encoding="utf-8")
    monkeypatch.setenv("HERMES_PGSQL_ADMIN_DSN", rows.database.admin_dsn)
    fields = ("--json", "--config", str(file))
    assert run("backfill", *fields).json["model"] == "from-file"
    assert run("backfill", *fields, "--embed-model", "from-flag").json["model"] == "from-flag"
    assert run("backfill", *fields, "--model", "from-flag", "--dry-run").json["pending"] == 0
    monkeypatch.setenv("KEY_OF_THE_TEST", "s3cret")
    assert run("backfill", *fields, "--embed-api-key-env", "KEY_OF_THE_TEST").code == 0
    for wrong in (
        ["--embed-protocol", "grpc"],
        ["--embed-dim", "0"],
        ["--embed-api-key-env", "sk-not a name"],
        ["--model", "a", "--embed-model", "b"],
        ["--jobs", "0"],
        ["--embed-url", ""],
    ):
        assert run("backfill", *wrong).code == 2, wrong
    assert run("backfill", "--config", str(tmp_path / "none.yaml")).code == 1


def test_a_model_without_a_space_is_refused_with_the_command_that_adds_it(
    run: Commands,  # noqa: F811
    rows: Rows,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows.space("old", 8)
    monkeypatch.setenv("HERMES_PGSQL_ADMIN_DSN", rows.database.admin_dsn)
    options = ("--embed-url", service.url, "--embed-protocol", "openai")
    refused = run("backfill", "--embed-model", "words", *options)
    assert refused.code == 1
    assert "old (8 dimensions)" in refused.err
    assert "hermes-pgsql model add words --dim 64" in refused.err
    assert run("backfill", "--model", "words", *options).code == 1


def test_the_first_space_is_the_backfills_model(run: Commands, rows: Rows, fill: Any) -> None:  # noqa: F811
    rows.add("a row")
    assert fill("--embed-model", "words").json["embedded"] == 1


def test_a_runtime_login_is_told_what_is_needed(run: Commands, rows: Rows, service: Service) -> None:  # noqa: F811
    rows.space()
    refused = run(
        "backfill", "--dsn", rows.database.runtime_dsn, "--model", "words", "--embed-url", service.url
    )
    assert refused.code == 1
    assert "memvec_embedder" in refused.err


def test_an_embedder_login_is_enough(run: Commands, rows: Rows, service: Service) -> None:  # noqa: F811
    rows.space()
    rows.add("a row")
    _name, dsn = rows.database.make_login("memvec_embedder")
    done = run("backfill", "--dsn", dsn, "--model", "words", "--embed-url", service.url)
    assert done.code == 0
    assert "embedded      1 row of words" in done.out
    pool.close_all()


def test_prefixes_of_the_space_are_put_before_the_text_and_never_stored(
    run: Commands,  # noqa: F811
    rows: Rows,
    service: Service,
    fill: Any,
) -> None:
    # case R16
    admin = ("--admin-dsn", rows.database.admin_dsn)
    service.models |= {
        "nomic-embed-text:latest": words_vector,
        "custom": words_vector,
        "bge-m3": words_vector,
    }
    for model, options, starts in (
        ("nomic-embed-text:latest", (), "search_document: "),
        ("bge-m3", (), ""),
        ("custom", ("--query-prefix", "Q> ", "--document-prefix", "D> "), "D> "),
    ):
        rows.add(f"the fox hides by the river, says {model}")
        assert run("model", "add", model, "--dim", "64", *options, *admin).code == 0
        service.requests.clear()
        assert fill("--model", model).code == 0
        assert all(text.startswith(f"{starts}the fox") for text in service.texts())
        assert service.texts()
    stored = rows.query("SELECT content, search::text FROM memvec.memory_entries")
    assert all(content.startswith("the fox") for content, _search in stored)
    assert not any("search_document" in search or "d>" in search for _content, search in stored)


# The commands about models


def test_models_are_added_listed_and_dropped(run: Commands, rows: Rows, fill: Any) -> None:  # noqa: F811
    admin = ("--admin-dsn", rows.database.admin_dsn)
    added = run("model", "add", "words", "--dim", "64", "--min-similarity", "0.3", *admin)
    assert added.code == 0
    assert "hermes-pgsql backfill --model words" in added.err
    assert "Already there" in run("model", "add", "words", "--dim", "64", *admin).out
    assert "nothing to embed yet" in run("stats", "--dsn", rows.database.runtime_dsn).out
    rows.add_many(5, 3)
    assert fill("--model", "words").code == 0
    run("model", "add", "wide", "--dim", "4096", *admin)
    listed = run("model", "list", "--dsn", rows.database.runtime_dsn, "--json").json
    found = {(one["table"]["model"], one["table"]["kind"]): one for one in listed}
    assert found["words", "entry"]["coverage"]["embedded"] == 5
    assert found["words", "turn"]["coverage"]["embedded"] == 3
    assert found["wide", "entry"]["coverage"]["pending"] == 5
    assert found["wide", "entry"]["table"]["index_state"] == "too wide"
    assert found["words", "entry"]["table"]["bytes"] > 0
    shown = run("model", "list", "--dsn", rows.database.runtime_dsn).out
    assert "5 (100 %)" in shown
    assert "0.30" in shown

    dry = run("model", "drop", "words", *admin)
    assert "Would drop" in dry.out
    assert "8 vectors" in dry.out
    assert "8 rows have no vector of wide" in dry.out
    assert rows.query("SELECT count(*)::int FROM memvec.embedding_spaces")[0][0] == 2
    assert run("model", "drop", "words", "--dim", "32", *admin).code == 1
    assert run("model", "drop", "words", "--execute", "--json", *admin).json["dropped"]
    assert rows.query("SELECT model FROM memvec.embedding_spaces") == [("wide",)]
    assert run("model", "drop", "words", "--execute", *admin).code == 1
    assert rows.query("SELECT count(*)::int FROM memvec.memory_entries")[0][0] == 5


def test_names_of_models_are_quoted_and_fit_for_lists(run: Commands, rows: Rows) -> None:  # noqa: F811
    admin = ("--admin-dsn", rows.database.admin_dsn)
    for name in ("", "  ", " m", "m\n", "m\tn", "x" * 301):
        assert run("model", "add", "--dim", "4", *admin, "--", name).code == 1, repr(name)
    for dim in ("0", "16001", "x"):
        assert run("model", "add", "m", "--dim", dim, *admin).code == 2
    long, odd = f"hf.co/org/{'model-' * 40}", 'it\'s; a "name" $1 {0} %I'
    for name in (long, odd):
        added = run("model", "add", "--dim", "4", *admin, "--", name)
        assert added.code == 0
        assert f"backfill --model {shlex.quote(name)}" in added.err
    shown = run("model", "list", "--dsn", rows.database.runtime_dsn).out
    assert odd in shown
    assert all(title in shown for title in ("dim", "kind", "pending", "age", "index"))
    dry = run("model", "drop", odd, *admin).out
    assert "0 rows have no vector" in dry
    assert "the only one" not in dry
    assert run("model", "drop", odd, "--execute", *admin).code == 0


def test_a_space_is_dropped_when_nobody_is_at_it(run: Commands, rows: Rows) -> None:  # noqa: F811
    space = rows.space()
    reader = psycopg.connect(rows.database.admin_dsn)
    reader.execute("SELECT count(*) FROM memvec.embedding_spaces")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        rows.query("SELECT memvec.drop_embedding_space(%s)", space)
    dropping = subprocess.Popen(
        [sys.executable, "-m", "hermes_pgsql", "model", "drop", "words", "--execute"],
        cwd=ROOT,
        env=os.environ | {"HERMES_PGSQL_ADMIN_DSN": rows.database.admin_dsn},
    )
    assert wait_until(
        lambda: bool(rows.query("SELECT FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"))
    )
    reader.close()
    assert dropping.wait(60) == 0
    assert not rows.query("SELECT FROM memvec.embedding_spaces")
