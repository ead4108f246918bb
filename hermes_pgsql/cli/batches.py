"""What the destructive commands share: a dry run first, then batches with a progress bar, then a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import typer

from hermes_pgsql.cli.output import progress_bar, say, show, show_error, show_json, show_json_error, table
from hermes_pgsql.errors import HermesPgsqlError, is_retryable

if TYPE_CHECKING:
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.results import Change

PARTLY = 3

Step: TypeAlias = "Callable[[bool, int | None], Sequence[Change]]"


@dataclass(frozen=True, slots=True)
class Line:
    """One table: what was there, what was or would be done to it, what is left."""

    table_name: str
    action: str
    before: int
    rows: int
    remaining: int


@dataclass(frozen=True, slots=True)
class Done:
    """The outcome of a command; ``error`` is why it stopped half-way."""

    lines: list[Line]
    error: HermesPgsqlError | None = None


def open_admin(dsn: str | None, admin_dsn: str | None) -> Memvec:
    """A handle for the administrator's login."""
    from hermes_pgsql.cli.options import settings_with
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.opening import admin_dsn as find_admin_dsn

    return Memvec(find_admin_dsn(settings_with(dsn=dsn, admin_dsn=admin_dsn)))


def planned(changes: Sequence[Change]) -> list[Line]:
    """The lines of a dry run."""
    return [
        Line(c.table_name, c.action, c.rows + (c.remaining or 0), c.rows, c.remaining or 0) for c in changes
    ]


def carry_out(step: Step, batch: int, name: str) -> Done:
    """Call ``step(dry_run, limit)`` until nothing remains, each batch in a transaction of its own.

    An error after the first batch is part of the outcome, one before it is raised.
    """
    plan = step(True, None)
    before = {(c.table_name, c.action): c.rows for c in plan}
    whole = max(1, sum(c.rows for c in plan if c.remaining is not None))
    rows = dict.fromkeys(before, 0)
    left = dict(before)
    error: HermesPgsqlError | None = None
    with progress_bar() as move:
        while any(left.values()):
            try:
                changes = step(False, batch)
            except HermesPgsqlError as failure:
                if not any(rows.values()):
                    raise
                error = failure
                break
            for change in changes:
                key = (change.table_name, change.action)
                before.setdefault(key, 0)
                rows[key] = rows.get(key, 0) + change.rows
                left[key] = 0 if change.remaining is None else change.remaining
            move(name, 1 - min(1.0, sum(left.values()) / whole))
            if not any(change.rows for change in changes):
                break
    return Done([Line(*key, before[key], rows[key], left[key]) for key in before], error)


def report(done: Done, *, executed: bool, as_json: bool) -> None:
    """Print the outcome, and exit with 3 when it stopped half-way."""
    if as_json:
        if done.error is not None:
            show_json_error(done.error)
        else:
            show_json({"executed": executed, "tables": done.lines})
    else:
        _show(done.lines, executed)
    if done.error is not None:
        show_error(done.error)
        if is_retryable(done.error) and not as_json:
            say("Part of it is done. Run the same command again for the rest.")
        raise typer.Exit(PARTLY)


def _show(lines: Sequence[Line], executed: bool) -> None:
    told = [line for line in lines if line.before or line.rows or line.remaining]
    if not told:
        say("Nothing to do.")
        return
    numbers = ("before", "done" if executed else "would be done", "left")
    shown = table("table", "what", *numbers, numbers=numbers)
    for line in told:
        shown.add_row(
            line.table_name, line.action, f"{line.before:,}", f"{line.rows:,}", f"{line.remaining:,}"
        )
    show(shown)
    if not executed:
        say("Nothing was changed. Add --execute to do it.")
