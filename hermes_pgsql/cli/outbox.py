"""``outbox``: what a home has accepted and not sent yet, and what the database refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from hermes_pgsql.cli.options import AsJson, HermesHome
from hermes_pgsql.cli.output import age, say, show, show_json, table, text_cell
from hermes_pgsql.errors import ConfigError
from hermes_pgsql.rights import READ, mend, obstacle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_pgsql.outbox import Poison


def outbox(
    retry: Annotated[
        UUID | None, typer.Option(metavar="ID", show_default=False, help="Send a refused operation again.")
    ] = None,
    drop: Annotated[
        UUID | None, typer.Option(metavar="ID", show_default=False, help="Forget a refused operation.")
    ] = None,
    hermes_home: HermesHome = None,
    as_json: AsJson = False,
) -> None:
    """Show what waits in a home's outbox and what was set aside because the database refused it.

    \b
    Examples:
      hermes-pgsql outbox
      hermes-pgsql outbox --retry 0198b2c4-5f0e-7c41-9a3e-2f6d1c0b8a77
    """
    from hermes_pgsql.config import hermes_home as default_home
    from hermes_pgsql.outbox import Outbox

    home = hermes_home or default_home()
    if not home.is_dir():
        raise ConfigError(f"There is no home {home}.", hint="Name it with --hermes-home or HERMES_HOME.")
    queue = Outbox.open(home)
    if obstacle(queue.path, READ) is not None:
        raise ConfigError(f"{queue.path} cannot be read.", hint=f"To mend it: {mend(queue.path, READ)}")
    if retry is not None and not queue.retry(retry):
        raise ConfigError(
            f"No operation {retry} was set aside.", hint="Run hermes-pgsql outbox for the list."
        )
    if drop is not None and not queue.drop(drop):
        raise ConfigError(f"No operation {drop} was set aside.", hint="Run hermes-pgsql outbox for the list.")
    counts, refused = queue.counts(), queue.poison()
    if as_json:
        # Whom an operation was for is left out: it may be a chat's key.
        shown = [
            {
                "op_id": one.op_id,
                "op": one.op,
                "arguments": one.arguments,
                "code": one.code,
                "message": one.message,
                "put_at": one.put_at,
                "failed_at": one.failed_at,
            }
            for one in refused
        ]
        show_json(
            {
                "file": str(queue.path),
                "counts": counts,
                "oldest": queue.oldest(),
                "vector_trouble": queue.vector_trouble() if counts.sent else None,
                "refused": shown,
            }
        )
        return
    say(
        f"waiting  {counts.waiting:,}" + (f", the oldest for {age(queue.oldest())}" if counts.waiting else "")
    )
    trouble = queue.vector_trouble() if counts.sent else None
    why = "" if trouble is None else f", failed {age(trouble.at)} ago: {trouble.message}"
    say(f"stored, vector to be made or found made  {counts.sent:,}{why}")
    say(f"refused  {counts.poison:,}")
    if refused:
        _show_refused(refused)
        say("Send one again with --retry ID, forget it with --drop ID.")


def _show_refused(refused: Sequence[Poison]) -> None:
    shown = table("id", "operation", "code", "age", "why", whole=("id",))
    for one in refused:
        shown.add_row(str(one.op_id), one.op, one.code, age(one.failed_at), text_cell(one.message, 200))
    show(shown)
