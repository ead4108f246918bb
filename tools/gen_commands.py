"""Write docs/commands.md from the command line itself; --check compares instead."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from hermes_pgsql.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "commands.md"
HEAD = """# Commands

<!-- Written by `make docs` from the help of the commands. Edit that, not this file. -->

`hermes-pgsql COMMAND --help` shows the same. Results go to standard output, notes and errors to standard
error; with `--json` standard output is one JSON document, after an error, also of usage, `{"error": …}` (with
`sqlstate` if it is the database's). Exit codes: 0 done, 1 error, 2 wrong usage, 3 partly done (`doctor`: only
warnings).
"""


def commands(group: Any, *path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if getattr(command, "commands", None):
            yield from commands(command, *path, name)
        else:
            yield " ".join([*path, name]), command


def section(name: str, command: Any) -> str:
    text, _, examples = (command.help or "").partition("\b\nExample")
    examples = [line.strip() for line in examples.splitlines() if line.startswith("  ")]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    usage = " ".join(["hermes-pgsql", name, "[OPTIONS]", *(argument(p) for p in arguments)])
    parts = [f"## {name}", "", "```text", usage, "```", "", re.sub(r"\s*\n(?!\n)\s*", " ", text.strip()), ""]
    if arguments or options:
        parts += ["| option | meaning |", "|---|---|"]
        parts += [f"| `{argument(p)}` | {cell(p.help)} |" for p in arguments]
        parts += [f"| {option(p)} | {cell(p.help)}{environment(p)} |" for p in options]
        parts.append("")
    if examples:
        parts += ["```text", *(f"$ {line}" for line in examples), "```", ""]
    return "\n".join(parts)


def argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name.upper()).strip("[]")
    shown = f"{name}..." if parameter.nargs == -1 else name
    return shown if parameter.required else f"[{shown}]"


def option(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag:
        return names
    kind = str(parameter.metavar or parameter.name.rpartition("_")[2].upper())
    return f"{names} {cell(kind)}"


def environment(parameter: Any) -> str:
    return f" Environment: `{parameter.envvar}`." if parameter.envvar else ""


def cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


def document() -> str:
    sections = [section(name, command) for name, command in sorted(commands(typer.main.get_command(app)))]
    return "\n".join([HEAD, *sections]).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write docs/commands.md from the command line.")
    parser.add_argument("--check", action="store_true", help="fail when the file is not up to date")
    if not parser.parse_args().check:
        TARGET.write_text(document(), encoding="utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == document():
        return 0
    print("docs/commands.md is not up to date; run: make docs")
    return 1


if __name__ == "__main__":
    sys.exit(main())
