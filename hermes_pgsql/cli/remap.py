"""``remap``: a theme gets another name, or becomes part of another theme."""

from __future__ import annotations

from typing import Annotated

import typer

from hermes_pgsql.cli.batches import Done, open_admin, planned, report
from hermes_pgsql.cli.options import AdminDsn, AsJson, Dsn, Execute


def remap(
    old: Annotated[str, typer.Argument(help="The theme, or the raw key of a chat (- reads it).")],
    new: Annotated[
        str | None, typer.Argument(show_default=False, help="Its new name. None for the key of a chat.")
    ] = None,
    execute: Execute = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also when more than 10 rows are in both themes, or a bound role sees more afterwards.",
        ),
    ] = False,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Move all of one theme to another, in one transaction. Shows what would move unless --execute.

    Writers wait meanwhile and go on in the new theme: the old name stays as an alias.

    \b
    Examples:
      hermes-pgsql remap marketng marketing --execute
      hermes-pgsql remap agent:main:telegram:dm:12345678 --execute
    """
    memvec = open_admin(dsn, admin_dsn)
    if old == "-":
        old = typer.get_text_stream("stdin").readline().rstrip("\n")
    changes = memvec.remap(old, new, dry_run=not execute, force=force)
    report(Done(planned(changes)), executed=execute, as_json=as_json)
