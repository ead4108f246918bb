"""Case R15: A fleet changes its model while it works: two live providers, the real database, two models.

`python -m bench model_change` does the same with 40,000 rows and a backfill that is killed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conftest import Database
from embedding_services import Service, reversed_vector, told_apart_by_prefix, words_vector
from model_change_support import Host, Model, add_rows, texts_of
from provider_support import wait_for
from test_cli import Commands, run  # noqa: F401 (fixture)

from hermes_pgsql import drain, link, pool
from hermes_pgsql.backfill import backfill, find_target
from hermes_pgsql.cli.spaces import when_free
from hermes_pgsql.client import Memvec
from hermes_pgsql.config import settings_from_mapping

OLD = Model("model-a", 64, words_vector)
NO_PREFIX = {"embed_query_prefix": "none", "embed_document_prefix": "none"}
PREFIX = {"embed_query_prefix": "Q> ", "embed_document_prefix": "D> "}


def wide_vector(text: str) -> list[float]:
    return reversed_vector(text, 96)


CHANGES = {
    "same width": (OLD, Model("model-b", 64, reversed_vector)),
    "other width": (OLD, Model("model-c", 96, wide_vector)),
    "prefixes on": (
        Model("model-p", 64, words_vector, NO_PREFIX),
        Model("model-p", 64, reversed_vector, PREFIX),
    ),
    "prefixes off": (
        Model("model-p", 64, reversed_vector, PREFIX),
        Model("model-p", 64, words_vector, NO_PREFIX),
    ),
}


@pytest.fixture
def services() -> Iterator[tuple[Service, Service]]:
    """The endpoint of the hosts before and the one they change to."""
    models = {
        "model-a": words_vector,
        "model-b": reversed_vector,
        "model-c": wide_vector,
        "model-p": told_apart_by_prefix,
    }
    pair = (Service(models=dict(models)).start(), Service(models=dict(models)).start())
    yield pair
    for each in pair:
        each.stop()


@pytest.fixture
def database(server: Any, template: str) -> Iterator[Database]:
    """A database for each test: which space is the first one matters."""
    import secrets

    name = f"memvec_{secrets.token_hex(4)}"
    server.create_database(name, template)
    yield Database(server, name)
    pool.close_all()
    server.drop_database(name)


class Fleet:
    """Rows in two themes, a host in each, and the old model's space filled."""

    def __init__(self, database: Database, folder: Path, old: Model, service: Service) -> None:
        self.database = database
        self.memvec = Memvec(database.admin_dsn)
        self.old = self.add(old)
        add_rows(self.query, ["one", "two"], 60, 40)
        self.fill(old, service)
        known = {theme: texts_of(self.query, theme) for theme in ("one", "two")}
        self.hosts = [
            Host(folder / theme, database.runtime_dsn, theme, known[theme]) for theme in ("one", "two")
        ]
        for host in self.hosts:
            host.use(old, service.url)

    def query(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database.admin_dsn, autocommit=True) as connection:
            return connection.execute(statement.encode(), parameters or None).fetchall()

    def add(self, model: Model) -> int:
        prefixes = [model.settings.get(f"embed_{which}_prefix", "none") for which in ("query", "document")]
        return self.memvec.add_embedding_space(
            model.name, model.width, *("" if prefix == "none" else prefix for prefix in prefixes)
        )

    def fill(self, model: Model, service: Service) -> None:
        given = {
            "embed_url": service.url,
            "embed_model": model.name,
            "embed_dim": model.width,
            "embed_protocol": "openai",
            **model.settings,
        }
        found = find_target(settings_from_mapping(given), self.memvec, batch=16)
        report = backfill(self.memvec, found, jobs=2, batch=16)
        assert (report.failed, report.unembeddable, report.unavailable) == (0, 0, None)

    def counts(self) -> list[int]:
        tables = ("memory_entries", "conversations")
        return [self.query(f"SELECT count(*)::int FROM memvec.{table}")[0][0] for table in tables]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts look for their model's space again at once."""
    monkeypatch.setattr(link, "_SPACE_AGAIN", 0.05)
    monkeypatch.setattr(drain.worker, "FAILURE_CAP", 0.5)


@pytest.mark.parametrize("change", CHANGES)
def test_recall_is_never_down_and_never_mixed(
    change: str, database: Database, services: tuple[Service, Service], tmp_path: Path
) -> None:
    old, new = CHANGES[change]
    before, after = services
    fleet = Fleet(database, tmp_path, old, before)
    first, second = fleet.hosts
    for host in fleet.hosts:
        host.start()
        host.wait_for(10)
    assert first.seen.by_words == 0

    # A host that has the new model already works by words, until its space is there.
    second.use(new, after.url)
    second.wait_for(10)
    space = when_free(lambda: fleet.add(new))
    fleet.fill(new, after)
    for host in fleet.hosts:
        host.wait_for(10)
    settled = second.seen.by_meaning
    second.wait_for(10)
    assert second.seen.by_meaning > settled

    # The first host has not changed yet when the old space goes: by words, then by its new model.
    when_free(lambda: fleet.memvec.drop_embedding_space(fleet.old))
    first.wait_for(10)
    settled = first.seen.by_words
    first.wait_for(5)
    assert first.seen.by_words > settled
    first.use(new, after.url)
    first.wait_for(10)
    for host in fleet.hosts:
        host.stop()
        assert host.provider._link is not None
        wait_for(lambda link=host.provider._link: link.flush(60), 60)
    fleet.fill(new, after)

    written = [row for host in fleet.hosts for row in host.seen.written]
    assert fleet.counts() == [
        60 + sum(kind == "entry" for kind, _text in written),
        40 + sum(kind == "turn" for kind, _text in written),
    ]
    coverage = fleet.memvec.embedding_coverage()
    assert [(row.space_id, row.pending) for row in coverage] == [(space, 0), (space, 0)]
    for host in fleet.hosts:
        seen = host.seen
        assert (seen.failed, seen.wrong_space) == (0, 0), seen.problems
        for kind, text in seen.written[-4:]:
            host.ask(kind, text)
        assert (seen.failed, seen.wrong_space) == (0, 0), seen.problems


def test_a_probe_that_fails_at_start_changes_nothing(
    database: Database, services: tuple[Service, Service], tmp_path: Path
) -> None:
    before, after = services
    fleet = Fleet(database, tmp_path, OLD, before)
    vectors = fleet.query("SELECT sum(embedded)::int FROM memvec.embedding_coverage()")[0][0]
    assert vectors == 100
    after.down = True
    host = fleet.hosts[0]
    for width in (64, 96):
        host.use(Model("model-b" if width == 64 else "model-c", width, reversed_vector), after.url)
        for _ in range(3):
            host.ask("entry", host._known["entry"][0])
    assert (host.seen.failed, host.seen.by_words) == (0, 6)
    assert fleet.query("SELECT model FROM memvec.embedding_spaces") == [("model-a",)]
    assert fleet.query("SELECT sum(embedded)::int FROM memvec.embedding_coverage()")[0][0] == vectors
    # Back to the model before: nothing has to be done again.
    host.use(OLD, before.url)
    host.ask("entry", host._known["entry"][0])
    assert host.seen.by_meaning == 1


def test_a_model_without_a_space_is_told_what_is_there_and_what_to_run(
    run: Commands,  # noqa: F811
    database: Database,
    services: tuple[Service, Service],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fleet = Fleet(database, tmp_path, OLD, services[0])
    warning = Memvec(database.runtime_dsn).hello("one", "model-c", 96).warnings[0]
    assert "96 dimensions" in warning
    assert "model-a with 64 dimensions" in warning
    assert "hermes-pgsql model add" in warning
    prefixed = Memvec(database.runtime_dsn).hello("one", "model-a", 64, "Q> ").warnings[0]
    assert "other task prefixes" in prefixed

    for name, value in (
        ("DSN", database.runtime_dsn),
        ("EMBED_URL", services[1].url),
        ("EMBED_MODEL", "model-c"),
        ("EMBED_DIM", "96"),
    ):
        monkeypatch.setenv(f"HERMES_PGSQL_{name}", value)
    shown = run("stats")
    assert shown.code == 0
    assert "100 rows have vectors that this host cannot use" in shown.err
    assert "only for model-a (64 dimensions)" in shown.err
    assert "hermes-pgsql model add model-c --dim 96" in shown.err
    assert run("model", "add", "model-c", "--dim", "96", "--admin-dsn", database.admin_dsn).code == 0
    assert run("backfill", "--admin-dsn", database.admin_dsn).code == 0
    assert "cannot use" not in run("stats").err
    assert fleet.query("SELECT count(*)::int FROM memvec.embedding_spaces")[0][0] == 2
