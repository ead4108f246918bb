"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

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


app.command()(server.up)
app.command()(server.down)
app.command()(migrate.migrate)
app.command()(install.install)
app.command()(add.add)
app.command()(search.search)
app.command()(stats.stats)
app.command()(index.index)
app.command()(reindex.reindex)
app.command()(history.history)
app.command()(history.restore)
app.command(name="scan-pii")(scan_pii.scan_pii)
app.command()(outbox.outbox)
app.command()(prune.prune)
app.command()(cleanup.cleanup)
app.command()(remap.remap)
app.command()(erase.erase)
app.command(name="bind-role")(binding.bind_role)
app.command(name="unbind-role")(binding.unbind_role)
app.command()(completion.completion)
app.add_typer(importing.app, name="import")
app.command()(export.export)
app.add_typer(model.commands)
app.command()(backfill.backfill)
app.command()(embedder.embedder)
app.command()(doctor.doctor)
app.command()(metrics.metrics)
