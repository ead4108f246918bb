"""The commands that delete and move, against a real database and a real outbox, and proof of an erasure: a
dump of the whole database and the outbox's files hold nothing of the person any more."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest import Database

from hermes_pgsql import pool
from hermes_pgsql.cli import main
from hermes_pgsql.client import Memvec
from hermes_pgsql.outbox import Outbox


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    def rows(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        """Before, done and left of each table that is concerned."""
        tables: list[dict[str, Any]] = json.loads(self.out)["tables"]
        return {
            (one["table_name"], one["action"]): (one["before"], one["rows"], one["remaining"])
            for one in tables
            if one["before"] or one["rows"] or one["remaining"]
        }


class Commands:
    """Runs the command line in this process, as an administrator with a home."""

    def __init__(self, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch, home: Path) -> None:
        self.capsys = capsys
        self.patch = patch
        self.home = home

    def __call__(self, *arguments: str, stdin: str = "") -> Run:
        self.patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        written = self.capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return Run(stopped.value.code, written.out, written.err)


@pytest.fixture(scope="module")
def admin_dsn(database: Database) -> str:
    return database.make_login("memvec_admin")[1]


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, admin_dsn: str, tmp_path: Path
) -> Iterator[Commands]:
    for name in [name for name in os.environ if name.startswith(("HERMES_", "PG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    monkeypatch.setenv("HERMES_PGSQL_ADMIN_DSN", admin_dsn)
    monkeypatch.setenv("COLUMNS", "200")
    yield Commands(capsys, monkeypatch, tmp_path)
    pool.close_all()


@pytest.fixture
def memvec(database: Database) -> Memvec:
    return Memvec(database.runtime_dsn)


@pytest.fixture
def theme() -> str:
    return f"t-{uuid4().hex[:10]}"


def test_reindex_after_a_change_of_language(
    run: Commands, memvec: Memvec, database: Database, theme: str
) -> None:
    for number in range(5):
        memvec.add_memory(theme, "memory", f"running shoes {number}")
        memvec.append_turn(theme, "s", "user", f"running late {number}")
    with database.admin() as admin:
        admin.execute("SELECT memvec.set_setting('search_language', 'simple')")
    assert len(memvec.recall_memory(theme, "running")) == 5, "rows of the language before are found"
    done = run("reindex", "--batch", "3", "--json")
    told = json.loads(done.out)
    assert (done.code, told["remaining"]) == (0, 0)
    assert told["renewed"] >= 10
    assert len(memvec.recall_memory(theme, "running")) == 5
    assert memvec.recall_memory(theme, "run") == [], "and now in the words of the new one"
    with database.admin() as admin:
        admin.execute("SELECT memvec.set_setting('search_language', 'english')")
    shown = run("reindex")
    assert (shown.code, "rows renewed" in shown.out) == (0, True)
    assert run("reindex").out == "Nothing to do.\n"
    assert len(memvec.recall_conversation(theme, "runs")) == 5


def test_prune_in_batches(run: Commands, memvec: Memvec, theme: str) -> None:
    for number in range(7):
        memvec.append_turn(theme, "s", "user", f"old {number}", ts=datetime(2001, 1, 1, tzinfo=UTC))
    memvec.append_turn(theme, "s", "user", "young")
    memvec.add_memory(theme, "memory", "a note")
    assert run("prune", "--json").rows() == {}, "nobody has said after how many days"

    (run.home / "config.yaml").write_text("memory:\n  pgvector:\n    ttl_days: 5000\n")
    shown = run("prune")
    assert shown.code == 0
    assert "--execute" in shown.out
    assert run("prune", "--json").rows() == {("conversations", "deleted"): (7, 7, 0)}
    kept = run("prune", "--ttl", f"{theme}=0")
    assert "for ever" in kept.out
    assert run("prune", "--json").rows() == {}
    assert run("prune", "--ttl", f"{theme}=1000").code == 0
    done = run("prune", "--days", "20000", "--execute", "--batch", "3", "--json")
    assert (done.code, done.rows()) == (0, {("conversations", "deleted"): (7, 7, 0)})
    found = [turn.content for turn in memvec.recall_conversation(theme, "old young")]
    assert found == ["young"]
    assert memvec.recall_memory(theme, "note")

    told = run("prune", "--ttl", f"{theme}=none", "--json")
    assert json.loads(told.out) == {"ttl_days": {theme: None}}
    unknown = run("prune", "--ttl", f"{theme}x=90")
    assert unknown.code == 1
    assert f'no theme "{theme}x"' in unknown.err
    assert run("prune", "--ttl", "nothing").code == 2
    assert run("prune", "--days", "0").code == 2


def test_cleanup_shows_first_and_then_does(run: Commands, memvec: Memvec, theme: str) -> None:
    for number in range(5):
        memvec.add_memory(theme, "memory", f"note {number}")
    expected = {("memory_entries", "deleted"): (5, 5, 0)}
    assert run("cleanup", theme, "--json").rows() == expected
    assert len(memvec.recall_memory(theme, "note")) == 5
    assert run("cleanup", theme, "--execute", "--batch", "2", "--json").rows() == expected
    assert memvec.recall_memory(theme, "note") == []
    assert "Nothing to do." in run("cleanup", theme, "--execute").out
    refused = run("cleanup", "+49 170 1234567", "--execute")
    assert refused.code == 1
    assert "erase_person" in refused.err


def test_a_command_that_stops_half_way_says_so(
    run: Commands, memvec: Memvec, database: Database, theme: str, admin_dsn: str
) -> None:
    memvec.add_memory(f"{theme}-a", "memory", "note")
    memvec.add_memory(f"{theme}-b", "memory", "note")
    with database.admin() as admin:
        # The second batch fails: somebody keeps the entry of the second theme locked.
        admin.execute("BEGIN")
        admin.execute(
            "SELECT FROM memvec.memory_entries WHERE agent_identity = %s FOR UPDATE", [f"{theme}-b"]
        )
        run.patch.setenv("HERMES_PGSQL_ADMIN_DSN", f"{admin_dsn} options='-c lock_timeout=200ms'")
        stopped = run("cleanup", f"{theme}-a", f"{theme}-b", "--execute", "--batch", "1")
        admin.execute("ROLLBACK")
    run.patch.setenv("HERMES_PGSQL_ADMIN_DSN", admin_dsn)
    assert stopped.code == 3
    assert "again" in stopped.err + stopped.out
    assert run("cleanup", f"{theme}-a", f"{theme}-b", "--execute", "--json").rows() == {
        ("memory_entries", "deleted"): (1, 1, 0)
    }


def test_remap_asks_for_force_and_leaves_an_alias(run: Commands, memvec: Memvec, theme: str) -> None:
    new = f"{theme}-new"
    for number in range(11):
        memvec.add_memory(theme, "memory", f"note {number}")
        memvec.add_memory(new, "memory", f"note {number}")
    memvec.add_memory(theme, "memory", "its own")
    shown = run("remap", theme, new, "--json").rows()
    assert shown["memory_entries", "merged"] == (11, 11, 0)
    refused = run("remap", theme, new, "--execute")
    assert refused.code == 1
    assert "force" in refused.err
    done = run("remap", theme, new, "--execute", "--force", "--json")
    assert (done.code, done.rows()) == (0, shown)
    assert len(memvec.recall_memory(theme, "note", limit=50)) == 11
    assert run("remap", theme, theme).code == 1
    assert run("remap", theme).code == 1


def test_erase_wants_one_person_or_one_theme(run: Commands, theme: str) -> None:
    assert run("erase").code == 2
    assert run("erase", "--person", "x", "--theme", theme).code == 2
    refused = run("erase", "--person", theme)
    assert refused.code == 1
    assert "not a person" in refused.err
    assert run("erase", "--theme", theme, "--hermes-home", "/nonexistent").code == 1


def test_an_erased_person_is_in_no_dump_and_no_outbox(
    run: Commands, memvec: Memvec, database: Database, theme: str
) -> None:
    number = f"4917{uuid4().int % 10**9:09d}"
    key, other = f"agent:main:whatsapp:dm:{number}@s.whatsapp.net", f"agent:main:whatsapp:dm:99{number}"
    said, kept = f"sweetpea{uuid4().hex[:8]}", f"marigold{uuid4().hex[:8]}"
    for who, text in ((key, said), (other, kept), (theme, kept)):
        memvec.add_memory(who, "memory", f"{text} note")
        memvec.add_memory(who, "user", f"{text} passing")
        memvec.replace_memory(who, "user", f"{text} passing", f"{text} present", metadata={"said": text})
        memvec.append_turn(who, f"session-{text}", "user", f"{text} turn", metadata={"said": text})
        memvec.record_delegation(who, f"session-{text}", f"child-{text}", attrs={"why": text})
        memvec.apply_ops(
            [
                {
                    "op_id": str(uuid4()),
                    "op": "add_memory",
                    "identity": who,
                    "target": "memory",
                    "content": f"{text} sent",
                }
            ]
        )
    person = memvec.canonical_identity(key).person_key
    with database.admin() as admin:
        admin.execute("ANALYZE")
        admin.execute(
            "INSERT INTO memvec.memory_entries"
            " (agent_identity, target, content, content_hash, search, search_version)"
            " SELECT %s, 'memory', t, sha256(t::bytea), memvec.search_vector(t), 1"
            " FROM (SELECT %s::text) AS v (t)",
            [key, f"{said} imported"],
        )
        admin.execute(
            "INSERT INTO memvec.identity_aliases VALUES (%s, 'whatsapp-dm')", [f"whatsapp:{number}"]
        )

    queue = Outbox.open(run.home)
    governance = {"allowed_themes": ["a"], "aliases": {"boss": theme}}
    for who, text in ((key, said), (f"whatsapp:{number}", said), (other, kept), (theme, kept)):
        queue.put(
            "append_turn", who, {"session_id": "s", "role": "user", "content": f"{text} waits"}, governance
        )
    queue.put(
        "append_turn", "boss", {"session_id": "s", "role": "user", "content": f"{kept} waits"}, governance
    )

    shown = run("erase", "--person", "-", "--json", stdin=f"{key}\n")
    assert shown.code == 0, shown.err
    plan = shown.rows()
    assert plan["outbox of this home", "deleted"] == (2, 2, 0)
    assert plan["memory_entries", "deleted"] == (4, 4, 0)
    assert queue.counts().waiting == 5
    assert run("erase", "--person", "-", stdin=f"{key}\n").out.count("memory_history") == 1

    done = run("erase", "--person", "-", "--execute", "--batch", "3", "--json", stdin=f"{key}\n")
    assert done.code == 0, done.err
    assert done.rows() == plan
    assert queue.counts().waiting == 3
    assert run("erase", "--person", "-", "--json", stdin=f"{key}\n").rows() == {}

    traces = [
        said,
        number,
        *hashes(key),
        *hashes(f"whatsapp:{number}"),
        *hashes(number),
        *hashes(f"{said} note"),
    ]
    dump = dumped(database)
    assert [trace for trace in traces if trace in dump] == []
    assert kept in dump
    lines = [line for line in dump.splitlines() if str(person) in line]
    assert lines
    assert all("erase_person" in line for line in lines), "the person is in the log only"
    with database.admin() as admin:
        sampled = admin.execute("SELECT s::text FROM pg_catalog.pg_statistic AS s").fetchall()
    assert not [row for row in sampled if said in row[0] or str(person) in row[0]]
    files = b"".join(file.read_bytes() for file in queue.path.parent.iterdir())
    assert said.encode() not in files
    assert number.encode() + b"@" not in files
    assert kept.encode() in files


def test_a_person_is_erased_whatever_alias_their_key_has(
    run: Commands, memvec: Memvec, database: Database, theme: str
) -> None:
    key = f"agent:main:telegram:dm:{uuid4().int % 10**12:012d}"
    memvec.add_memory(key, "memory", "said in a chat")
    with database.admin() as admin:
        admin.execute("INSERT INTO memvec.identity_aliases VALUES (%s, %s)", [key, theme])
    memvec.add_memory(key, "memory", "said as the theme")
    queue = Outbox.open(run.home)
    for who in (key, theme):
        queue.put("append_turn", who, {"session_id": "s", "role": "user", "content": "waits"}, None)
    done = run("erase", "--person", "-", "--execute", "--json", stdin=f"{key}\n")
    assert done.rows()["outbox of this home", "deleted"] == (1, 1, 0)
    assert done.rows()["memory_entries", "deleted"] == (1, 1, 0)
    assert done.rows()["identity_aliases", "deleted"] == (1, 1, 0)
    assert f'leads that key to theme "{theme}"' in done.err
    with database.admin() as admin:
        query = "SELECT content FROM memvec.memory_entries WHERE agent_identity = %s"
        assert admin.execute(query, [theme]).fetchall() == [("said as the theme",)]
    assert key not in dumped(database)


def test_an_erased_theme_leaves_its_outbox_too(run: Commands, memvec: Memvec, theme: str) -> None:
    memvec.add_memory(theme, "memory", "a note")
    queue = Outbox.open(run.home)
    governance = {"aliases": {"boss": theme}}
    for who in (theme, "boss", f"{theme}-other"):
        queue.put("append_turn", who, {"session_id": "s", "role": "user", "content": "waits"}, governance)
    done = run("erase", "--theme", theme.upper(), "--execute", "--json").rows()
    assert done["outbox of this home", "deleted"] == (2, 2, 0)
    assert done["memory_entries", "deleted"] == (1, 1, 0)
    assert queue.counts().waiting == 1


def test_a_theme_that_nobody_has_is_refused(run: Commands, memvec: Memvec, theme: str) -> None:
    memvec.add_memory(theme, "memory", "a note")
    unknown, path = f"{theme}-misspelt", run.home / "rows.jsonl"
    for command in (
        ["remap", unknown, theme, "--execute"],
        ["cleanup", theme, unknown, "--execute"],
        ["erase", "--theme", unknown],
        ["erase", "--theme", unknown, "--execute"],
        ["export", "--identity", unknown, str(path)],
    ):
        refused = run(*command)
        assert (refused.code, refused.out) == (1, ""), command
        assert f'here is no theme "{unknown}"' in refused.err
        assert "hermes-pgsql stats" in refused.err
    assert not path.exists()
    assert memvec.canonical_identity(unknown).agent_identity == unknown, "no alias was made"
    assert len(memvec.recall_memory(theme, "note")) == 1
    assert run("export", "--identity", theme, str(path)).code == 0


def test_what_is_left_of_a_theme_can_be_erased(run: Commands, memvec: Memvec, theme: str) -> None:
    memvec.register_agent(theme)
    memvec.add_memory(theme, "memory", "a note")
    assert run("cleanup", theme, "--execute").code == 0
    shown = run("erase", "--theme", theme)
    assert shown.code == 0
    assert "backups" in shown.err, "a dry run says what is not touched as well"
    assert run("erase", "--theme", theme, "--execute").code == 0
    Outbox.open(run.home).put(
        "append_turn", theme, {"session_id": "s", "role": "user", "content": "waits"}, None
    )
    assert run("erase", "--theme", theme, "--execute").code == 0
    assert run("erase", "--theme", theme, "--execute").code == 1


def hashes(text: str) -> list[str]:
    """What a careless program might have stored instead of a text."""
    data = text.encode()
    return [hashlib.new(name, data).hexdigest() for name in ("md5", "sha1", "sha256", "sha512")]


def dumped(database: Database) -> str:
    """The whole database as SQL, the planner's statistics included where pg_dump can."""
    command = [str(database.server.bin_dir / "pg_dump"), "--no-owner", "-d", database.admin_dsn]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
