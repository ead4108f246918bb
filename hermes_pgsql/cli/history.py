"""``history`` and ``restore``: what was taken away from the entries, and bringing it back."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hermes_pgsql.cli.add import Target
from hermes_pgsql.cli.options import AdminDsn, AsJson, Dsn, Since, Until, refuse_empty_range, settings_with
from hermes_pgsql.cli.output import age, note, plain, say, show, show_json, table, text_cell

if TYPE_CHECKING:
    from hermes_pgsql.results import Restored, TakenAway


class Action(StrEnum):
    replaced = "replace"
    removed = "remove"
    reconciled = "reconcile"


def history(
    theme: Annotated[
        str | None,
        typer.Option(
            "--theme",
            metavar="THEME",
            show_default=False,
            help="Only this theme; a chat's key means that person. Default: all.",
        ),
    ] = None,
    target: Annotated[
        Target | None, typer.Option(show_default=False, help="Only entries of this memory.")
    ] = None,
    action: Annotated[
        Action | None, typer.Option(show_default=False, help="Only what went in this way.")
    ] = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 20,
    before: Annotated[
        int | None, typer.Option(metavar="ID", show_default=False, help="Go on below this id.")
    ] = None,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """List the entries that were replaced, removed, or gone from their file, the latest first.

    \b
    Examples:
      hermes-pgsql history --since 7d
      hermes-pgsql history --theme marketing --action remove
    """
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.opening import admin_dsn as find_admin_dsn

    refuse_empty_range(since, until)
    memvec = Memvec(find_admin_dsn(settings_with(dsn=dsn, admin_dsn=admin_dsn)))
    rows = memvec.history(
        theme,
        target=None if target is None else str(target),
        action=None if action is None else str(action),
        since=since,
        until=until,
        limit=limit,
        before=before,
    )
    if as_json:
        show_json(rows)
    elif rows:
        _show_history(rows)
        say("Bring one back with: hermes-pgsql restore ID")
    else:
        say("Nothing was taken away.")


def restore(
    ids: Annotated[
        list[int], typer.Argument(metavar="ID...", show_default=False, help="Ids that history shows.")
    ],
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Bring back entries that were taken away, as history shows them. Whatever took their place stays.

    \b
    Examples:
      hermes-pgsql restore 1204
      hermes-pgsql restore 1204 1205 --json
    """
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.opening import admin_dsn as find_admin_dsn

    memvec = Memvec(find_admin_dsn(settings_with(dsn=dsn, admin_dsn=admin_dsn)))
    done: list[tuple[int, Restored]] = []
    for history_id in dict.fromkeys(ids):
        result = memvec.restore(history_id)
        done.append((history_id, result))
        if not as_json:
            say(f"{history_id}: {_sentence(result)}")
    if as_json:
        show_json(
            [
                {"history_id": history_id, "outcome": row.outcome, "id": row.id, "theme": row.agent_identity}
                for history_id, row in done
            ]
        )
    elif any(row.outcome == "restored" for _, row in done):
        note("found by words at once, by meaning after hermes-pgsql backfill")
    if any(row.outcome != "restored" for _, row in done):
        raise typer.Exit(3)


def _sentence(row: Restored) -> str:
    if row.outcome == "restored":
        return f"restored as entry {row.id} ({row.target}) of {row.agent_identity}."
    if row.outcome == "present":
        return f"{row.agent_identity} holds that text already, as entry {row.id}."
    return "was restored before and went again: look for its newer row in the history."


def _show_history(rows: Sequence[TakenAway]) -> None:
    from rich.text import Text

    shown = table("id", "theme", "memory", "how", "age", "by", "restored", "text", numbers=("id", "age"))
    for row in rows:
        shown.add_row(
            str(row.id),
            Text(plain(row.agent_identity)),
            row.target,
            row.action,
            age(row.acted_at),
            Text(plain(row.acted_by)),
            "-" if row.restored_at is None else age(row.restored_at),
            text_cell(row.content, 160),
        )
    show(shown)
