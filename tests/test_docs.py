"""What README.md and docs/ tell people to type works: commands, SQL, settings and links.

Blocks are taken from the text as they are, so a new page is tested from its first day. In a block of shell
lines (`console` with prompts, or `sh`) each program must be known, each `hermes-pgsql` line must be one that
the command line accepts, and those that only need a database are run. Blocks of SQL are run by a superuser, a
page at a time, in a transaction that is rolled back. Examples of settings must be read without a warning.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conftest import ROOT, Database

from gen_configuration import document, fleet_settings
from hermes_pgsql import cli, pool
from hermes_pgsql.config import load_settings

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE
)
# The generated reference shows signatures in its blocks, which are no statements.
SIGNATURE = re.compile(r"^memvec\.\w+\(", re.MULTILINE)

# What lines in the pages may call besides ours; what they do is not ours to test.
PROGRAMS = {
    ".", "apt-get", "cat", "cd", "chmod", "createdb", "crontab", "curl", "docker", "dropdb", "echo", "export",
    "git", "journalctl", "kill", "ls", "mkdir", "mv", "pg_dump", "pg_dumpall", "pg_restore", "pip", "psql",
    "python", "python3", "rm", "sed", "sh", "source", "sqlite3", "sudo", "systemctl", "tail", "tar",
    "time", "uv",
}  # fmt: skip
HOST_COMMANDS = {"backup", "chat", "config", "gateway", "memory", "plugins"}
# Commands that need a database and nothing else, and change nothing that another line would miss.
RUN = {"add", "search", "stats", "outbox", "index", "migrate", "completion"}
# Some statements cannot run in a transaction, or not while other databases of the test server need a role, or
# make a role that an example further up on the page has made already.
NOT_HERE = {"25001", "2BP01", "42710", "55006"}
MISSING_ROLE = re.compile(r'role "([^"]+)" does not exist|there is no role "([^"]+)"')


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    found: list[Block] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            if match["language"] in languages:
                lines = [line.removeprefix(match["indent"]) for line in match["text"].splitlines()]
                line = text.count("\n", 0, match.start()) + 2
                found.append(Block(str(page.relative_to(ROOT)), line, "\n".join(lines)))
    return found


def commands() -> list[tuple[str, list[str]]]:
    """Where each simple command of the shell blocks is, and its words. Lists and pipes are taken apart."""
    found: list[tuple[str, list[str]]] = []
    for block in blocks("console", "sh", "bash", "shell"):
        lines = block.text.replace("\\\n", " ").splitlines()
        if any(line.startswith("$ ") for line in lines):
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        for line in lines:
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words: list[str] = []
            for token in [*lexer, ";"]:
                if token in {";", "|", "&&", "||", "&", "(", ")"}:
                    if words:
                        found.append((f"{block}: {line.strip()}", without_surroundings(words)))
                    words = []
                else:
                    words.append(token)
    return [(where, words) for where, words in found if words]


def without_surroundings(words: list[str]) -> list[str]:
    """A command without variables before it and redirections behind it."""
    while words and re.match(r"^\w+=", words[0]):
        words = words[1:]
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif set(word) <= set("<>&") and word:
            skip = True
            if kept and kept[-1].isdigit():
                kept.pop()
        else:
            kept.append(word)
    return kept


COMMANDS = commands()
OURS = [(where, words[1:]) for where, words in COMMANDS if words[0] == "hermes-pgsql"]


def test_there_is_something_to_test() -> None:
    assert len(OURS) >= 10
    assert len(blocks("sql")) >= 5
    assert len(blocks("yaml")) >= 2


def test_every_program_is_known() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    wrong: list[str] = []
    for where, words in COMMANDS:
        program, rest = words[0], words[1:]
        if program == "hermes-pgsql":
            continue
        if program == "hermes":
            fine = bool(rest) and rest[0] in HOST_COMMANDS
        elif program == "make":
            fine = all(word in targets for word in rest if "=" not in word)
        elif program in {"sh", "bash"}:
            fine = bool(rest) and (ROOT / rest[0]).is_file()
        else:
            fine = program in PROGRAMS
        if not fine:
            wrong.append(where)
    assert wrong == []


def usable(word: str, database: Database) -> str:
    """The word with a database of the test in place of the page's."""
    if re.match(r"^postgres(ql)?://", word) or re.fullmatch(r"\$\{?[A-Z_]+\}?", word):
        return database.admin_dsn
    return word


def test_the_command_line_accepts_every_line(database: Database) -> None:
    import typer
    import typer.main

    from hermes_pgsql.cli.app import app

    root: Any = typer.main.get_command(app)
    # The parser behind typer, which newer versions of it carry inside.
    click = importlib.import_module(type(root).__mro__[1].__module__.removesuffix(".core"))
    wrong: list[str] = []
    for where, given in OURS:
        words = [usable(word, database) for word in given]
        if not words or words[0].startswith("-"):
            continue
        try:
            command, context = root, click.Context(root, info_name="hermes-pgsql")
            while hasattr(command, "resolve_command"):
                name, command, words = command.resolve_command(context, words)
                context = command.make_context(name, list(words), parent=context)
                words = (
                    [*context._protected_args, *context.args]
                    if hasattr(command, "resolve_command")
                    else words
                )
        except typer.Exit:
            pass  # --help and the like
        except click.exceptions.ClickException as error:
            wrong.append(f"{where}: {error.format_message()}")
    assert wrong == []


@pytest.fixture
def home(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in [name for name in os.environ if name.startswith("HERMES_PGSQL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    monkeypatch.setenv("HERMES_PGSQL_DSN", database.runtime_dsn)
    monkeypatch.setenv("HERMES_PGSQL_ADMIN_DSN", database.admin_dsn)
    yield tmp_path
    pool.close_all()


def test_lines_that_need_a_database_only_do_their_work(
    database: Database, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong: list[str] = []
    ran = 0
    seen: set[tuple[str, ...]] = set()
    for where, given in OURS:
        words = tuple(usable(word, database) for word in given)
        if not words or words[0] not in RUN or words in seen:
            continue
        seen.add(words)
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        ran += 1
        if ended.value.code not in {None, 0}:
            wrong.append(f"{where}: exit code {ended.value.code}: {capsys.readouterr().err}")
    assert wrong == []
    assert ran >= 5


@pytest.mark.parametrize("page", sorted({block.page for block in blocks("sql")}))
def test_every_statement_runs(database: Database, page: str) -> None:
    wrong: list[str] = []
    with psycopg.connect(database.admin_dsn) as connection:
        connection.execute("SELECT")  # begins the transaction that holds all the following ones
        for block in blocks("sql"):
            if block.page != page or SIGNATURE.match(block.text):
                continue
            tried = ((each.strip(), attempt(connection, each)) for each in statements(block.text))
            wrong += [f"{block}: {each}: {problem}" for each, problem in tried if problem]
        connection.rollback()
    assert wrong == []


def statements(text: str) -> list[str]:
    """The statements of a block; semicolons in quotes and comments separate nothing."""
    found = [""]
    for match in re.finditer(
        r"--[^\n]*|\$(\w*)\$.*?\$\1\$|'(?:[^']|'')*'|;|[^;'$-]+|.", text, flags=re.DOTALL
    ):
        if match[0] == ";":
            found.append("")
        elif not match[0].startswith("--"):
            found[-1] += match[0]
    return [statement for statement in found if statement.strip() and not statement.strip().startswith("\\")]


def attempt(connection: psycopg.Connection, statement: str) -> str | None:
    """Why the statement fails, if it does. Roles that a page takes for granted are made on the way."""
    for _role in range(10):
        try:
            with connection.transaction():
                connection.execute(statement.encode())
        except psycopg.Error as error:
            missing = MISSING_ROLE.search(str(error))
            if missing is None:
                return None if error.sqlstate in NOT_HERE else str(error).strip()
            with connection.transaction():
                connection.execute(
                    f'CREATE ROLE "{missing[1] or missing[2]}" LOGIN IN ROLE memvec_runtime'.encode()
                )
        else:
            return None
    return "one role after the other is missing"


def test_examples_of_settings_are_read_without_a_warning(tmp_path: Path) -> None:
    wrong: list[str] = []
    for block in blocks("yaml"):
        if not re.search(r"^(memory|plugins):", block.text, flags=re.MULTILINE):
            continue
        (tmp_path / "config.yaml").write_text(block.text, encoding="utf-8")
        settings = load_settings(tmp_path, environ={})
        wrong += [f"{block}: {warning}" for warning in settings.warnings]
    assert wrong == []


def test_links_lead_somewhere() -> None:
    wrong: list[str] = []
    for page in PAGES:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _hash, anchor = target.partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            there = (page.parent / path).resolve() if path else page
            if not there.exists():
                wrong.append(f"{page.name}: {target}")
            elif anchor and anchor not in anchors(there):
                wrong.append(f"{page.name}: {target}: no such heading")
    assert wrong == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    if page.suffix != ".md":
        return set()
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    plain = [re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in plain}


def test_the_page_of_the_settings_is_what_the_settings_say(database: Database) -> None:
    written = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert written == document(fleet_settings(database.admin_dsn)), "run `make docs` and commit it"


def test_python_in_the_pages_is_python() -> None:
    for block in blocks("python"):
        compile(block.text, str(block), "exec")
        for module in re.findall(r"^from (hermes_pgsql[\w.]*) import", block.text, flags=re.MULTILINE):
            importlib.import_module(module)
