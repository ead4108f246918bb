"""What all commands have in common: help with examples, completion, colours on terminals only."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer.main
from conftest import Database

from hermes_pgsql.cli.app import app

COMMAND = [sys.executable, "-m", "hermes_pgsql"]
ESCAPE = "\x1b["


def commands(group: Any = None, *path: str) -> Iterator[tuple[str, Any]]:
    """Every command with its full name, those of groups included."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        if getattr(command, "commands", None):
            yield from commands(command, *path, name)
        else:
            yield " ".join([*path, name]), command


ALL = dict(commands())


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HERMES_", "PG"))}
    return subprocess.run(
        [*COMMAND, *arguments], env=env | environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_help_with_an_example(name: str) -> None:
    text = ALL[name].help or ""
    assert re.search(r"^Examples?:$", text, re.MULTILINE), f"{name}: no line `Examples:` in its docstring"
    examples = re.findall(rf"^ {{2}}.*?(hermes-pgsql {name}\b.*)$", text, re.MULTILINE)
    assert examples, f"{name}: no example"
    for example in examples:
        # The options of an example exist.
        parameters = ALL[name].params
        known = {
            option for parameter in parameters for option in [*parameter.opts, *parameter.secondary_opts]
        }
        used = re.findall(r"(?<= )--[a-z][a-z-]*", re.split(r" [<|] ", example)[0])
        assert set(used) <= known | {"--help"}, example
    assert all(parameter.help for parameter in ALL[name].params), f"{name}: an option without help"


def test_help_is_grouped_and_names_every_command() -> None:
    shown = run("--help", COLUMNS="120").stdout
    for name in ALL:
        assert name.split()[0] in shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completion_prints_a_script(shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0, done.stderr
    assert "hermes-pgsql" in done.stdout
    assert "_HERMES_PGSQL_COMPLETE" in done.stdout


def test_a_shell_gets_the_commands_and_options_it_asks_for() -> None:
    asked = {"_HERMES_PGSQL_COMPLETE": "complete_bash"}
    assert run(**asked, COMP_WORDS="hermes-pgsql sea", COMP_CWORD="1").stdout.split() == ["search"]
    assert "--scope" in run(**asked, COMP_WORDS="hermes-pgsql search --sc", COMP_CWORD="2").stdout


def test_the_script_is_one_that_bash_takes() -> None:
    script = run("completion", "bash").stdout
    shown = subprocess.run(
        ["bash", "-c", f"{script}\ncomplete -p hermes-pgsql"], capture_output=True, text=True, check=False
    )
    assert "_hermes_pgsql_completion" in shown.stdout, shown.stderr


def test_completion_is_installed_where_the_shell_looks(tmp_path: Path) -> None:
    done = run("completion", "bash", "--install", HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "complete -o default" in (tmp_path / ".bash_completions" / "hermes-pgsql.sh").read_text()
    assert "hermes-pgsql.sh" in (tmp_path / ".bashrc").read_text()


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HERMES_", "NO_COLOR"))}
    env |= {"TERM": "xterm-256color", "COLUMNS": "120"} | environment
    with subprocess.Popen([*COMMAND, *arguments], stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        written = b""
        try:
            while chunk := os.read(ours, 4096):
                written += chunk
        except OSError:  # the other side is closed
            pass
        process.wait(60)
    os.close(ours)
    return written.decode()


def test_colours_only_on_terminals(database: Database) -> None:
    dsn = database.runtime_dsn
    assert ESCAPE not in run("stats", HERMES_PGSQL_DSN=dsn).stdout
    coloured = re.compile(r"\x1b\[[0-9;]*3[0-9]m")
    assert coloured.search(on_a_terminal("--help"))
    assert not coloured.search(on_a_terminal("--help", NO_COLOR="1"))


def test_roles_are_bound_and_unbound(database: Database) -> None:
    name, dsn = database.make_login("memvec_runtime")
    admin = {"HERMES_PGSQL_ADMIN_DSN": database.admin_dsn, "HERMES_PGSQL_DSN": dsn}

    def may_act_as(theme: str) -> bool:
        with psycopg.connect(dsn) as connection:
            try:
                connection.execute("SELECT * FROM memvec.hello(%s)", (theme,))
            except psycopg.Error:
                return False
            return True

    done = run("bind-role", name, "Sales", **admin)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{name} acts as sales and reads its own themes only.\n"
    assert may_act_as("sales")
    assert not may_act_as("ops")
    assert '"unbound": 1' in run("unbind-role", name, "--json", **admin).stdout
    assert may_act_as("ops")
    refused = run("bind-role", "nobody_here", "sales", **admin)
    assert refused.returncode == 1
    assert 'no role "nobody_here"' in refused.stderr
