"""The hooks of the host: what they store, in whose name, and that nothing stops them or is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from provider_support import HomeUnderTest, ModelServer, embedded, empty_home, outage, settle, wait_for

from hermes_pgsql.config import Settings
from hermes_pgsql.host.home import source_of
from hermes_pgsql.host.schema import CONFIG_FIELDS
from hermes_pgsql.provider import PgvectorProvider

ASKED = "a long enough question about the backup window of the cluster"
ANSWERED = "a long enough answer about the backup window of the cluster"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    server = ModelServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def home(database: Any, model: ModelServer, tmp_path: Path) -> Iterator[HomeUnderTest]:
    model.embed_status, model.embed_delay = 200, 0.0
    with empty_home(database, tmp_path / "home") as here:
        here.configure(embed_url=model.url.removesuffix("/v1"), embed_model="words", prefetch_budget=7.0)
        yield here


# What the host asks before anything else ------------------------------------------------------------


def test_import_and_questions_before_a_session_load_neither_driver_nor_settings() -> None:
    program = """
import sys
from hermes_pgsql.provider import PgvectorProvider
provider = PgvectorProvider()
assert provider.name == "pgvector"
assert provider.is_available() is True
assert [schema["name"] for schema in provider.get_tool_schemas()] == ["recall_memory", "recall_conversation"]
assert provider.get_config_schema()
assert provider.backup_paths() == []
heavy = {"psycopg", "psycopg_pool", "pydantic", "yaml", "ruamel", "httpx", "rich", "numpy", "sqlite3"}
print(sorted(heavy & {name.split(".")[0] for name in sys.modules}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_dependency_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "psycopg" else real(name))
    provider = PgvectorProvider()
    assert provider.is_available() is False
    assert "psycopg" in provider.unavailable_reason()
    assert "psycopg" in provider.get_status_config({})["problem"]


def test_schemas_are_copies() -> None:
    provider = PgvectorProvider()
    provider.get_tool_schemas()[0]["name"] = "changed"
    provider.get_config_schema()[0]["key"] = "changed"
    assert provider.get_tool_schemas()[0]["name"] == "recall_memory"
    assert provider.get_config_schema()[0]["key"] == "dsn"


def test_the_settings_form_and_the_settings_agree() -> None:
    defaults = Settings().model_dump()
    for field in CONFIG_FIELDS:
        default = field["default"]
        expected = defaults[field["key"]]
        if isinstance(expected, tuple):
            expected = ",".join(expected)
        assert default == ("" if expected in (None, {}) else expected), field["key"]
        assert field["description"]


def test_no_hook_raises_without_a_session() -> None:
    provider = PgvectorProvider()
    assert provider.system_prompt_block() == ""
    assert provider.prefetch("what is it") == ""
    assert provider.on_pre_compress([]) == ""
    provider.queue_prefetch("x")
    provider.on_turn_start(1, "x")
    provider.sync_turn("x", "y", messages=[])
    provider.on_session_end([{"role": "user", "content": "x"}])
    provider.on_session_switch("new")
    provider.on_memory_write("add", "memory", "x", {})
    provider.on_delegation("x", "y", child_session_id="z")
    provider.shutdown()
    provider.shutdown()
    result = json.loads(provider.handle_tool_call("recall_memory", {"query": "x"}))
    assert result["results"] == []
    assert "not ready" in result["error"]


@pytest.mark.parametrize(
    "content", ["dsn: [", "memory: {pgvector: 7}", "memory: {pgvector: {dsn: 'no dsn at all'}}"]
)
def test_no_hook_raises_with_a_configuration_that_says_nothing(
    tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a dsn the embedded server would be started, which is this machine's own.
    monkeypatch.setattr("hermes_pgsql.embedded.available", lambda: False)
    (tmp_path / "config.yaml").write_text(content)
    provider = PgvectorProvider()
    provider.initialize(
        "s", hermes_home=str(tmp_path), agent_context=7, platform=None, gateway_session_key=b"x"
    )
    provider.sync_turn(None, [{"type": "text", "text": ANSWERED}], session_id=3)  # type: ignore[arg-type]
    provider.on_session_end([None, {"role": "user"}, {"content": 3}])
    provider.on_memory_write("add", "memory", ANSWERED, {"old_text": 5})
    provider.on_memory_write("replace", 7, None)  # type: ignore[arg-type]
    assert provider.prefetch(ASKED) == ""
    answer = json.loads(provider.handle_tool_call("recall_memory", None))
    assert answer["error"] == "Missing required arg: query"
    answer = json.loads(provider.handle_tool_call("recall_memory", {"query": "x"}))
    assert "does not mean that nothing is stored" in answer["error"]
    provider.shutdown()


def test_a_form_full_of_odd_values_starts_and_is_saved_over(
    home: HomeUnderTest, caplog: pytest.LogCaptureFixture
) -> None:
    """Case X01: text for switches and numbers, blanks, nonsense, numbers out of range."""
    home.settings = {}
    home.configure(
        hybrid_search="false",
        sync_turns="False",
        embed_on_write="0",
        allowed_themes="sales,marketing",
        write_queue_maxsize="abc",
        prefetch_budget="99",
        prefetch_limit="-3",
        min_similarity="2",
        turn_min_chars="",
        embed_url=" ",
        favourite_of_somebody_else="blue",
    )
    provider = home.provider()
    assert provider._link is not None
    settings = provider._link.settings
    assert (settings.hybrid_search, settings.sync_turns, settings.embed_on_write) == (False, False, False)
    assert settings.prefetch_budget < 8  # the host gives up then
    assert settings.prefetch_limit >= 1
    assert settings.min_similarity is not None
    assert settings.min_similarity <= 1
    defaults = Settings()
    for key in ("write_queue_maxsize", "turn_min_chars", "embed_url"):
        assert getattr(settings, key) == getattr(defaults, key)
    said = [record.message for record in caplog.records if record.levelname == "WARNING"]
    for key in (
        "write_queue_maxsize",
        "prefetch_budget",
        "prefetch_limit",
        "min_similarity",
        "turn_min_chars",
    ):
        assert sum(f"pgvector.{key}:" in line for line in said) == 1, key
    provider.sync_turn(ASKED, ANSWERED, session_id="s1")
    provider.on_memory_write("add", "memory", ANSWERED)
    settle(provider)
    assert home.turns() == []
    assert [theme for theme, _target, _content in home.entries()] == ["marketing"]

    provider.save_config({"hybrid_search": "true"}, str(home.path))
    saved = yaml.safe_load((home.path / "config.yaml").read_text())["memory"]["pgvector"]
    assert saved["favourite_of_somebody_else"] == "blue"
    assert saved["hybrid_search"] is True
    assert saved["dsn"] == home.dsn


# Who it is ------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "theme"),
    [
        ({"gateway_session_key": "Marketing"}, "marketing"),
        ({"gateway_session_key": "  "}, "hermes"),
        ({"gateway_session_key": None, "agent_identity": "coder"}, "coder"),
        ({"gateway_session_key": 7, "agent_identity": " Default "}, "hermes"),
        ({"gateway_session_key": None, "agent_workspace": "", "agent_identity": "default"}, "default"),
        ({"gateway_session_key": None, "agent_workspace": None, "agent_identity": None}, "default"),
        ({"gateway_session_key": "agent:main:telegram:dm:42"}, "whatsapp-dm"),
        ({"gateway_session_key": "agent:main:telegram:supergroup:42"}, "external-group"),
    ],
)
def test_identity_of_a_session(home: HomeUnderTest, given: dict[str, Any], theme: str) -> None:
    provider = home.provider(**given)
    provider.sync_turn(ASKED, ANSWERED, session_id="s1")
    settle(provider)
    assert home.query("SELECT DISTINCT agent_identity FROM memvec.conversations") == [(theme,)]
    assert (theme,) in home.query("SELECT agent_identity FROM memvec.memory_agents")


@pytest.mark.parametrize(
    ("context", "configured", "writes"),
    [
        ("primary", None, True),
        ("Cron", None, True),
        ("subagent", None, False),
        ("flush", None, False),
        ("kanban", None, False),
        (None, None, True),
        (7, None, True),
        ("cron", "primary", False),
        ("primary", "primary", True),
        (None, "primary", True),
        ("kanban", "primary, Kanban", True),
    ],
)
def test_only_some_contexts_write_and_all_recall(
    home: HomeUnderTest, context: object, configured: str | None, writes: bool
) -> None:
    first = home.provider("before")
    first.on_memory_write("add", "memory", "The customer inbox has number 7.")
    settle(first)
    if configured:
        home.configure(write_contexts=configured)
    provider = home.provider("s1", agent_context=context)
    provider.sync_turn(ASKED, ANSWERED, session_id="s1")
    provider.on_memory_write("add", "user", "A note of this run.")
    provider.on_session_end([{"role": "user", "content": ASKED}])
    provider.on_delegation("a task of this run", "its result", child_session_id="c")
    settle(provider)
    assert (len(home.turns()), len(home.entries())) == ((3, 2) if writes else (0, 1))
    assert "number 7" in provider.handle_tool_call("recall_memory", {"query": "customer inbox"})
    assert "number 7" in provider.prefetch("what is the number of the customer inbox?")
    assert ("does not add" in provider.system_prompt_block()) is not writes
    if writes:
        assert home.metadata()[0]["context"] == (context.lower() if isinstance(context, str) else "primary")


def test_the_prompt_block_is_the_same_with_and_without_a_database(home: HomeUnderTest, database: Any) -> None:
    block = home.provider("s1").system_prompt_block()
    with outage(database.server.admin_dsn, database.name):
        assert home.provider("s2").system_prompt_block() == block
    assert "recall_memory" in block
    assert "empty" not in block.replace("not that it is empty", "")


def test_changed_rules_hold_for_the_next_session(home: HomeUnderTest) -> None:
    provider = home.provider(theme="mkt")
    signature = provider.identity_signature()
    home.configure(identity_aliases="mkt=marketing")
    assert provider.identity_signature() != signature
    second = home.provider("s2", theme="mkt")
    second.sync_turn(ASKED, ANSWERED, session_id="s2")
    settle(second)
    assert home.query("SELECT DISTINCT agent_identity FROM memvec.conversations") == [("marketing",)]


def test_a_configuration_that_is_taken_back_has_its_database_again(
    home: HomeUnderTest, empty_database: Any
) -> None:
    home.provider("s1")
    home.configure(dsn=empty_database.runtime_dsn)
    home.provider("s2")
    home.configure(dsn=home.dsn)
    third = home.provider("s3")
    third.sync_turn(ASKED, ANSWERED, session_id="s3")
    settle(third)
    assert [turn[0] for turn in home.turns()] == ["s3", "s3"]


def test_a_changed_configuration_has_the_files_read_again(home: HomeUnderTest) -> None:
    home.write_file("MEMORY.md", "a note in the file")
    settle(home.provider("s1"))
    with psycopg.connect(home.admin_dsn) as connection:
        connection.execute("TRUNCATE memvec.memory_entries CASCADE")  # as in a database of its own
    home.configure(prefetch_limit=3)
    settle(home.provider("s2"))
    assert [content for _theme, _target, content in home.entries()] == ["a note in the file"]


# Turns ------------------------------------------------------------


def history(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]


def test_a_turn_is_stored_once_however_often_it_is_told(home: HomeUnderTest) -> None:
    provider = home.provider("s1")
    for _ in range(3):
        provider.sync_turn(ASKED, ANSWERED, session_id="s1")
    provider.on_session_end(history(ASKED, ANSWERED))
    settle(provider)
    again = home.provider("s1")
    again.on_session_end(history(ASKED, ANSWERED))
    settle(again)
    assert home.turns() == [("s1", "user", ASKED), ("s1", "assistant", ANSWERED)]


def test_the_same_words_in_two_sessions_are_two_turns(home: HomeUnderTest) -> None:
    provider = home.provider("s1")
    provider.on_session_end(history(ASKED))
    provider.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session")
    provider.on_session_end(history(ASKED))
    settle(provider)
    assert sorted(home.turns()) == [("s1", "user", ASKED), ("s2", "user", ASKED)]


def test_session_end_stores_what_the_turn_hook_missed_and_no_old_history(home: HomeUnderTest) -> None:
    provider = home.provider("s1")
    missed = f"the one the hook missed, {ASKED}"
    old = {"role": "user", "content": f"from yesterday, {ASKED}", "timestamp": 1_700_000_000}
    provider.sync_turn(ASKED, ANSWERED, session_id="s1")
    told = [old, *history(ASKED, ANSWERED, missed)]
    provider.on_session_end(told)
    # /new, and the host ends without another turn: the old history again, under the new session.
    provider.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session")
    provider.on_session_end(told)
    settle(provider)
    assert [turn[1:] for turn in home.turns()] == [("user", ASKED), ("assistant", ANSWERED), ("user", missed)]
    assert {turn[0] for turn in home.turns()} == {"s1"}


def test_a_branch_does_not_store_its_parents_turns_again(home: HomeUnderTest) -> None:
    provider = home.provider("s1")
    provider.sync_turn(ASKED, ANSWERED, session_id="s1")
    provider.on_session_switch("s2", parent_session_id="s1", reset=False, reason="branch")
    aside = f"an aside, {ASKED}"
    provider.sync_turn(aside, ANSWERED, session_id="s2")
    provider.on_session_end(history(ASKED, ANSWERED, aside, ANSWERED))
    settle(provider)
    assert sorted(home.turns()) == [
        ("s1", "assistant", ANSWERED),
        ("s1", "user", ASKED),
        ("s2", "assistant", ANSWERED),
        ("s2", "user", aside),
    ]
    assert home.query("SELECT DISTINCT parent_session_id FROM memvec.conversations") == [(None,)]


def test_turns_carry_the_moment_they_began(home: HomeUnderTest) -> None:
    provider = home.provider("s1")
    provider.on_turn_start(1, ASKED)
    provider.on_turn_start(2, "the next question, asked while the first turn is still being stored")
    provider.sync_turn(ASKED, ANSWERED, session_id="s1")
    settle(provider)
    assert [role for _session, role, _text in home.turns()] == ["user", "assistant"]


def test_a_session_end_that_overtakes_the_turn_hook_keeps_the_order(home: HomeUnderTest) -> None:
    provider = home.provider("s1")
    provider.on_turn_start(1, ASKED)
    provider.on_session_end(history(ASKED))
    provider.sync_turn(ASKED, ANSWERED, session_id="s1")
    provider.on_session_end(history(ASKED, ANSWERED))
    settle(provider)
    began, ended = (ts for (ts,) in home.query("SELECT ts FROM memvec.conversations ORDER BY role DESC"))
    assert [role for _session, role, _text in home.turns()] == ["user", "assistant"]
    assert began < ended


def test_short_turns_and_switched_off_turns_are_not_stored(home: HomeUnderTest) -> None:
    provider = home.provider("s1")
    provider.sync_turn("ok", ANSWERED, session_id="s1")
    provider.sync_turn([{"type": "image_url", "image_url": {"url": "data:x"}}], "short", session_id="s1")
    home.configure(sync_turns="False")
    off = home.provider("s2")
    off.sync_turn(ASKED, ANSWERED, session_id="s2")
    off.on_session_end(history(ASKED, ANSWERED))
    settle(off)
    assert home.turns() == [("s1", "assistant", ANSWERED)]


def test_recalled_text_is_not_stored_again(home: HomeUnderTest) -> None:
    provider = home.provider("s1")
    provider.sync_turn(
        "<memory-context>\n[System note: recalled]\nsecret old fact 5511\n</memory-context>\n"
        "What should I cook tonight with lentils?",
        "You asked before; <memory-context>secret old fact 5511</memory-context>"
        " try a lentil soup with lemon.",
        session_id="s1",
    )
    settle(provider)
    assert len(home.turns()) == 2
    assert "5511" not in str(home.turns())
    assert "lentil soup" in provider.handle_tool_call("recall_conversation", {"query": "lentil soup"})


@pytest.mark.parametrize(
    ("policy", "vectors"), [("all", {"user", "assistant"}), ("substantive_only", {"user"}), ("none", set())]
)
def test_embedding_policy(home: HomeUnderTest, policy: str, vectors: set[str]) -> None:
    home.configure(conversation_embed_policy=policy)
    provider = home.provider("s1")
    provider.sync_turn(ASKED, ANSWERED, session_id="s1")
    settle(provider)
    embedded(home)
    assert {role for (role,) in home.query("SELECT role FROM memvec.conversations WHERE embed")} == vectors


def test_delegations_are_recorded_and_found(home: HomeUnderTest) -> None:
    provider = home.provider("s1", parent_session_id="boss")
    provider.on_delegation("count the swans", "nineteen swans", child_session_id="child")
    provider.on_delegation("count the swans", "nineteen swans", child_session_id="child")
    settle(provider)
    edges = home.query("SELECT child_session_id, attrs FROM memvec.memory_agent_edges")
    assert edges == [("child", {"task": "count the swans", "result_chars": 14})]
    assert home.turns() == [("s1", "assistant", "[delegation] task: count the swans\nresult: nineteen swans")]
    assert home.query("SELECT parent_session_id FROM memvec.conversations") == [("boss",)]


def test_a_secret_at_the_place_where_a_long_task_is_cut_is_masked(home: HomeUnderTest) -> None:
    address = "postgres://u:" + "Sup3rSecretPassw0rd@db/x"
    provider = home.provider("s1")
    provider.on_delegation(f"{'x' * 470} {address}", f"{'y' * 7480} {address}")
    settle(provider)
    stored = home.turns()[0][2] + str(home.query("SELECT attrs FROM memvec.memory_agent_edges"))
    assert "Sup3r" not in stored
    assert home.metadata()[0]["redacted"] == 2


# Notes ------------------------------------------------------------


def test_notes_follow_the_tool(home: HomeUnderTest) -> None:
    provider = home.provider()
    told = {"write_origin": "assistant_tool", "tool_name": "memory"}
    provider.on_memory_write("add", "memory", "  The port is 80.  ", told)
    provider.on_memory_write("add", "memory", "The port is 80.", told)
    provider.on_memory_write("add", "user", "Ada likes tea.", told)
    provider.on_memory_write("replace", "memory", "The port is 8080.", {**told, "old_text": " port is 80 "})
    provider.on_memory_write("remove", "user", "", {**told, "old_text": "likes"})
    settle(provider)
    assert home.entries() == [("marketing", "memory", "The port is 8080.")]
    assert home.metadata("memory_entries")[0]["origin"] == "assistant_tool"
    embedded(home)


def test_a_note_that_holds_the_delimiter_is_two_notes(home: HomeUnderTest) -> None:
    provider = home.provider()
    settle(provider)
    home.write_file("MEMORY.md", "one", "two")
    provider.on_memory_write("add", "memory", "one\n§\ntwo")
    provider.on_turn_start(2, "next")
    settle(provider)
    assert home.entries() == [("marketing", "memory", "one"), ("marketing", "memory", "two")]


def test_the_files_are_the_truth_and_entries_keep_their_theme(home: HomeUnderTest) -> None:
    home.write_file("MEMORY.md", "by hand")
    provider = home.provider()
    settle(provider)
    home.write_file("MEMORY.md", "by hand", "of the campaign", "of its budget")
    provider.on_memory_write("add", "memory", "of the campaign")
    settle(provider)
    provider.on_memory_write("add", "memory", "of its budget")
    provider.sync_turn("ok", "ok", session_id="s1")
    settle(provider)
    expected = [
        ("hermes", "memory", "by hand"),
        ("marketing", "memory", "of the campaign"),
        ("marketing", "memory", "of its budget"),
    ]
    assert home.entries() == expected
    for theme in ("sales", "agent:main:whatsapp:dm:1", "external-group"):
        settle(home.provider("s", theme))
    assert home.entries() == expected
    # A background review, an approval or a person changes the file, and nobody is told.
    home.write_file("MEMORY.md", "by hand, corrected")
    home.write_file("USER.md", "Ada likes tea.")
    provider.on_turn_start(2, ASKED)
    settle(provider)
    assert home.entries() == [
        ("hermes", "memory", "by hand, corrected"),
        ("hermes", "user", "Ada likes tea."),
    ]
    (home.path / "memories" / "USER.md").unlink()
    provider.sync_turn("ok", "ok", session_id="s1")
    settle(provider)
    assert home.entries() == [("hermes", "memory", "by hand, corrected")]


def test_a_file_that_waits_goes_behind_the_write_that_changed_it(home: HomeUnderTest, database: Any) -> None:
    home.write_file("MEMORY.md", "by hand")
    with outage(database.server.admin_dsn, database.name):
        provider = home.provider()
        home.write_file("MEMORY.md", "by hand", "of the campaign")
        provider.on_memory_write("add", "memory", "of the campaign")
    settle(provider)
    assert home.entries() == [("hermes", "memory", "by hand"), ("marketing", "memory", "of the campaign")]


def test_a_note_moves_to_its_theme_when_the_file_was_read_before_the_writer_was_heard(
    home: HomeUnderTest,
) -> None:
    home.write_file("MEMORY.md", "by hand", "of the campaign")
    long_ago = time.time() - 60
    os.utime(home.path / "memories" / "MEMORY.md", (long_ago, long_ago))
    provider = home.provider()
    settle(provider)
    assert set(home.entries()) == {("hermes", "memory", "by hand"), ("hermes", "memory", "of the campaign")}
    provider.on_memory_write("add", "memory", "of the campaign")
    provider.sync_turn(ASKED, ANSWERED, session_id="s1")
    settle(provider)
    assert home.entries() == [("hermes", "memory", "by hand"), ("marketing", "memory", "of the campaign")]


def test_a_note_of_a_direct_chat_stays_that_persons(home: HomeUnderTest) -> None:
    chat = home.provider("s1", "agent:main:whatsapp:dm:15550100123")
    home.write_file("MEMORY.md", "Bob is allergic to nuts.")
    chat.on_memory_write("add", "memory", "Bob is allergic to nuts.")
    settle(chat)
    assert home.entries() == [("whatsapp-dm", "memory", "Bob is allergic to nuts.")]
    other = home.provider("s2", "agent:main:whatsapp:dm:15550100999")
    assert json.loads(other.handle_tool_call("recall_memory", {"query": "allergic nuts"}))["count"] == 0
    assert "nuts" in chat.handle_tool_call("recall_memory", {"query": "allergic nuts"})
    everything = str(home.query("SELECT m, s FROM memvec.memory_entries m, memvec.memory_agents s"))
    assert "15550100" not in everything


def test_start_reads_no_files_when_told_so(home: HomeUnderTest) -> None:
    home.configure(bulk_sync_on_init="false")
    home.write_file("MEMORY.md", "by hand")
    provider = home.provider()
    settle(provider)
    assert home.entries() == []
    home.write_file("MEMORY.md", "by hand", "later")
    provider.on_turn_start(1, ASKED)
    settle(provider)
    assert len(home.entries()) == 2


def test_secrets_are_masked_alike_in_notes_files_and_patterns(home: HomeUnderTest) -> None:
    home.write_file("MEMORY.md", "db: postgresql://a:hunter2@db/x", "password = other1")
    provider = home.provider()
    settle(provider)
    provider.on_memory_write("add", "memory", "api_key: abcdef123456 of the shop")
    home.write_file("MEMORY.md", "db: postgresql://a:hunter2@db/x", "api_key: abcdef123456 of the shop")
    provider.on_memory_write("remove", "memory", "", {"old_text": "password = other1"})
    provider.sync_turn(f"the password is hunter2, {ASKED}", ANSWERED, session_id="s1")
    settle(provider)
    assert [text for _theme, _target, text in home.entries()] == [
        "db: postgresql://a:[redacted]@db/x",
        "api_key: [redacted] of the shop",
    ]
    stored = str(
        home.query(
            "SELECT c, e, h FROM memvec.conversations c, memvec.memory_entries e, memvec.memory_history h"
        )
    )
    kept = b"".join(path.read_bytes() for path in (home.path / "hermes-pgsql").iterdir() if path.is_file())
    for secret in ("hunter2", "abcdef123456", "other1"):
        assert secret not in stored
        assert secret.encode() not in kept
    assert home.metadata()[0]["redacted"] == 1
    home.configure(redact_secrets=False)
    open_book = home.provider("s2")
    open_book.sync_turn(f"the password is hunter2, {ASKED}", "ok", session_id="s2")
    settle(open_book)
    assert "hunter2" in str(home.turns())


# Homes ------------------------------------------------------------


def copied(home: HomeUnderTest, name: str) -> HomeUnderTest:
    path = home.path.with_name(name)
    shutil.copytree(home.path, path)
    return HomeUnderTest(path, home.dsn, home.admin_dsn, home.settings)


def test_a_copied_home_is_another_source_and_a_moved_one_the_same(home: HomeUnderTest) -> None:
    first = source_of(home.path)
    clone = copied(home, "clone")
    assert source_of(clone.path) != first
    shutil.rmtree(clone.path)
    moved = home.path.rename(home.path.with_name("moved"))
    assert source_of(moved) == first
    # Restored to the place where it was, on the same machine.
    shutil.copytree(moved, moved.with_name("backup"))
    shutil.rmtree(moved)
    moved.with_name("backup").rename(moved)
    from hermes_pgsql.host import home as module

    module._sources.clear()
    assert source_of(moved) == first


def test_a_moved_home_keeps_its_id_where_nothing_can_be_written(home: HomeUnderTest) -> None:
    first = source_of(home.path)
    moved = home.path.rename(home.path.with_name("moved"))
    program = """
import resource, sys
from pathlib import Path
from hermes_pgsql.host.home import source_of
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
print(source_of(Path(sys.argv[1])), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program, str(moved)], capture_output=True, text=True)
    assert done.stderr.strip() == str(first)
    assert source_of(moved) == first


def test_two_homes_of_one_theme_do_not_take_each_others_notes(home: HomeUnderTest) -> None:
    home.write_file("MEMORY.md", "shared note", "of the first home")
    settle(home.provider())
    second = copied(home, "second")
    second.write_file("MEMORY.md", "shared note", "of the second home")
    settle(second.provider())
    texts = [text for _theme, _target, text in home.entries()]
    assert sorted(texts) == ["of the first home", "of the second home", "shared note"]
    second.write_file("MEMORY.md", "only this")
    provider = second.provider("s2")
    settle(provider)
    texts = [text for _theme, _target, text in home.entries()]
    assert sorted(texts) == ["of the first home", "only this", "shared note"]


# Outages, exits and numbers (case R25) ------------------------------------------------------------


def test_what_is_written_while_the_database_is_away_arrives(home: HomeUnderTest, database: Any) -> None:
    before = home.provider("s1")
    before.on_memory_write("add", "memory", "row before the outage")
    settle(before)
    with outage(database.server.admin_dsn, database.name):
        during = home.provider("s2")
        for number in range(20):
            during.on_memory_write("add", "memory", f"written while down {number}")
        error = json.loads(during.handle_tool_call("recall_memory", {"query": "row"}))
        assert error["results"] == []
        assert "does not mean that nothing is stored" in error["error"]
        assert "postgresql" not in error["error"]
        assert database.name not in error["error"]
        began = time.monotonic()
        assert during.prefetch("which row was there before the outage?") == ""
        assert time.monotonic() - began < 7.5
        assert during.system_prompt_block() == before.system_prompt_block()
        during.shutdown()
    wait_for(lambda: len(home.entries()) == 21)
    during.on_memory_write("add", "memory", "written after recovery")
    settle(during)
    assert ("marketing", "memory", "written after recovery") in home.entries()
    assert "row before" in during.handle_tool_call("recall_memory", {"query": "row before the outage"})


def test_the_first_write_and_question_after_a_restart_work(home: HomeUnderTest, database: Any) -> None:
    provider = home.provider("s1")
    provider.on_memory_write("add", "memory", "row before the outage")
    settle(provider)
    assert "before" in provider.handle_tool_call("recall_memory", {"query": "row"})
    with database.admin() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    provider.on_memory_write("add", "memory", "first write after the restart")
    assert "before" in provider.handle_tool_call("recall_memory", {"query": "row"})
    settle(provider)
    assert len(home.entries()) == 2


def test_a_schema_that_is_missing_is_named_and_nothing_is_lost(
    home: HomeUnderTest, empty_database: Any, caplog: pytest.LogCaptureFixture
) -> None:
    home.configure(dsn=empty_database.runtime_dsn)
    provider = home.provider("s1")
    provider.on_memory_write("add", "memory", "waits for the schema")
    answer = json.loads(provider.handle_tool_call("recall_memory", {"query": "schema"}))
    assert answer["results"] == []
    assert "does not mean" in answer["error"]
    wait_for(lambda: "migrate" in caplog.text)
    assert provider._link is not None
    assert provider._link.outbox.depth() >= 1
    schema = provider.get_status_config()["schema"]
    assert schema.startswith("not ready")
    assert "hermes-pgsql migrate" in schema


def test_a_database_host_that_swallows_everything_stops_nobody(
    home: HomeUnderTest, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as silent:  # takes connections and never says a word
        silent.bind(("127.0.0.1", 0))
        silent.listen(16)
        port = silent.getsockname()[1]
        home.configure(dsn=f"postgresql://hermes:s3cret@127.0.0.1:{port}/fleet")
        began = time.monotonic()
        provider = home.provider("s1")
        assert time.monotonic() - began < 10
        provider.on_memory_write("add", "memory", "kept until somebody answers")
        began = time.monotonic()
        assert provider.prefetch("what was kept until somebody answers?") == ""
        assert time.monotonic() - began < 7.5
        answer = json.loads(provider.handle_tool_call("recall_memory", {"query": "kept"}))
        assert "does not mean that nothing is stored" in answer["error"]
        assert "s3cret" not in answer["error"]
        assert provider.get_status_config()["schema"].startswith("not ready")
        assert provider._link is not None
        assert provider._link.outbox.depth() >= 1
        wait_for(lambda: "run: hermes memory status" in caplog.text)
        assert "s3cret" not in caplog.text


def test_the_status_names_the_version_of_the_schema(home: HomeUnderTest) -> None:
    version = home.query("SELECT max(version) FROM memvec.schema_migrations")[0][0]
    assert home.provider().get_status_config()["schema"] == f"ready, version {version}"


PROGRAM = """
import os, signal, sys, time
from hermes_pgsql.provider import PgvectorProvider
home, how, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
provider = PgvectorProvider()
provider.initialize("x", hermes_home=home, platform="cli", gateway_session_key="marketing")
for number in range(count):
    provider.on_memory_write("add", "memory", f"queued fact {number}")
provider.sync_turn(
    "the very last user message before the exit",
    "the very last answer before the exit, promised",
    session_id="x",
)
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if how == "exit":
    os._exit(0)
if how == "shutdown":
    provider.shutdown(); provider.shutdown()
    provider.on_memory_write("add", "memory", "after the shutdown")
print("end")
"""


def leave(home: HomeUnderTest, how: str, count: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(home.path), how, str(count)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.mark.parametrize(
    ("how", "delay", "notes"),
    [("kill", 0.0, 50), ("exit", 0.0, 50), ("return", 5.0, 50), ("shutdown", 1.0, 51)],
)
def test_no_exit_loses_or_doubles_anything(
    home: HomeUnderTest, model: ModelServer, how: str, delay: float, notes: int
) -> None:
    model.embed_delay = delay
    done = leave(home, how, 50)
    assert done.returncode == (-signal.SIGKILL if how == "kill" else 0), done.stderr
    model.embed_delay = 0.0
    settle(home.provider("next"))
    assert len(home.entries()) == notes
    assert len(home.turns()) == 2
    embedded(home)


def test_a_forked_child_reads_and_writes_and_leaves_the_parent_alone(home: HomeUnderTest) -> None:
    provider = home.provider("s1")
    provider.on_memory_write("add", "memory", "written by the parent")
    settle(provider)
    assert "parent" in provider.handle_tool_call("recall_memory", {"query": "written"})
    child = os.fork()
    if child == 0:
        try:
            found = "parent" in provider.handle_tool_call("recall_memory", {"query": "written"})
            provider.on_memory_write("add", "memory", "written by the child")
            settle(provider)
        finally:
            os._exit(0 if found else 9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for _ in range(20):
        assert "parent" in provider.handle_tool_call("recall_memory", {"query": "written"})
    provider.on_memory_write("add", "memory", "written by the parent after the fork")
    settle(provider)
    assert len(home.entries()) == 3


def test_an_embedded_server_starts_behind_the_first_session(
    home: HomeUnderTest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hermes_pgsql import embedded

    root = tempfile.mkdtemp(prefix="hp")  # short: a socket's path is limited
    monkeypatch.setenv("HERMES_PGSQL_EMBEDDED_DIR", root)
    home.configure(dsn="embedded")
    try:
        provider = home.provider("s1")
        provider.on_memory_write("add", "memory", "written before there was a server")
        settle(provider, 180.0)
        assert "before there was" in provider.handle_tool_call("recall_memory", {"query": "server"})
    finally:
        embedded.down()
        shutil.rmtree(root, ignore_errors=True)


def test_many_providers_share_connections_and_threads(home: HomeUnderTest) -> None:
    first = home.provider("first")
    first.sync_turn(ASKED, ANSWERED, session_id="first")
    first.prefetch(ASKED)
    settle(first)
    threads = threading.active_count()
    providers = [home.provider(f"s{number}") for number in range(100)]
    for number, provider in enumerate(providers):
        for part in range(5):
            provider.on_memory_write("add", "memory", f"fact {part} of provider {number}")
        assert provider.prefetch("what do we know about the moon landing") == ""
    settle(providers[-1])
    assert len(home.entries()) == 500
    wait_for(lambda: threading.active_count() <= threads + 3)
    with psycopg.connect(home.admin_dsn) as connection:
        count = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = 'hermes'"
        ).fetchone()
    assert count is not None
    assert count[0] <= 4


# Tools ------------------------------------------------------------


@pytest.fixture
def told(home: HomeUnderTest) -> PgvectorProvider:
    provider = home.provider("s1")
    provider.on_memory_write("add", "memory", "The backup window is 02:00 UTC; use List<String>.")
    provider.on_memory_write("add", "user", "Ada asked about the backup.")
    provider.sync_turn(ASKED, ANSWERED, session_id="s1")
    sales = home.provider("s2", "sales")
    sales.on_memory_write("add", "memory", "The sales backup is on tape.")
    settle(provider)
    embedded(home)
    return provider


def ask(provider: PgvectorProvider, tool: str, /, **arguments: Any) -> dict[str, Any]:
    return json.loads(provider.handle_tool_call(tool, arguments))


def test_results_have_the_fields_of_their_kind(told: PgvectorProvider) -> None:
    note = ask(told, "recall_memory", query="backup window")["results"][0]
    assert set(note) == {"id", "agent_identity", "target", "ts", "score", "content", "rrf_score"}
    assert note["content"] == "The backup window is 02:00 UTC; use List<String>."
    assert 0 < note["score"] <= 1
    turn = ask(told, "recall_conversation", query="backup window")["results"][0]
    assert set(turn) == {"id", "agent_identity", "session_id", "role", "ts", "score", "content", "rrf_score"}


def test_the_tools_recall_with_the_half_life_of_the_configuration(
    home: HomeUnderTest, told: PgvectorProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hermes_pgsql.client import Memvec

    asked: list[object] = []
    for name in ("recall_memory", "recall_conversation"):
        monkeypatch.setattr(Memvec, name, lambda *_, **options: asked.append(options["half_life"]) or [])
    home.configure(half_life_days=30)
    for provider in (told, home.provider("s9")):
        ask(provider, "recall_memory", query="backup")
        ask(provider, "recall_conversation", query="backup")
    assert asked == [None, None, timedelta(days=30), timedelta(days=30)]


def test_scopes_targets_and_limits(told: PgvectorProvider) -> None:
    assert ask(told, "recall_memory", query="backup")["count"] == 2
    assert ask(told, "recall_memory", query="backup", target="user")["count"] == 1
    assert ask(told, "recall_memory", query="backup", scope="ALL")["count"] == 3
    assert (
        ask(told, "recall_memory", query="backup", scope="Sales")["results"][0]["agent_identity"] == "sales"
    )
    assert ask(told, "recall_memory", query="backup", limit=1)["count"] == 1
    for limit in ("abc", None, float("nan"), -3, 10**30, 10**400, [1]):
        assert 1 <= ask(told, "recall_memory", query="backup", limit=limit)["count"] <= 2
    assert ask(told, "recall_conversation", query="backup", scope="session")["count"] == 2
    other = PgvectorProvider()
    other.initialize("s9", hermes_home=str(told._home), gateway_session_key="marketing")
    assert ask(other, "recall_conversation", query="backup", scope="session")["count"] == 0
    assert ask(other, "recall_conversation", query="backup")["count"] == 2


@pytest.mark.parametrize(
    ("since", "until", "count"),
    [
        ("7d", None, 2),
        ("2 weeks ago", "now", 2),
        ("yesterday", "today", 2),
        (None, "7d", 0),
        ("2999-01-01", None, 0),
        ("2000-01-01", "2999-12-31", 2),
        (None, "2000-01-01T00:00:00+00:00", 0),
        ("", " ", 2),
    ],
)
def test_bounds_of_time(told: PgvectorProvider, since: str | None, until: str | None, count: int) -> None:
    for tool in ("recall_memory", "recall_conversation"):
        assert ask(told, tool, query="backup", since=since, until=until)["count"] == count


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("recall_memory", {}, "Missing required arg: query"),
        ("recall_memory", {"query": "  "}, "Missing required arg: query"),
        ("recall_memory", {"query": ["x"]}, "Missing required arg: query"),
        ("recall_memory", {"query": "x", "target": "bogus"}, "Invalid target: 'bogus'"),
        ("recall_memory", {"query": "x", "scope": "session"}, "recall_conversation"),
        ("recall_memory", {"query": "x", "scope": "whatsapp-dm"}, "sink"),
        ("recall_conversation", {"query": "x", "scope": "external-group"}, "sink"),
        ("recall_conversation", {"query": "x", "since": "last tuesday"}, "Cannot read since 'last tuesday'"),
        ("recall_nothing", {"query": "x"}, "Unknown tool"),
    ],
)
def test_errors_are_sentences(home: HomeUnderTest, tool: str, arguments: dict[str, Any], says: str) -> None:
    answer = json.loads(home.provider().handle_tool_call(tool, arguments))
    assert says in answer["error"]
    assert answer["results"] == []
    assert "SELECT" not in answer["error"]
    assert "p_" not in answer["error"]


def test_search_by_meaning_only_sends_no_words_unless_the_endpoint_fails(
    home: HomeUnderTest, model: ModelServer
) -> None:
    home.configure(hybrid_search="false", embed_model="meaning")
    provider = home.provider()
    provider.on_memory_write("add", "memory", "The backup window is 02:00 UTC.")
    settle(provider)
    model.embed_status = 503
    provider = home.provider("s2")
    assert ask(provider, "recall_memory", query="backup window")["results"][0]["score"] is None
