"""Files and databases as they come in real life: cut off, mixed up, foreign, huge, imported twice at once."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest import Database
from test_import import CONTACT, TABLES, Commands, fill, fresh, rows, run, theme  # noqa: F401 (fixtures)

from hermes_pgsql import jsonl
from hermes_pgsql.client import Memvec

# Fixtures hide what they are imported as.
# ruff: noqa: F811


def line(theme: str, content: str, **more: object) -> str:
    row = {"kind": "entry", "identity": theme, "target": "memory", "content": content, **more}
    return json.dumps(row, ensure_ascii=False)


def count(database: Database, theme: str) -> int:
    return rows(
        database, f"SELECT count(*)::int FROM memvec.memory_entries WHERE agent_identity = '{theme}'"
    )[0][0]


def reasons(told: Any) -> list[tuple[str, str]]:
    return [(row["place"], row["reason"]) for row in told["skipped"]]


# Files ------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoded", "says", "hint"),
    [
        ("utf-16", "UTF-16", "iconv -f UTF-16 "),
        ("utf-16-le", "UTF-16", "iconv -f UTF-16LE"),
        ("utf-16-be", "UTF-16", "iconv -f UTF-16BE"),
        ("gzip", "compressed", "gunzip -c"),
        ("dump", "pg_dump", "pg_restore"),
    ],
)
def test_a_file_of_another_kind_is_called_by_its_name(
    run: Commands, theme: str, tmp_path: Path, encoded: str, says: str, hint: str
) -> None:
    text = line(theme, "an anvil") + "\n"
    whole = {"gzip": gzip.compress(text.encode()), "dump": b"PGDMP\x01\x0f\x00"}
    file = tmp_path / "rows"
    file.write_bytes(whole[encoded] if encoded in whole else text.encode(encoded))
    refused = run("import", "jsonl", str(file))
    assert refused.code == 1
    assert says in refused.err
    assert hint in refused.err


def test_what_is_no_file_is_said_in_a_sentence(run: Commands, tmp_path: Path) -> None:
    for path, says in ((tmp_path / "none", "No such file"), (tmp_path, "directory")):
        refused = run("import", "jsonl", str(path))
        assert refused.code != 0
        assert says.lower() in refused.err.lower()
        assert str(path) in refused.err
    lost = run("export", "--all", str(tmp_path / "nowhere" / "x.jsonl"))
    assert lost.code != 0
    assert "nowhere" in lost.err


def test_windows_lines_a_byte_order_mark_and_texts_of_ten_megabytes(
    run: Commands, database: Database, theme: str, tmp_path: Path
) -> None:
    long = "anvil " * 1_700_000
    file = tmp_path / "rows.jsonl"
    text = "\r\n".join([line(theme, "first é"), line(theme, long), line(theme, "last"), ""])
    file.write_bytes(text.encode("utf-8-sig"))
    done = run("import", "jsonl", str(file), "--json")
    assert done.code == 0
    assert done.json["kinds"]["entry"]["added"] == 3
    stored = rows(
        database, f"SELECT length(content) FROM memvec.memory_entries WHERE agent_identity = '{theme}'"
    )
    assert sorted(stored) == [(4,), (7,), (len(long.strip()),)]


def test_a_line_without_end_does_not_fill_the_memory(
    run: Commands, database: Database, theme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "LONGEST_LINE", 1000)
    monkeypatch.setattr(jsonl, "_CHUNK", 64)
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join([line(theme, "a"), line(theme, "x" * 5000), line(theme, "b"), "y" * 3000]))
    done = run("import", "jsonl", str(file), "--json")
    assert done.code == 3
    assert [place for place, _reason in reasons(done.json)] == ["line 2", "line 4"]
    assert "longer than" in done.json["skipped"][0]["reason"]
    assert count(database, theme) == 2


def test_an_export_that_was_cut_off_is_noticed(
    run: Commands, fresh: Database, theme: str, tmp_path: Path
) -> None:
    memvec = Memvec(fresh.runtime_dsn)
    for number in range(5):
        memvec.add_memory(theme, "memory", f"note {number}")
    whole = tmp_path / "whole.jsonl"
    assert run("export", "--identity", theme, str(whole), admin_dsn=fresh.admin_dsn).code == 0
    lines = whole.read_text().splitlines()
    assert json.loads(lines[-1]) == {"kind": "end", "rows": len(lines) - 2}

    def imported(*parts: str) -> list[tuple[str, str]]:
        file = tmp_path / "part.jsonl"
        file.write_text("\n".join(parts) + "\n")
        done = run("import", "jsonl", str(file), "--json", admin_dsn=fresh.admin_dsn)
        assert done.code == (3 if done.json["skipped"] else 0)
        return reasons(done.json)

    assert imported(*lines) == []
    assert imported(*lines, *lines) == [], "several may stand in one file"
    assert imported(*lines[:-1])[-1] == (
        f"after line {len(lines) - 1}",
        "the export has no last line: it was cut off",
    )
    in_a_line = imported(*lines[:3], lines[3][:20])
    assert [reason for _place, reason in in_a_line] == [
        "it is not JSON",
        "the export has no last line: it was cut off",
    ]
    assert imported(*lines[:3], *lines) == [
        ("line 4", "the export before it has no last line: it was cut off")
    ]
    without_two = imported(*lines[:2], *lines[4:])
    assert without_two == [
        (
            f"line {len(lines) - 2}",
            f"it ends an export of {len(lines) - 2} rows, of which {len(lines) - 4} were there",
        )
    ]
    assert count(fresh, theme) == 5


def test_times_that_no_calendar_has_and_vectors_of_several_widths(
    run: Commands, database: Database, theme: str, tmp_path: Path
) -> None:
    model = f"model of {theme}"
    header = {
        "kind": "header",
        "format": "hermes-pgsql",
        "version": 1,
        "spaces": [{"space": 7, "model": model, "dim": 3}],
    }
    lines = [
        json.dumps(header),
        line(theme, "infinite", created_at="infinity", updated_at="-infinity"),
        line(theme, "before Christ", created_at="4000-01-01 BC"),
        line(theme, "far", created_at="294000-01-01", updated_at="20000-01-01"),
        line(theme, "seconds", created_at=1700000000),
        line(theme, "words", created_at="last tuesday"),
        line(theme, "beyond", created_at="999999-01-01"),
        line(theme, "three", vectors={"7": [1, 2, 3]}),
        line(theme, "two", vectors={"7": [1, 2]}),
        line(theme, "zero", vectors={"7": [0, 0, 0]}),
        line(theme, "no numbers", vectors={"7": ["a", None, {}]}),
        line(theme, "nested", vectors={"7": [[1], [2], [3]]}),
        line(theme, "of no space", vectors={"9": [1, 2, 3]}),
        line(theme, "no object", vectors=[1, 2, 3]),
        line(theme, "huge numbers", vectors={"7": [10**400, 1, 1]}),
        json.dumps({"kind": "end", "rows": 14}),
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(lines))
    done = run("import", "jsonl", str(file), "--json")
    assert reasons(done.json) == [(f"line {number}", "created_at is not a time") for number in (5, 6, 7)]
    assert done.json["kinds"]["entry"] == {
        "read": 14,
        "added": 11,
        "duplicates": 0,
        "skipped": 3,
        "vectors": 1,
    }
    assert rows(
        database,
        "SELECT count(*)::int FROM memvec.memory_entries WHERE created_at NOT BETWEEN '2000-01-01' AND now()"
        " OR updated_at NOT BETWEEN '2000-01-01' AND now()",
    ) == [(0,)], "now stands for them"
    # What was stored can be exported, read and imported again.
    out = tmp_path / "out.jsonl"
    assert run("export", "--identity", theme, "--vectors", str(out)).code == 0
    again = run("import", "jsonl", str(out), "--json")
    assert (again.code, again.json["kinds"]["entry"]["duplicates"]) == (0, 11)


def test_a_report_stays_short_whatever_stands_in_the_file(run: Commands, theme: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    kinds: list[object] = [["entry"], {"a": 1}, 7, None, *(f"kind {number}" for number in range(30))]
    file.write_text("\n".join(line(theme, "x", kind=kind) for kind in kinds))
    done = run("import", "jsonl", str(file), "--json")
    assert done.code == 3
    assert list(done.json["kinds"]) == ["row"]
    assert done.json["kinds"]["row"]["skipped"] == len(kinds)
    shown = run("import", "jsonl", str(file))
    assert len(shown.out.splitlines()) < 10


# Whose rows they are ------------------------------------------------------------


def test_chats_and_sinks_in_a_dump_of_others_are_governed(
    run: Commands, fresh: Database, tmp_path: Path
) -> None:
    word, person = "anvil", str(uuid4())
    keys = [
        CONTACT,
        "sms:+15550100123",
        "agent:main:telegram:group:-100123:555",
        "agent:main:newchat:something:42",
        "bob@example.com",
        "whatsapp-dm",
        "External-Group",
        "skill-bench",
    ]
    lines = [line(key, f"{word} of {number}") for number, key in enumerate(keys)]
    lines += [
        # A key says itself whose row it is: a person beside it changes nothing.
        line(CONTACT, f"{word} claimed", person=person),
        line("ops-hostile", f"{word} of a theme", person=person, raw_identity=CONTACT),
        json.dumps({"kind": "agent", "identity": "sms:+15550100999", "attrs": {"phone": "+15550100999"}}),
        json.dumps(
            {
                "kind": "edge",
                "identity": CONTACT,
                "session_id": "s-hostile",
                "child_identity": "agent:main:whatsapp:dm:15550100777",
                "child_session_id": f"child-{word}",
            }
        ),
        line("ops-hostile", word, kind="turn", session_id="s-hostile", role="user", raw_identity=CONTACT),
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(lines))
    assert run("import", "jsonl", str(file), admin_dsn=fresh.admin_dsn).code == 0
    memvec = Memvec(fresh.runtime_dsn)
    assert {row.content for row in memvec.recall_memory(CONTACT, word)} == {f"{word} of 0", f"{word} claimed"}
    assert {row.content for row in memvec.recall_memory("ops", word, scope="all")} == {f"{word} of a theme"}
    assert memvec.recall_memory("whatsapp-dm", word) == []
    everywhere = """
        SELECT string_agg(t::text, ' ') FROM (
            SELECT agent_identity, session_id, metadata FROM memvec.conversations
            UNION ALL SELECT agent_identity, NULL, metadata FROM memvec.memory_entries
            UNION ALL SELECT agent_identity, NULL, attrs FROM memvec.memory_agents
            UNION ALL SELECT coalesce(parent_identity, '') || coalesce(child_identity, ''),
                             coalesce(parent_session_id, '') || child_session_id, attrs
                        FROM memvec.memory_agent_edges
            UNION ALL SELECT operation, NULL, parameters FROM memvec.maintenance_log) AS t"""
    (found,) = rows(fresh, everywhere)[0]
    for secret in ("15550100123", "15550100777", "15550100999", "100123", "bob@example"):
        assert secret not in found, secret


# Twice, at once, half-way ------------------------------------------------------------


def test_an_import_that_was_killed_and_run_again_stores_everything_once(
    run: Commands, database: Database, theme: str, tmp_path: Path
) -> None:
    total = 3000
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(line(theme, f"note {number}") + "\n" for number in range(total)))
    command = [sys.executable, "-m", "hermes_pgsql", "import", "jsonl", "-"]
    environment = {**os.environ, "HERMES_PGSQL_ADMIN_DSN": database.admin_dsn}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stdin is not None
        with file.open("rb") as lines:
            process.stdin.writelines(next(lines) for _ in range(1700))
        process.stdin.flush()
        ends = time.monotonic() + 60
        while count(database, theme) < 500:
            assert time.monotonic() < ends
            time.sleep(0.05)
        process.kill()
    before = count(database, theme)
    assert 500 <= before <= 1700
    log = "SELECT rows::int FROM memvec.maintenance_log WHERE operation = 'import' ORDER BY id DESC LIMIT 1"
    assert rows(database, log) == [(before,)], "the log has what was stored, also of an import that died"
    done = run("import", "jsonl", str(file), "--json")
    counts = done.json["kinds"]["entry"]
    assert (counts["duplicates"], counts["added"]) == (before, total - before)
    assert count(database, theme) == total


def test_two_imports_of_the_same_file_at_once_store_it_once(
    database: Database, theme: str, tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(line(f"{theme}-{n % 3}", f"note {n % 400}") + "\n" for n in range(1200)))
    command = [sys.executable, "-m", "hermes_pgsql", "import", "jsonl", str(file), "--json"]
    environment = {**os.environ, "HERMES_PGSQL_ADMIN_DSN": database.admin_dsn}
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True)
        for _ in range(2)
    ]
    told = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    added = sum(json.loads(out)["kinds"]["entry"]["added"] for out, _err in told)
    assert added == sum(count(database, f"{theme}-{n}") for n in range(3)) == 1200


def test_a_database_exported_into_itself_stays_as_it_is(run: Commands, fresh: Database) -> None:
    fill(fresh)
    tables = ("memory_entries", "conversations", "memory_agent_edges", "memory_agents", "embedding_spaces")

    def everything() -> list[Any]:
        found = [rows(fresh, f"SELECT * FROM memvec.{table} ORDER BY 1") for table in tables]
        return [*found, rows(fresh, "SELECT * FROM memvec.entry_embeddings_1 ORDER BY id")]

    before = everything()
    environment = {**os.environ, "HERMES_PGSQL_ADMIN_DSN": fresh.admin_dsn}
    ours = [sys.executable, "-m", "hermes_pgsql"]
    with subprocess.Popen(
        [*ours, "export", "--all", "--vectors"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as export:
        done = subprocess.run(
            [*ours, "import", "jsonl", "-", "--json"],
            stdin=export.stdout,
            capture_output=True,
            env=environment,
            check=False,
            timeout=120,
        )
    assert (export.returncode, done.returncode) == (0, 0), done.stderr
    assert {kind: counts["added"] for kind, counts in json.loads(done.stdout)["kinds"].items()} == {
        "agent": 0,
        "edge": 0,
        "entry": 0,
        "turn": 0,
    }
    assert everything() == before


def test_an_export_is_of_one_moment_while_others_write(database: Database, theme: str) -> None:
    memvec, writer = Memvec(database.admin_dsn), Memvec(database.runtime_dsn)
    for number in range(6):
        writer.add_memory(theme, "memory", f"note {number}")
    lines = memvec.export_lines(theme, page=2)
    got = [json.loads(next(lines)) for _ in range(3)]
    writer.add_memory(theme, "memory", "came meanwhile")
    writer.replace_memory(theme, "memory", "note 5", "note 5, changed")
    writer.remove_memory(theme, "memory", "note 4")
    writer.append_turn(theme, "s", "user", "said meanwhile")
    got += map(json.loads, lines)
    assert [row["content"] for row in got if row["kind"] == "entry"] == [f"note {n}" for n in range(6)]
    assert [row for row in got if row["kind"] == "turn"] == []
    assert got[-1] == {"kind": "end", "rows": len(got) - 2}


# The older plugin's tables, not as its releases made them ------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        "ALTER TABLE memory_entries DROP COLUMN metadata, DROP COLUMN updated_at, DROP COLUMN created_at;"
        "ALTER TABLE conversations DROP COLUMN metadata, DROP COLUMN ts",
        "ALTER TABLE memory_entries DROP COLUMN id; ALTER TABLE conversations DROP COLUMN id",
        "ALTER TABLE memory_entries DROP COLUMN embedding; ALTER TABLE conversations DROP COLUMN embedding",
        "DROP TABLE conversations",
        "ALTER TABLE memory_entries ALTER metadata DROP DEFAULT, ALTER metadata TYPE text USING 'no {json';"
        "ALTER TABLE conversations ALTER embedding TYPE text",
        "ALTER TABLE memory_entries ALTER embedding TYPE vector, ALTER created_at DROP DEFAULT,"
        " ALTER created_at TYPE text USING 'yesterday or so'",
    ],
    ids=["no times", "no key", "no vectors", "no turns", "other types", "no width"],
)
def test_older_tables_that_were_changed_by_hand(
    run: Commands, fresh: Database, empty_database: Database, changes: str
) -> None:
    with empty_database.admin() as admin:
        admin.execute(TABLES)
        admin.execute(
            "INSERT INTO memory_entries (agent_identity, target, content, embedding) VALUES"
            " ('ops', 'memory', 'the anvil', '[1,0,0,0]'), ('ops', 'user', 'the tea', NULL);"
            "INSERT INTO conversations (session_id, agent_identity, role, content)"
            " VALUES ('s', 'ops', 'user', 'who has the anvil?')"
        )
        admin.execute(changes.encode())
    command = ("import", "pgvector", "--from", empty_database.admin_dsn, "--model", "m", "--json")
    done = run(*command, admin_dsn=fresh.admin_dsn)
    if "yesterday" in changes:
        assert done.code == 3
        assert {row["reason"] for row in done.json["skipped"]} == {"created_at is not a time"}
        return
    assert done.code == 0
    assert done.json["kinds"]["entry"]["added"] == 2
    again = run(*command, admin_dsn=fresh.admin_dsn).json
    assert again["kinds"]["entry"] == {"read": 2, "added": 0, "duplicates": 2, "skipped": 0, "vectors": 0}
    assert {row.content for row in Memvec(fresh.runtime_dsn).recall_memory("ops", "anvil")} == {"the anvil"}


@pytest.mark.parametrize("column", ["content", "target"])
def test_older_tables_without_the_column_that_matters(
    run: Commands, fresh: Database, empty_database: Database, column: str
) -> None:
    with empty_database.admin() as admin:
        admin.execute(TABLES)
        admin.execute("INSERT INTO memory_entries (target, content) VALUES ('memory', 'the anvil')")
        admin.execute(f"ALTER TABLE memory_entries DROP COLUMN {column}".encode())
    done = run("import", "pgvector", "--from", empty_database.admin_dsn, "--json", admin_dsn=fresh.admin_dsn)
    assert done.code == 3
    (skipped,) = done.json["skipped"]
    assert column in skipped["reason"]


def test_standard_input_that_ends_at_once(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    done = run("import", "jsonl", "-")
    assert (done.code, done.out) == (0, "There was nothing to import.\n")


def test_a_space_is_made_while_agents_write(
    run: Commands, database: Database, theme: str, tmp_path: Path
) -> None:
    # Its tables refer to those that agents write to: a slow write must not end an import half-way.
    space = {"space": 1, "model": f"model of {theme}", "dim": 2}
    header = {"kind": "header", "format": "hermes-pgsql", "version": 1, "spaces": [space]}
    file = tmp_path / "rows.jsonl"
    lines = [header, json.loads(line(theme, "near", vectors={"1": [1, 2]})), {"kind": "end", "rows": 1}]
    file.write_text("\n".join(map(json.dumps, lines)))
    waiting = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'memvec.memory_entries'::regclass"
    with database.admin() as writer, database.admin() as watcher:
        writer.execute("BEGIN")
        writer.execute("LOCK TABLE memvec.memory_entries IN ROW EXCLUSIVE MODE")

        def write_for_a_while() -> None:
            ends = time.monotonic() + 60
            while not watcher.execute(waiting).fetchall() and time.monotonic() < ends:
                time.sleep(0.02)
            time.sleep(0.8)  # longer than the space waits
            writer.execute("COMMIT")

        agent = threading.Thread(target=write_for_a_while)
        agent.start()
        done = run("import", "jsonl", str(file), "--json")
        agent.join()
    assert done.code == 0, done.err
    assert done.json["kinds"]["entry"]["vectors"] == 1
