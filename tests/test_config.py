"""Settings: a value is used if it can be, else there is a default and one sentence, never an exception."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from hermes_pgsql.config import (
    Settings,
    allowed_values,
    hermes_home,
    load_command_line_settings,
    load_settings,
    report_warnings,
    settings_from_mapping,
)
from hermes_pgsql.errors import ConfigError
from hermes_pgsql.opening import wants_embedded

NO_SETTINGS = {"warnings", "database_doubt"}
HOSTILE: list[Any] = [
    *(None, "", " ", "\u3000", "abc", "nan", "-inf", "1e400", True, False, -1, 0, 0.5, b"bytes", object()),
    *(10**400, -(10**400), float("nan"), float("inf"), [], [None], [[]], {}, {"a": {"b": 1}}, (1, 2)),
    *("\0", "\ud800", "x" * 100_000, "://a:" * 20_000, "password='" * 10_000),
    *("http://[", "http://host:99999999", "[1", "{", "a=b=c,=", '{"a": [1]}'),
]


def write_config(home: Path, text: str) -> Path:
    (home / "config.yaml").write_text(text, encoding="utf-8")
    return home


def test_without_a_file_everything_is_default(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, {})
    assert settings == Settings()
    assert settings.warnings == ()
    assert (settings.dsn, settings.embed_url, settings.min_similarity) == (None, None, None)
    assert (settings.prefetch_limit, settings.prefetch_budget, settings.embed_timeout) == (5, 4.0, 10.0)
    assert (settings.embed_write_timeout, settings.embed_write_retries, settings.embed_write_backoff) == (
        30,
        2,
        0.1,
    )
    assert settings.write_contexts == ("primary", "cron")
    assert settings.redact_secrets
    assert settings.governance() == {}


def test_text_from_a_form_means_what_it_says() -> None:
    settings = settings_from_mapping(
        {
            "hybrid_search": "false",
            "sync_turns": "False",
            "embed_on_write": "0",
            "bulk_sync_on_init": " OFF ",
            "redact_secrets": "yes",
            "allowed_themes": "sales,marketing",
            "prefetch_limit": "7",
            "ttl_days": "30",
            "min_similarity": "0.25",
        }
    )
    off = ["hybrid_search", "sync_turns", "embed_on_write", "bulk_sync_on_init"]
    assert [getattr(settings, key) for key in off] == [False] * 4
    assert settings.redact_secrets
    assert settings.allowed_themes == ("sales", "marketing")
    assert (settings.prefetch_limit, settings.ttl_days, settings.min_similarity) == (7, 30, 0.25)
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("key", "given", "used"),
    [
        ("prefetch_budget", "99", 7.0),
        ("prefetch_budget", 0, 0.1),
        ("prefetch_limit", "-3", 1),
        ("prefetch_limit", 10**20, 50),
        ("min_similarity", "2", 1.0),
        ("min_similarity", -0.5, 0.0),
        ("write_queue_maxsize", 0, 1),
        ("turn_min_chars", -1, 0),
        ("embed_write_retries", 21, 20),
    ],
)
def test_out_of_range_becomes_the_nearest_allowed_value(key: str, given: object, used: float) -> None:
    settings = settings_from_mapping({key: given})
    assert getattr(settings, key) == used
    assert len(settings.warnings) == 1
    assert f"pgvector.{key}: {given!r} is not allowed ({allowed_values(key)} is)" in settings.warnings[0]


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("write_queue_maxsize", "abc"),
        ("turn_min_chars", ""),
        ("turn_min_chars", "1.5"),
        ("prefetch_limit", True),
        ("prefetch_budget", "nan"),
        ("embed_timeout", float("inf")),
        ("embed_url", " "),
        ("embed_url", "ftp://models.example"),
        ("embed_url", "http://"),
        ("embed_dim", 0),
        ("embed_dim", 10**9),
        ("hybrid_search", "maybe"),
        ("hybrid_search", 2),
        ("bench_mode", "drop"),
        ("scope_default", "session"),
        ("allowed_themes", {"sales": 1}),
        ("allowed_themes", '["sales"'),
        ("allowed_themes", [["sales"]]),
        ("identity_aliases", ["ops=operations"]),
        ("identity_aliases", "ops=operations,marketing"),
        ("identity_aliases", {"ops": {"to": "operations"}}),
        ("write_contexts", " , "),
        ("dsn", ["host=x"]),
        ("embed_query_prefix", "  "),
    ],
)
def test_a_bad_value_becomes_the_default_and_one_warning(key: str, given: object) -> None:
    settings = settings_from_mapping({key: given})
    assert getattr(settings, key) == getattr(Settings(), key)
    assert len(settings.warnings) == 1
    assert settings.warnings[0].startswith(f"Setting pgvector.{key}: ")
    assert "the default" in settings.warnings[0]


def test_an_emptied_field_that_has_no_default_is_simply_unset() -> None:
    settings = settings_from_mapping({"embed_url": "", "dsn": "", "embed_dim": "", "embed_query_prefix": ""})
    assert settings == Settings()
    assert settings.warnings == ()


@pytest.mark.parametrize("key", [key for key in Settings.model_fields if key not in NO_SETTINGS])
def test_no_value_of_any_key_raises(key: str) -> None:
    for value in HOSTILE:
        settings = settings_from_mapping({key: value})
        assert all(len(warning) < 400 for warning in settings.warnings)
        assert len(settings.warnings) <= 1


def test_unknown_keys_are_named_once() -> None:
    settings = settings_from_mapping({"prefetch_limmit": 3, "warnings": ["x"], "prefetch_limit": 3})
    assert settings.prefetch_limit == 3
    assert settings.warnings == ("Unknown settings of pgvector are ignored: prefetch_limmit, warnings.",)


@pytest.mark.parametrize(
    ("given", "themes"),
    [
        ("sales, marketing,,sales", ("sales", "marketing")),
        (["sales", " marketing ", ""], ("sales", "marketing")),
        ('["sales", "a,b"]', ("sales", "a,b")),
        ({"sales"}, ("sales",)),
        (2024, ("2024",)),
        ([], None),
        (",", None),
    ],
)
def test_allowed_themes(given: object, themes: tuple[str, ...] | None) -> None:
    settings = settings_from_mapping({"allowed_themes": given})
    assert settings.allowed_themes == themes
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("given", "aliases"),
    [
        ("ops=operations, mkt=marketing", {"ops": "operations", "mkt": "marketing"}),
        ("a=b=c", {"a": "b=c"}),
        ({"ops": "operations", 7: 8, "": "x"}, {"ops": "operations", "7": "8"}),
        ({"ops": None}, {"ops": ""}),
        ('{"ops": "operations"}', {"ops": "operations"}),
        ({}, {}),
    ],
)
def test_identity_aliases(given: object, aliases: dict[str, str]) -> None:
    settings = settings_from_mapping({"identity_aliases": given})
    assert settings.identity_aliases == aliases
    assert settings.warnings == ()


def test_governance_holds_what_is_set_and_is_json() -> None:
    settings = settings_from_mapping(
        {"allowed_themes": "a,b", "identity_aliases": "ops=a", "bench_mode": "Reject", "dsn": "host=x"}
    )
    expected = {"aliases": {"ops": "a"}, "allowed_themes": ["a", "b"], "bench_mode": "reject"}
    assert json.loads(json.dumps(settings.governance())) == expected


def test_the_width_is_known_for_the_default_model_only() -> None:
    assert settings_from_mapping({"embed_url": "http://x"}).embed_dim == 768
    assert settings_from_mapping({"embed_url": "http://x", "embed_model": "bge-m3"}).embed_dim is None
    assert settings_from_mapping({"embed_url": "http://x", "embed_dim": "512"}).embed_dim == 512
    assert settings_from_mapping({}).embed_dim is None


def test_an_address_without_scheme_is_http() -> None:
    assert settings_from_mapping({"embed_url": "localhost:11434/"}).embed_url == "http://localhost:11434"


def test_prefixes_keep_their_blanks_and_none_is_nothing() -> None:
    settings = settings_from_mapping({"embed_query_prefix": "query: ", "embed_document_prefix": "None"})
    assert (settings.embed_query_prefix, settings.embed_document_prefix) == ("query: ", "")


def test_memory_block_first_then_plugins_key_by_key(tmp_path: Path) -> None:
    write_config(
        tmp_path,
        "memory:\n  provider: pgvector\n  pgvector: {prefetch_limit: 9, dsn: null}\n"
        "plugins:\n  pgvector: {prefetch_limit: 3, turn_min_chars: 11, dsn: host=old}\n",
    )
    settings = load_settings(tmp_path, {})
    assert (settings.prefetch_limit, settings.turn_min_chars, settings.dsn) == (9, 11, "host=old")


def test_a_byte_order_mark_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"\xef\xbb\xbfmemory:\n  pgvector:\n    prefetch_limit: 9\n")
    assert load_settings(tmp_path, {}).prefetch_limit == 9


@pytest.mark.parametrize(
    "content",
    [
        b"memory: [unclosed",
        b"memory:\n\tpgvector: {dsn: 'password=s3cret'}\n",
        b"\xff\xfe\x00broken",
        b"memory: {pgvector: [1, 2]}",
        b"memory: {pgvector: text}",
        b"? [a]\n: !!python/object:os.system x",
        b"[" * 20_000,
    ],
)
def test_an_unreadable_file_means_defaults_and_one_warning(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.yaml").write_bytes(content)
    settings = load_settings(tmp_path, {})
    assert settings == Settings(warnings=settings.warnings, database_doubt=settings.warnings[0])
    assert len(settings.warnings) == 1
    assert "s3cret" not in settings.warnings[0]


@pytest.mark.parametrize(
    "content", [b"", b"just text", b"- a\n- b\n", b"memory:\nplugins:\n", b"memory: 5\nplugins: x\n"]
)
def test_a_file_without_our_block_is_no_reason_to_complain(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.yaml").write_bytes(content)
    assert load_settings(tmp_path, {}) == Settings()


def test_a_folder_in_the_place_of_the_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").mkdir()
    assert "cannot be read" in load_settings(tmp_path, {}).warnings[0]


def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    settings = load_settings(tmp_path, {})
    assert "is a pipe" in settings.warnings[0]


def test_a_key_in_the_place_of_its_variables_name_is_refused_and_not_shown() -> None:
    settings = settings_from_mapping({"embed_api_key_env": "sk-123-secret"})
    assert settings.embed_api_key_env is None
    (warning,) = settings.warnings
    assert "not the key itself" in warning
    assert "secret" not in warning
    assert settings_from_mapping({"embed_api_key_env": " MY_KEY2 "}).embed_api_key_env == "MY_KEY2"


def test_the_environment_serves_the_provider_where_the_file_is_silent(tmp_path: Path) -> None:
    environ = {
        "HERMES_PGSQL_DSN": "host=env",
        "HERMES_PGSQL_ADMIN_DSN": "host=admin",
        "HERMES_PGSQL_EMBED_DIM": "5",
    }
    write_config(tmp_path, "memory: {pgvector: {dsn: host=file}}")
    settings = load_settings(tmp_path, environ)
    assert (settings.dsn, settings.admin_dsn, settings.embed_dim) == ("host=file", "host=admin", None)


def test_on_the_command_line_options_beat_the_environment_and_that_beats_the_file(tmp_path: Path) -> None:
    environ = {
        "HERMES_PGSQL_DSN": "host=env",
        "HERMES_PGSQL_EMBED_URL": "http://env",
        "HERMES_PGSQL_EMBED_MODEL": "model-env",
        "HERMES_PGSQL_EMBED_DIM": " ",
    }
    write_config(tmp_path, "memory: {pgvector: {dsn: host=file, embed_model: model-file, embed_dim: 7}}")
    settings = load_command_line_settings(tmp_path, environ)
    assert (settings.dsn, settings.embed_url, settings.embed_model) == ("host=env", "http://env", "model-env")
    assert settings.embed_dim == 7
    options = {"dsn": "host=option", "admin_dsn": None}
    assert load_command_line_settings(tmp_path, environ, options).dsn == "host=option"


def test_the_home_is_where_the_host_has_it(tmp_path: Path) -> None:
    assert hermes_home({"HERMES_HOME": str(tmp_path)}) == tmp_path
    assert hermes_home({}) == Path.home() / ".hermes"
    write_config(tmp_path, "memory: {pgvector: {prefetch_limit: 9}}")
    assert load_settings(None, {"HERMES_HOME": str(tmp_path)}).prefetch_limit == 9


def test_a_home_of_nobody_is_no_reason_to_fail() -> None:
    assert hermes_home({"HERMES_HOME": "~no-such-user/x"}) == Path("~no-such-user/x")


def test_no_password_in_repr_or_warnings() -> None:
    secret = "s3cret"
    settings = settings_from_mapping(
        {
            "dsn": f"postgresql://u:{secret}@h/db",
            "admin_dsn": {"password": secret},
            "embed_url": f"http://u:{secret}@h",
            "prefetch_limit": f"http://u:{secret}@h",
        }
    )
    shown = f"{settings!r} {settings} {settings.warnings}"
    assert secret not in shown
    assert "postgresql://u:****@h/db" in shown
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"dsn": [secret]})
    assert secret not in str(caught.value)


def test_warnings_are_logged_once_per_process(caplog: pytest.LogCaptureFixture) -> None:
    settings = settings_from_mapping({"prefetch_limit": "once-per-process"})
    with caplog.at_level(logging.WARNING):
        report_warnings(settings)
        report_warnings(settings_from_mapping({"prefetch_limit": "once-per-process"}))
    assert [record.getMessage() for record in caplog.records] == list(settings.warnings)


def test_every_setting_has_a_description() -> None:
    for key, field in Settings.model_fields.items():
        assert key in NO_SETTINGS or field.description


def test_importing_the_settings_loads_neither_driver_nor_yaml() -> None:
    heavy = "('psycopg', 'yaml', 'httpx', 'numpy')"
    code = f"import sys, hermes_pgsql.config; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("text", ["memory: [", "memory: {pgvector: {dsn: [1]}}", "memory: {pgvector: 5}"])
def test_a_broken_file_never_means_the_embedded_server(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    settings = load_settings(tmp_path, {})
    with pytest.raises(ConfigError, match="not known"):
        wants_embedded(settings)
    named = load_command_line_settings(tmp_path, {"HERMES_PGSQL_DSN": "postgresql://db.example.com/fleet"})
    assert not wants_embedded(named)


#: Every key of hermes-memory-pgvector 1.0 as its users write it, and what it means here.
OLDER_BLOCK = """
plugins:
  pgvector:
    dsn: dbname=hermes_memory user=hermes host=/var/run/postgresql connect_timeout=5
    embed_url: http://localhost:11434
    embed_model: nomic-embed-text
    embed_dim: "768"
    embed_api_key_env: EMBED_KEY
    embed_protocol: OpenAI
    prefetch_limit: 7
    min_similarity: 0.30
    embed_on_write: "yes"
    scope_default: current
    hybrid_search: "false"
    write_queue_maxsize: 256
    bulk_sync_on_init: on
    sync_turns: "0"
    turn_min_chars: 40
    allowed_themes: sales, marketing
    identity_aliases: agent-hermes=hermes,mkt=marketing
    bench_mode: reject
    conversation_embed_policy: substantive_only
    ttl_days: 90
    embed_timeout: 5.0
    embed_write_timeout: 30
    embed_write_retries: 2
    embed_write_backoff: 0.1
    prefetch_budget: 5.0
    write_contexts: Primary, cron
    shutdown_drain_timeout: 10
"""


def test_the_block_of_the_older_plugin_works_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(OLDER_BLOCK, encoding="utf-8")
    settings = load_settings(tmp_path, {})
    assert settings.warnings == ()
    meant = {
        "dsn": "dbname=hermes_memory user=hermes host=/var/run/postgresql connect_timeout=5",
        "embed_url": "http://localhost:11434",
        "embed_model": "nomic-embed-text",
        "embed_dim": 768,
        "embed_api_key_env": "EMBED_KEY",
        "embed_protocol": "openai",
        "prefetch_limit": 7,
        "min_similarity": 0.3,
        "embed_on_write": True,
        "scope_default": "current",
        "hybrid_search": False,
        "write_queue_maxsize": 256,
        "bulk_sync_on_init": True,
        "sync_turns": False,
        "turn_min_chars": 40,
        "allowed_themes": ("sales", "marketing"),
        "identity_aliases": {"agent-hermes": "hermes", "mkt": "marketing"},
        "bench_mode": "reject",
        "conversation_embed_policy": "substantive_only",
        "ttl_days": 90,
        "embed_timeout": 5.0,
        "embed_write_timeout": 30.0,
        "embed_write_retries": 2,
        "embed_write_backoff": 0.1,
        "prefetch_budget": 5.0,
        "write_contexts": ("primary", "cron"),
        "shutdown_drain_timeout": 10.0,
    }
    assert {key: getattr(settings, key) for key in meant} == meant


def test_odd_values_of_the_older_plugin_are_mended_and_named(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        'plugins: {pgvector: {write_queue_maxsize: abc, prefetch_budget: "99", prefetch_limit: "-3",'
        ' min_similarity: "2", turn_min_chars: "", embed_url: " ", sync_turns: "False"}}',
        encoding="utf-8",
    )
    settings = load_settings(tmp_path, {})
    assert (settings.prefetch_budget, settings.prefetch_limit, settings.min_similarity) == (7, 1, 1)
    assert (settings.write_queue_maxsize, settings.turn_min_chars, settings.embed_url) == (256, 40, None)
    assert settings.sync_turns is False
    named = " ".join(settings.warnings)
    for key in (
        "write_queue_maxsize",
        "prefetch_budget",
        "prefetch_limit",
        "min_similarity",
        "turn_min_chars",
    ):
        assert named.count(f"pgvector.{key}:") == 1
