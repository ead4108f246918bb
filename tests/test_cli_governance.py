"""history, restore and scan-pii: what went can come back, and what should not be there is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Database
from test_cli import Commands, run, theme  # noqa: F401 (fixtures)

from hermes_pgsql.client import Memvec


@pytest.fixture
def memvec(run: Commands, database: Database) -> Memvec:  # noqa: F811
    return Memvec(database.runtime_dsn)


def test_what_was_removed_is_listed_and_comes_back_once(
    run: Commands,  # noqa: F811
    database: Database,
    memvec: Memvec,
    theme: str,  # noqa: F811
) -> None:
    administrator = ("--admin-dsn", database.admin_dsn)
    memvec.add_memory(theme, "memory", "Port is 80")
    memvec.remove_memory(theme, "memory", "Port is 80")

    listed = run("history", "--theme", theme, *administrator)
    assert listed.code == 0
    assert "Port is 80" in listed.out
    assert "hermes" in listed.out
    (row,) = run("history", "--theme", theme, "--since", "1h", "--json", *administrator).json
    assert (row["action"], row["acted_by"], row["restored_at"]) == ("remove", "hermes", None)
    assert run("history", "--theme", theme, "--action", "replace", "--json", *administrator).json == []

    assert run("restore", str(row["id"]), *administrator).code == 0
    again = run("restore", str(row["id"]), "--json", *administrator)
    assert again.code == 3
    assert [one["outcome"] for one in again.json] == ["present"]
    assert [entry.content for entry in memvec.recall_memory(theme, "port")] == ["Port is 80"]

    unknown = run("restore", "999999999", *administrator)
    assert unknown.code == 1
    assert "history has no row" in unknown.err


def test_an_agents_login_may_not_look(run: Commands, database: Database) -> None:  # noqa: F811
    """It has the runtime role already: what is missing is an administrator."""
    for command in (
        ["history"],
        ["restore", "1"],
        ["scan-pii"],
        ["reindex"],
        ["index"],
        ["export", "--all", "/dev/null"],
        ["cleanup", "ops"],
        ["import", "jsonl", "/dev/null"],
        ["model", "add", "m", "--dim", "3"],
        ["bind-role", "somebody", "ops"],
    ):
        refused = run(*command, "--admin-dsn", database.runtime_dsn, "--json")
        assert refused.code == 1, command
        told = json.loads(refused.out)["error"]
        assert told["sqlstate"] == "42501"
        assert "member of memvec_admin" in told["hint"]
        assert "runtime" not in told["hint"]


def test_a_login_without_the_runtime_role_is_told_so(run: Commands, database: Database) -> None:  # noqa: F811
    _, reader = database.make_login("memvec_reader")
    refused = run("add", "--as", "ops", "text", "--dsn", reader)
    assert refused.code == 1
    assert "--runtime-role" in refused.err


def test_personal_data_is_found_on_every_page_and_shown_masked(
    run: Commands,  # noqa: F811
    database: Database,
    memvec: Memvec,
    theme: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from hermes_pgsql.cli import scan_pii

    monkeypatch.setattr(scan_pii, "_PAGE", 2)
    for number in range(5):
        memvec.append_turn(theme, "s", "user", f"ring +1 555 010 77{number:02} about it")
    memvec.add_memory(theme, "memory", "project Falcon")
    administrator = ("--admin-dsn", database.admin_dsn)

    found = run("scan-pii", "--json", "--pattern", "falcon", *administrator)
    mine = [row for row in found.json if row["agent_identity"] == theme]
    assert [row["pii"] for row in mine].count("phone") == 5
    assert [row["pii"] for row in mine].count("pattern") == 1
    assert "010 77" not in found.out
    shown = run("scan-pii", "--kind", "phone", *administrator)
    assert "with phone" in shown.out
    assert "010 77" not in shown.out
    assert run("scan-pii", "--kind", "pattern", *administrator).code == 2
    assert run("scan-pii", "--pattern", "(", *administrator).code == 1


def test_age_counts_where_it_is_asked_to(
    run: Commands,  # noqa: F811
    database: Database,
    memvec: Memvec,
    theme: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    memvec.add_memory(theme, "memory", "the gate code of the gate is on the gate")
    memvec.add_memory(theme, "memory", "some gate or other")
    with database.admin() as admin:
        admin.execute(
            "UPDATE memvec.memory_entries SET updated_at = now() - interval '300 days'"
            " WHERE agent_identity = %s AND content LIKE 'the gate%%'",
            [theme],
        )

    def first(*options: str) -> str:
        found = run("search", "--as", theme, "gate code", "--json", "--dsn", database.runtime_dsn, *options)
        assert found.code == 0
        return found.json["rows"][0]["content"]

    assert first().startswith("the gate")
    assert first("--half-life", "10").startswith("some gate")
    (tmp_path / "config.yaml").write_text("memory:\n  pgvector:\n    half_life_days: 10\n")
    assert first().startswith("some gate")
    assert first("--half-life", "0").startswith("the gate")
