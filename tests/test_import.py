"""What comes from elsewhere (the older plugin's tables, memory files, lines of JSON) and what goes out."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from conftest import Database, TestServer
from provider_support import HomeUnderTest, ModelServer, embed

from hermes_pgsql import pool
from hermes_pgsql.cli import main
from hermes_pgsql.client import Memvec
from hermes_pgsql.importing import Incoming, Report, import_all

SECRET = "s3cret"
CONTACT = "agent:main:whatsapp:dm:15550100123"

# The older plugin's tables, as its releases make them: in 0.3 without agents, delegations, parent sessions.
TABLES = """
    CREATE EXTENSION IF NOT EXISTS vector;
    CREATE TABLE memory_entries (
        id bigserial PRIMARY KEY, agent_identity text NOT NULL DEFAULT 'default', target text NOT NULL,
        content text NOT NULL, embedding vector(4), created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(), metadata jsonb NOT NULL DEFAULT '{}');
    CREATE TABLE conversations (
        id bigserial PRIMARY KEY, session_id text NOT NULL, agent_identity text NOT NULL DEFAULT 'default',
        role text NOT NULL, content text NOT NULL, ts timestamptz NOT NULL DEFAULT now(), embedding vector(4),
        metadata jsonb NOT NULL DEFAULT '{}')"""
SINCE_0_4 = """
    ALTER TABLE conversations ADD COLUMN parent_session_id text;
    CREATE TABLE memory_agents (
        id bigserial PRIMARY KEY, agent_identity text NOT NULL UNIQUE, kind text NOT NULL DEFAULT 'theme',
        first_seen timestamptz NOT NULL DEFAULT now(), last_seen timestamptz NOT NULL DEFAULT now(),
        attrs jsonb NOT NULL DEFAULT '{}');
    CREATE TABLE memory_agent_edges (
        id bigserial PRIMARY KEY, parent_identity text, child_identity text, parent_session_id text,
        child_session_id text, kind text NOT NULL DEFAULT 'delegated', ts timestamptz NOT NULL DEFAULT now(),
        attrs jsonb NOT NULL DEFAULT '{}')"""
ROWS = """
    INSERT INTO memory_entries
           (agent_identity, target, content, embedding, created_at, updated_at, metadata) VALUES
    ('Ops', 'memory', 'The anvil is in the shed.', '[1,0,0,0]', '2025-01-02 03:04:05+02', '2025-02-03 00:00Z',
     '{"session_id": "s1", "old_text": "the anvil was stolen", "raw_identity": "Ops"}'),
    ('ops', 'memory', 'The anvil is in the shed.', '[1,0,0,0]', '2025-01-03', '2025-01-03', '{}'),
    ('ops', 'user', 'Ines likes tea.', NULL, 'infinity', '2025-01-03', '{}'),
    ('ops', 'memory', E'\\u00a0', '[1,0,0,0]', '2025-01-03', '2025-01-03', '{}'),
    ('ops', 'memory', 'zero', '[0,0,0,0]', '2025-01-03', '2025-01-03', '{}'),
    ('ops', 'memory', 'large', '[1e30,0,0,0]', '2025-01-03', '2025-01-03', '{}'),
    ('ops', 'memory', 'password = hunter2hunter2', '[0,1,0,0]', '2025-01-03', '2025-01-03', '{}'),
    ('agent:main:whatsapp:dm:15550100123', 'memory', 'Chat: the anvil was sold.', '[1,0,0,0]', '2025-01-03',
     '2025-01-03', '{}'),
    ('whatsapp-dm', 'memory', 'Chat: the buyer was Bob.', '[0,0,1,0]', '2025-01-03', '2025-01-03',
     '{"raw_identity": "agent:main:whatsapp:dm:15550100123"}'),
    ('whatsapp-dm', 'memory', 'Chat of nobody.', '[0,0,1,0]', '2025-01-03', '2025-01-03', '{}');
    INSERT INTO conversations (session_id, agent_identity, role, content, ts, embedding) VALUES
    ('s1', 'ops', 'user', 'Where is the anvil?', '2025-01-02 03:04:05Z', '[1,0,0,0]'),
    ('s1', 'ops', 'user', 'Where is the anvil?', '2025-01-05 03:04:05Z', '[1,0,0,0]'),
    ('s2', 'ops', 'assistant', 'In the shed.', '2025-01-02 03:04:06Z', NULL)"""
ROWS_0_4 = """
    UPDATE conversations SET parent_session_id = 's0' WHERE session_id = 's2';
    INSERT INTO memory_agents (agent_identity, first_seen, last_seen, attrs) VALUES
    ('ops', '2024-05-06Z', '2025-06-07Z', '{"host": "a"}');
    INSERT INTO memory_agent_edges
           (parent_identity, child_identity, parent_session_id, child_session_id, ts) VALUES
    ('ops', 'Worker', 's1', 's9', '2025-01-02Z'), ('ops', NULL, 's1', NULL, '2025-01-02Z')"""


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Commands:
    def __init__(self, capfdbinary: pytest.CaptureFixture[bytes], database: Database) -> None:
        self.captured = capfdbinary
        self.database = database

    def __call__(self, *arguments: str, admin_dsn: str | None = None) -> Run:
        os.environ["HERMES_PGSQL_ADMIN_DSN"] = admin_dsn or self.database.admin_dsn
        self.captured.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        out, err = self.captured.readouterr()
        assert isinstance(stopped.value.code, int)
        assert b"Traceback" not in err
        assert SECRET.encode() not in out + err
        return Run(stopped.value.code, out.decode(), err.decode())


@pytest.fixture
def run(
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    database: Database,
) -> Iterator[Commands]:
    for name in [name for name in os.environ if name.startswith(("HERMES_", "PG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HERMES_PGSQL_EMBED_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("HERMES_PGSQL_ADMIN_DSN", "")
    monkeypatch.setenv("COLUMNS", "150")
    yield Commands(capfdbinary, database)
    pool.close_all()


@pytest.fixture
def fresh(server: TestServer, template: str) -> Iterator[Database]:
    """A database of the test's own."""
    name = f"memvec_{uuid4().hex[:8]}"
    server.create_database(name, template)
    yield Database(server, name)
    pool.close_all()
    server.drop_database(name)


@pytest.fixture
def older(empty_database: Database) -> Database:
    """A database of the older plugin, release 0.4 or newer."""
    with empty_database.admin() as admin:
        admin.execute(TABLES)
        admin.execute(SINCE_0_4)
        admin.execute(ROWS)
        admin.execute(ROWS_0_4)
    return empty_database


@pytest.fixture
def theme() -> str:
    return f"t-{uuid4().hex[:10]}"


def rows(database: Database, query: str) -> list[tuple[Any, ...]]:
    with database.admin() as admin:
        return admin.execute(query.encode()).fetchall()


def texts(found: list[Any]) -> set[str]:
    return {row.content for row in found}


# The older plugin ------------------------------------------------------------


def test_everything_of_the_older_plugin_comes_over_once(
    run: Commands, older: Database, fresh: Database
) -> None:
    command = ("import", "pgvector", "--from", older.admin_dsn, "--model", "m", "--json")
    first = run(*command, admin_dsn=fresh.admin_dsn)
    told = first.json
    assert first.code == 3  # the blank entry, and the delegation to nowhere
    assert told["kinds"] == {
        "agent": {"read": 1, "added": 1, "duplicates": 0, "skipped": 0, "vectors": 0},
        "entry": {"read": 10, "added": 8, "duplicates": 1, "skipped": 1, "vectors": 4},
        "turn": {"read": 3, "added": 2, "duplicates": 1, "skipped": 0, "vectors": 1},
        "edge": {"read": 2, "added": 1, "duplicates": 0, "skipped": 1, "vectors": 0},
    }
    assert told["skipped"] == [
        {"place": "memory_entries 4", "reason": "it has no content"},
        {"place": "memory_agent_edges 2", "reason": "an edge needs the session that was delegated to"},
    ]
    assert (told["into_sinks"], told["of_nobody"], told["masked"]) == ({"whatsapp-dm": 2}, 1, 1)

    memvec = Memvec(fresh.runtime_dsn)
    space = memvec.hello("ops", "m", 4).space_id
    assert space is not None
    (anvil, *_) = memvec.recall_memory("ops", None, embedding=[1, 0, 0, 0], space=space)
    assert (anvil.content, anvil.vector_rank) == ("The anvil is in the shed.", 1)
    assert anvil.created_at.isoformat().startswith("2025-01-02T01:04:05")
    assert anvil.metadata == {"session_id": "s1"}
    assert texts(memvec.recall_memory("ops", "password tea zero large")) == {
        "password = [redacted]",
        "Ines likes tea.",
        "zero",
        "large",
    }
    assert texts(memvec.recall_memory(CONTACT, "chat")) == {
        "Chat: the anvil was sold.",
        "Chat: the buyer was Bob.",
    }
    assert memvec.recall_memory("agent:main:whatsapp:dm:15550100124", "chat") == []
    assert {(t.session_id, t.role) for t in memvec.recall_conversation("ops", "anvil shed")} == {
        ("s1", "user"),
        ("s2", "assistant"),
    }
    assert rows(fresh, "SELECT parent_session_id FROM memvec.conversations WHERE session_id = 's2'") == [
        ("s0",)
    ]
    assert rows(
        fresh,
        "SELECT parent_identity, child_identity, child_session_id, created_at = '2025-01-02Z'"
        " FROM memvec.memory_agent_edges",
    ) == [("ops", "worker", "s9", True)]
    assert rows(
        fresh,
        "SELECT first_seen = '2024-05-06Z', attrs FROM memvec.memory_agents WHERE agent_identity = 'ops'",
    ) == [(True, {"host": "a"})]
    for table in ("memory_entries", "conversations", "memory_agents", "maintenance_log"):
        assert (
            rows(fresh, f"SELECT t FROM memvec.{table} AS t WHERE t::text ~ '15550100|stolen|hunter2'") == []
        )

    again = run(*command, admin_dsn=fresh.admin_dsn)
    assert {kind: counts["added"] for kind, counts in again.json["kinds"].items()} == dict.fromkeys(
        ("agent", "entry", "turn", "edge"), 0
    )
    assert all(counts["vectors"] == 0 for counts in again.json["kinds"].values())


def test_release_0_3_has_fewer_tables_and_no_model_is_guessed(
    run: Commands, empty_database: Database, fresh: Database
) -> None:
    with empty_database.admin() as admin:
        admin.execute(TABLES)
        admin.execute(ROWS)
    command = ("import", "pgvector", "--from", empty_database.admin_dsn)
    dry = run(*command, "--model", "m", "--dry-run", admin_dsn=fresh.admin_dsn)
    assert "Nothing was stored" in dry.out
    assert "would add" in dry.out
    assert rows(fresh, "SELECT FROM memvec.memory_entries") == []
    assert rows(fresh, "SELECT FROM memvec.embedding_spaces") == []

    without = run(*command, admin_dsn=fresh.admin_dsn)
    assert without.code == 3
    assert "--model" in without.err
    assert "skipped memory_entries 4: it has no content" in without.err
    assert "belong to the sink whatsapp-dm" in without.out
    assert rows(fresh, "SELECT count(*) FROM memvec.memory_entries") == [(8,)]
    assert rows(fresh, "SELECT FROM memvec.embedding_spaces") == []

    healed = run(*command, "--model", "m", "--json", admin_dsn=fresh.admin_dsn).json
    assert (healed["kinds"]["entry"]["added"], healed["kinds"]["entry"]["vectors"]) == (0, 4)


def test_the_configured_model_is_that_of_the_older_vectors_if_its_width_is(
    run: Commands, older: Database, fresh: Database, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    block = {"embed_model": "their-model", "embed_dim": 4, "conversation_embed_policy": "none"}
    (home / "config.yaml").write_text(json.dumps({"plugins": {"pgvector": block}}))
    command = ("import", "pgvector", "--from", older.admin_dsn, "--json")
    told = run(*command, admin_dsn=fresh.admin_dsn).json
    assert any("their-model" in note for note in told["notes"])
    assert rows(fresh, "SELECT model, dim FROM memvec.embedding_spaces") == [("their-model", 4)]
    assert rows(fresh, "SELECT embed FROM memvec.conversations ORDER BY id") == [(True,), (False,)]
    block["embed_dim"] = 8
    (home / "config.yaml").write_text(json.dumps({"plugins": {"pgvector": block}}))
    assert any("--model" in note for note in run(*command, admin_dsn=fresh.admin_dsn).json["notes"])


def test_a_host_with_the_prefixes_of_its_model_is_told_why_it_finds_by_words(
    run: Commands, fresh: Database, empty_database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # The older plugin used none, a host uses those that its model is known for: that is another space.
    text, width = "The anvil is in the shed.", len(embed("x"))
    with empty_database.admin() as admin:
        admin.execute(TABLES.replace("vector(4)", f"vector({width})").encode())
        admin.execute(
            "INSERT INTO memory_entries (agent_identity, target, content, embedding)"
            " VALUES ('ops', 'memory', %s, %s::vector)",
            [text, str(embed(text))],
        )
    command = ("import", "pgvector", "--from", empty_database.admin_dsn, "--model", "nomic-embed-text")
    assert run(*command, "--json", admin_dsn=fresh.admin_dsn).json["kinds"]["entry"]["vectors"] == 1

    model = ModelServer()
    model.start()
    try:
        home = HomeUnderTest(tmp_path / "host", fresh.runtime_dsn, fresh.admin_dsn)
        home.configure(
            embed_url=model.url.removesuffix("/v1"), embed_model="nomic-embed-text", embed_dim=width
        )
        assert found_by(home) == ["words"]
        assert caplog.text.count("were made with other task prefixes") == 1
        os.environ["HERMES_HOME"] = str(home.path)
        del os.environ["HERMES_PGSQL_EMBED_URL"]
        told = run("stats", admin_dsn=fresh.admin_dsn).err
        assert "hermes config set memory.pgvector.embed_query_prefix none" in told
        assert "hermes-pgsql model add nomic-embed-text" in told
        home.configure(embed_query_prefix="none", embed_document_prefix="none")
        assert found_by(home) == ["meaning", "words"]
        assert "cannot use" not in run("stats", admin_dsn=fresh.admin_dsn).err
    finally:
        model.stop()


def found_by(home: HomeUnderTest) -> list[str]:
    """How a host finds the anvil."""
    provider = home.provider("s1", "ops", agent_context="subagent")  # which writes nothing
    answer = json.loads(provider.handle_tool_call("recall_memory", {"query": "Where is the anvil?"}))
    (row,) = answer["results"]
    ways = {"meaning": row.get("score"), "words": "anvil" in row["content"]}
    return [way for way, hit in ways.items() if hit]


def test_older_tables_in_another_schema_and_beside_our_own(run: Commands, fresh: Database) -> None:
    with fresh.admin() as admin:
        admin.execute("CREATE SCHEMA old; SET search_path = old, public")
        admin.execute(TABLES)
        admin.execute("INSERT INTO memory_entries (target, content) VALUES ('memory', 'from beside')")
    command = ("import", "pgvector", "--from", fresh.admin_dsn)
    assert run(*command, admin_dsn=fresh.admin_dsn).code == 0
    assert texts(Memvec(fresh.runtime_dsn).recall_memory("default", "beside")) == {"from beside"}
    with fresh.admin() as admin:
        admin.execute("CREATE SCHEMA older; SET search_path = older, public")
        admin.execute(TABLES)
    torn = run(*command, admin_dsn=fresh.admin_dsn)
    assert torn.code == 1
    assert "old, older" in torn.err
    assert "--schema" in torn.err
    assert run(*command, "--schema", "old", admin_dsn=fresh.admin_dsn).code == 0


def test_the_older_plugin_writes_on_while_we_move_in_beside_it(
    run: Commands, empty_database: Database
) -> None:
    """Case X05: an older release in the middle of a write holds no migration up."""
    many = """
        INSERT INTO memory_entries (agent_identity, target, content)
        SELECT 'ops', 'memory', 'row number ' || n FROM generate_series(1, 2000) AS n"""
    with empty_database.admin() as admin:
        admin.execute(TABLES)
        admin.execute(many)
    late = "INSERT INTO memory_entries (agent_identity, target, content) VALUES ('ops', 'memory', %s)"
    with psycopg.connect(empty_database.admin_dsn) as writer:
        writer.execute(late, ["written during the migration"])
        for report in (True, False):
            told = run("migrate", "--json", admin_dsn=empty_database.admin_dsn)
            assert told.code == 0
            assert bool(told.json["applied"]) is report
        assert (
            run(
                "import", "pgvector", "--from", empty_database.admin_dsn, admin_dsn=empty_database.admin_dsn
            ).code
            == 0
        )
        writer.commit()
        writer.execute(late, ["written after it"])
    # An import again takes over what came meanwhile, and nothing twice.
    told = run(
        "import",
        "pgvector",
        "--from",
        empty_database.admin_dsn,
        "--json",
        admin_dsn=empty_database.admin_dsn,
    ).json
    assert told["kinds"]["entry"]["added"] == 2
    log = "SELECT rows, dry_run, parameters ->> 'from' FROM memvec.maintenance_log WHERE operation = 'import'"
    assert rows(empty_database, f"{log} ORDER BY id") == [
        (2000, False, "hermes-memory-pgvector"),
        (2, False, "hermes-memory-pgvector"),
    ]
    assert rows(empty_database, "SELECT count(*) FROM memvec.memory_entries") == [(2002,)]


def test_a_database_without_older_tables_and_one_that_is_not_there(run: Commands, database: Database) -> None:
    none = run("import", "pgvector", "--from", database.admin_dsn)
    assert none.code == 1
    assert "no tables of hermes-memory-pgvector" in none.err
    gone = run("import", "pgvector", "--from", f"postgresql://u:{SECRET}@127.0.0.1:9/x")
    assert gone.code == 1
    assert gone.err.startswith("error: ")
    assert run("import", "pgvector").code == 2


def test_bytes_that_are_not_text_come_from_a_database_that_never_checked(
    run: Commands, server: TestServer, fresh: Database
) -> None:
    name = f"ascii_{uuid4().hex[:8]}"
    with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        admin.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'"
            " LOCALE_PROVIDER libc".encode()
        )
    try:
        with psycopg.connect(server.dsn(name), autocommit=True, client_encoding="SQL_ASCII") as admin:
            admin.execute(TABLES)
            admin.execute(
                b"INSERT INTO memory_entries (target, content, embedding, metadata) VALUES"
                b" ('memory', E'caf\\xe9 anvil', '[1,0,0,0]', '{\"a\": 1}')"
            )
        done = run(
            "import",
            "pgvector",
            "--from",
            server.dsn(name),
            "--model",
            "m",
            "--json",
            admin_dsn=fresh.admin_dsn,
        )
        assert done.code == 0, done.err
        assert done.json["kinds"]["entry"]["vectors"] == 1
        assert texts(Memvec(fresh.runtime_dsn).recall_memory("default", "anvil")) == {"caf� anvil"}
    finally:
        server.drop_database(name)


# Memory files ------------------------------------------------------------


def test_memory_files_of_a_home(run: Commands, database: Database, theme: str, tmp_path: Path) -> None:
    memories = tmp_path / "old" / "memories"
    memories.mkdir(parents=True)
    (memories / "MEMORY.md").write_text(f"The anvil of {theme}\nis heavy.\n§\nA § in a line stays.\n§\n \n")
    (memories / "USER.md").write_text("Ines likes tea.")
    command = ("import", "md", str(tmp_path / "old"), "--identity", theme.upper(), "--json")
    assert run(*command, "--dry-run").json["kinds"]["entry"]["added"] == 3
    assert run(*command).json["kinds"]["entry"]["added"] == 3
    assert run(*command).json["kinds"]["entry"]["duplicates"] == 3
    memvec = Memvec(database.runtime_dsn)
    found = {(row.target, row.content) for row in memvec.recall_memory(theme, "anvil line tea")}
    assert found == {
        ("memory", f"The anvil of {theme}\nis heavy."),
        ("memory", "A § in a line stays."),
        ("user", "Ines likes tea."),
    }
    single = run("import", "md", str(memories / "MEMORY.md"), "--target", "user", "--identity", theme)
    assert single.code == 0
    assert len(memvec.recall_memory(theme, "anvil line tea", target="user")) == 3


def test_a_home_names_its_theme_and_what_is_none_is_said(
    run: Commands, database: Database, tmp_path: Path
) -> None:
    name = f"p-{uuid4().hex[:8]}"
    home = tmp_path / "profiles" / name
    (home / "memories").mkdir(parents=True)
    (home / "memories" / "MEMORY.md").write_text("The anvil of a profile.")
    done = run("import", "md", str(home))
    assert name in done.err
    assert len(Memvec(database.runtime_dsn).recall_memory(name, "anvil")) == 1
    for path in (tmp_path / "nothing", tmp_path):
        wrong = run("import", "md", str(path))
        assert wrong.code == 2
        assert "there is no" in wrong.err


# Lines of JSON ------------------------------------------------------------


def test_a_bad_line_is_named_and_the_rest_is_stored(
    run: Commands, database: Database, theme: str, tmp_path: Path
) -> None:
    def line(content: str, **more: object) -> str:
        return json.dumps({"kind": "entry", "identity": theme, "target": "user", "content": content, **more})

    lines = [
        line("first anvil \0 \ud800"),
        "{not json",
        "",
        '["a list"]',
        json.dumps({"kind": "page", "identity": theme}),
        line("  "),
        line("a turn, anvil", kind="turn", session_id="s", role="user"),
        json.dumps({"kind": "header", "format": "another"}),
        json.dumps({"kind": "header", "format": "hermes-pgsql", "version": 99}),
        line("x", metadata={"n": float("inf")}),
        line("x", metadata="deep").replace('"deep"', "[" * 300 + "]" * 300),
        line("with a vector", vectors={"1": [1]}),
        line("password = hunter2hunter2"),
    ]
    file = tmp_path / "lines.jsonl"
    file.write_bytes("\n".join(lines).encode() + b"\n\xff\xfe\n")
    done = run("import", "jsonl", str(file), "--json")
    assert done.code == 3
    assert [(row["place"], row["reason"]) for row in done.json["skipped"]] == [
        ("line 2", "it is not JSON"),
        ("line 4", "it is not a JSON object"),
        ("line 8", "it is the header of another format"),
        ("line 9", "it begins an export of version 99, which needs a newer hermes-pgsql"),
        ("line 14", "it is not UTF-8"),
        ("line 5", 'the kind of a row is entry, turn, edge or agent, not "page"'),
        ("line 6", "it has no content"),
        ("line 11", "the database refused it (MV001)"),
    ]
    assert "header" in " ".join(done.json["notes"])
    memvec = Memvec(database.runtime_dsn)
    assert len(memvec.recall_memory(theme, "first anvil x vector password")) == 4
    assert len(memvec.recall_conversation(theme, "anvil")) == 1
    shown = run("import", "jsonl", str(file))
    assert "warning: skipped line 2: it is not JSON" in shown.err


def test_standard_input(
    run: Commands, database: Database, theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = json.dumps({"kind": "entry", "identity": theme, "target": "memory", "content": "piped anvil"})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.encode())))
    assert run("import", "jsonl", "-").code == 0
    assert len(Memvec(database.runtime_dsn).recall_memory(theme, "anvil")) == 1
    assert run("import", "jsonl", "/no/such/file").code == 1


# There and back ------------------------------------------------------------

QUESTIONS = [
    ("ops", "anvil", [1.0, 0.1, 0.0, 0.0], "own"),
    ("ops", "tea", None, "own"),
    ("Marketing", None, [0.0, 1.0, 0.0, 0.2], "own"),
    ("marketing", "the anvil in the shed", [0.3, 0.3, 0.3, 0.0], "all"),
    ("ops", "newsletter", None, "marketing"),
]

FACTS = ("The anvil is in the shed", "Tea at four", "The newsletter goes out")


def fill(database: Database) -> None:
    memvec = Memvec(database.admin_dsn)
    space = memvec.add_embedding_space("m", 4, "query: ", "text: ", 0.2)
    other = memvec.add_embedding_space("other", 2)
    for n in range(12):
        for theme in ("ops", "marketing"):
            memvec.add_memory(
                theme,
                ("memory", "user")[n % 2],
                f"{FACTS[n % 3]}, note {n} “é”\n",
                metadata={"n": n},
                embedding=[n / 7, 1 - n / 20, 0.123456, 1e-5] if n % 4 else None,
                space=space,
                embed=n != 4,
            )
            memvec.append_turn(
                theme, f"s{n % 3}", "user", f"The anvil, turn {n}", embedding=[1, n + 1], space=other
            )
    memvec.add_memory(CONTACT, "memory", "Chat: the anvil was sold.", embedding=[1, 0, 0, 0], space=space)
    memvec.record_delegation("ops", "s1", "s2", "worker")
    memvec.register_agent("ops", {"host": "a"})


def answers(database: Database) -> list[Any]:
    memvec = Memvec(database.runtime_dsn)
    found: list[Any] = []
    for key, question, vector, scope in QUESTIONS:
        space = memvec.hello(key, "m", 4, "query: ", "text: ").space_id
        given = memvec.recall_memory(key, question, embedding=vector, space=space, scope=scope, limit=30)
        found.append(
            [
                (r.content, r.target, r.score, r.rrf_score, r.created_at, r.updated_at, r.metadata)
                for r in given
            ]
        )
        turns = memvec.recall_conversation(key, "anvil turn", scope=scope)
        found.append([(r.content, r.session_id, r.role, r.ts) for r in turns])
    return found


def test_an_export_imported_into_a_fresh_database_answers_the_same(
    run: Commands, server: TestServer, fresh: Database, template: str, tmp_path: Path
) -> None:
    fill(fresh)
    expected = answers(fresh)
    assert all(expected)
    file = tmp_path / "all.jsonl"
    told = run("export", "--all", "--vectors", str(file), "--json", admin_dsn=fresh.admin_dsn).json
    assert told["rows"] == len(file.read_text().splitlines()) - 2 == 52
    assert file.stat().st_mode & 0o777 == 0o600
    assert CONTACT not in file.read_text()

    name = f"memvec_{uuid4().hex[:8]}"
    server.create_database(name, template)
    try:
        copy = Database(server, name)
        with copy.admin() as admin:  # a clone of the template has its secret, an installation has its own
            admin.execute("UPDATE memvec.secrets SET value = sha256('another')")
        dry = run("import", "jsonl", str(file), "--dry-run", admin_dsn=copy.admin_dsn)
        assert "Nothing was stored" in dry.out
        done = run("import", "jsonl", str(file), admin_dsn=copy.admin_dsn)
        assert done.code == 0
        assert "pg_dump" in done.err  # of the contact's row
        assert answers(copy) == expected
        assert Memvec(copy.runtime_dsn).recall_memory(CONTACT, "anvil") == []
        second = tmp_path / "again.jsonl"
        run("export", "--all", "--vectors", str(second), admin_dsn=copy.admin_dsn)
        lines = [sorted(path.read_text().splitlines()[1:-1]) for path in (file, second)]
        assert [one for one in lines[0] if '"kind" : "agent"' not in one] == [
            one for one in lines[1] if '"kind" : "agent"' not in one
        ]
        again = run("import", "jsonl", str(file), "--json", admin_dsn=copy.admin_dsn).json
        assert again["kinds"]["entry"]["added"] == 0
    finally:
        pool.close_all()
        server.drop_database(name)


def test_with_the_same_secret_contacts_stay_who_they_are(
    run: Commands, fresh: Database, tmp_path: Path
) -> None:
    fill(fresh)
    file = tmp_path / "contact.jsonl"
    assert run("export", "--identity", CONTACT, str(file), admin_dsn=fresh.admin_dsn).code == 0
    assert len(file.read_text().splitlines()) == 3  # header, entry, end
    with fresh.admin() as admin:
        admin.execute("DELETE FROM memvec.memory_entries")
    done = run("import", "jsonl", str(file), admin_dsn=fresh.admin_dsn)
    assert "warning" not in done.err
    assert texts(Memvec(fresh.runtime_dsn).recall_memory(CONTACT, "anvil")) == {"Chat: the anvil was sold."}


def test_one_theme_to_standard_output(run: Commands, database: Database, theme: str) -> None:
    Memvec(database.runtime_dsn).add_memory(theme, "memory", "the anvil")
    done = run("export", "--identity", theme)
    header, entry, end = map(json.loads, done.out.splitlines())
    assert (header["kind"], header["format"], header["theme"]) == ("header", "hermes-pgsql", theme)
    assert (entry["content"], entry["vectors"]) == ("the anvil", None)
    assert end == {"kind": "end", "rows": 1}
    assert "1 row was" in done.err
    for arguments in ([], ["--all", "--identity", theme], ["--all", "--json"]):
        assert run("export", *arguments).code == 2


def test_an_export_that_fails_leaves_no_file(run: Commands, database: Database, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text("the last one")
    _, runtime = database.make_login("memvec_runtime")
    assert run("export", "--all", str(file), admin_dsn=runtime).code == 1
    assert file.read_text() == "the last one"
    assert list(tmp_path.glob(".*part")) == []


# Batches ------------------------------------------------------------


def test_many_rows_are_counted_in_batches_and_one_that_breaks_its_batch_is_found(
    database: Database, theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_pgsql.importing.BATCH_ROWS", 7)
    memvec = Memvec(database.admin_dsn)
    space = memvec.add_embedding_space("batches", 2)

    def incoming() -> Iterator[Incoming]:
        for n in range(40):
            row: dict[str, object] = {
                "kind": "entry",
                "identity": f"{theme}-{n % 3}",
                "target": "memory",
                "content": f"note {n}",
            }
            yield Incoming(str(n), row, {space: [1.0, 2.0] if n != 23 else [1.0, 2.0, 3.0]})

    report, seen = Report(dry_run=False), list[int]()
    import_all(memvec, incoming(), report, origin="a test", mask=True, progress=seen.append)
    counts = report.of("entry")
    assert (counts.read, counts.added, counts.skipped, counts.vectors) == (40, 39, 1, 39)
    assert report.skipped == [("23", "the database refused it (MV005)")]
    assert seen == sorted(seen)
    assert seen[-1] == 40
