"""``completion``: let a shell complete our commands and options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import typer

from hermes_pgsql.cli.output import say

PROGRAM: Final = "hermes-pgsql"
#: Set by the completion script when a shell asks for words.
VARIABLE: Final = "_HERMES_PGSQL_COMPLETE"


class Shell(StrEnum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"
    powershell = "powershell"


def completion(
    shell: Annotated[Shell, typer.Argument(show_default=False, help="Which shell.")],
    install: Annotated[
        bool, typer.Option("--install", help="Put it where the shell looks, instead of printing it.")
    ] = False,
) -> None:
    """Print the script by which a shell completes commands and options.

    \b
    Examples:
      hermes-pgsql completion bash --install
      hermes-pgsql completion fish > ~/.config/fish/completions/hermes-pgsql.fish
    """
    from typer.completion import (  # they have no public name
        get_completion_script,  # pyright: ignore[reportPrivateImportUsage]
    )
    from typer.completion import (
        install as install_script,  # pyright: ignore[reportPrivateImportUsage]
    )

    if install:
        where = install_script(shell=str(shell), prog_name=PROGRAM, complete_var=VARIABLE)[1]
        say(f"Wrote {where}; it counts from the next shell on.")
        return
    say(get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=str(shell)))
