"""The commands, put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
import typer.main

from hermes_pgsql.cli import (
    add,
    backfill,
    binding,
    cleanup,
    completion,
    doctor,
    embedder,
    erase,
    export,
    history,
    importing,
    index,
    install,
    metrics,
    migrate,
    model,
    outbox,
    prune,
    reindex,
    remap,
    scan_pii,
    search,
    server,
    stats,
)

app = typer.Typer(
    name="hermes-pgsql",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from hermes_pgsql import __version__

        typer.echo(f"hermes-pgsql {__version__}")
        raise typer.Exit


@app.callback()
def _root(  # pyright: ignore[reportUnusedFunction]
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Memory for hermes-agent that lives in PostgreSQL."""


# The panels of --help, in the order in which a newcomer comes to need them.
START, USE, WATCH, MAINTAIN, GOVERN, MOVE = (
    "Set up",
    "Write and search",
    "See how it is",
    "Embeddings and indexes",
    "Themes, logins and what was deleted",
    "Move in and out",
)

app.command(rich_help_panel=START)(server.up)
app.command(rich_help_panel=START)(server.down)
app.command(rich_help_panel=START)(install.install)
app.command(rich_help_panel=START)(migrate.migrate)
app.command(rich_help_panel=START)(completion.completion)
app.command(rich_help_panel=USE)(add.add)
app.command(rich_help_panel=USE)(search.search)
app.command(rich_help_panel=WATCH)(stats.stats)
app.command(rich_help_panel=WATCH)(doctor.doctor)
app.command(rich_help_panel=WATCH)(outbox.outbox)
app.command(rich_help_panel=WATCH)(metrics.metrics)
app.command(name="scan-pii", rich_help_panel=WATCH)(scan_pii.scan_pii)
app.add_typer(importing.app, name="import", rich_help_panel=MOVE)
app.command(rich_help_panel=MOVE)(export.export)
app.add_typer(model.commands, rich_help_panel=MAINTAIN)
app.command(rich_help_panel=MAINTAIN)(backfill.backfill)
app.command(rich_help_panel=MAINTAIN)(embedder.embedder)
app.command(rich_help_panel=MAINTAIN)(index.index)
app.command(rich_help_panel=MAINTAIN)(reindex.reindex)
app.command(rich_help_panel=GOVERN)(history.history)
app.command(rich_help_panel=GOVERN)(history.restore)
app.command(rich_help_panel=GOVERN)(prune.prune)
app.command(rich_help_panel=GOVERN)(cleanup.cleanup)
app.command(rich_help_panel=GOVERN)(remap.remap)
app.command(rich_help_panel=GOVERN)(erase.erase)
app.command(name="bind-role", rich_help_panel=GOVERN)(binding.bind_role)
app.command(name="unbind-role", rich_help_panel=GOVERN)(binding.unbind_role)


def needs_administrator(words: Sequence[str]) -> bool:
    """Whether the command that a command line calls is one for administrators: it has --admin-dsn."""
    command = typer.main.get_command(app)
    for word in words:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        command = inner
    return any("--admin-dsn" in parameter.opts for parameter in command.params)
