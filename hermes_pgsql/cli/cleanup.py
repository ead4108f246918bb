"""``cleanup``: everything that named themes hold goes."""

from __future__ import annotations

from typing import Annotated

import typer

from hermes_pgsql.cli.batches import Done, carry_out, open_admin, planned, report
from hermes_pgsql.cli.options import AdminDsn, AsJson, Batch, Dsn, Execute


def cleanup(
    themes: Annotated[
        list[str], typer.Argument(metavar="THEME…", show_default=False, help="What stats shows.")
    ],
    execute: Execute = False,
    batch: Batch = 5000,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Delete all entries and turns of these themes. Shows what would go unless --execute.

    History, registry and role bindings stay; erase --theme takes history and registry too.

    \b
    Examples:
      hermes-pgsql cleanup _bench old-project
      hermes-pgsql cleanup _bench --execute
    """
    memvec = open_admin(dsn, admin_dsn)
    if not execute:
        report(Done(planned(memvec.cleanup(themes))), executed=False, as_json=as_json)
        return
    done = carry_out(lambda dry, limit: memvec.cleanup(themes, dry_run=dry, limit=limit), batch, "cleaning")
    report(done, executed=True, as_json=as_json)
