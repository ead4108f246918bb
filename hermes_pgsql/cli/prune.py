"""``prune``: old chat turns go; entries never do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hermes_pgsql.cli.batches import Done, carry_out, open_admin, planned, report
from hermes_pgsql.cli.options import AdminDsn, AsJson, Batch, Dsn, Execute, settings_with
from hermes_pgsql.cli.output import say, show_json

if TYPE_CHECKING:
    from hermes_pgsql.client import Memvec


def prune(
    days: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=36500,
            show_default=False,
            help="Turns older than this go. Default: ttl_days of config.yaml; if that is not set, only themes"
            " with an age of their own are pruned.",
        ),
    ] = None,
    ttl: Annotated[
        list[str] | None,
        typer.Option(
            metavar="THEME=DAYS",
            show_default=False,
            help="Give a theme its own age, which goes before --days: 0 keeps its turns for ever, none takes"
            " it away again. Prunes nothing.",
        ),
    ] = None,
    execute: Execute = False,
    batch: Batch = 5000,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Delete old chat turns, with their vectors. Shows what would go unless --execute.

    \b
    Examples:
      hermes-pgsql prune --days 180 --execute
      hermes-pgsql prune --ttl support=90 --ttl legal=0
    """
    ages = [_age(text) for text in ttl or []]
    memvec = open_admin(dsn, admin_dsn)
    if ages:
        _set_ages(ages, memvec, as_json=as_json)
        return
    if days is None:
        days = settings_with(dsn=dsn).ttl_days or None
    if not execute:
        report(Done(planned(memvec.prune(days))), executed=False, as_json=as_json)
        return
    done = carry_out(lambda dry, limit: memvec.prune(days, dry_run=dry, limit=limit), batch, "pruning")
    report(done, executed=True, as_json=as_json)


def _set_ages(ages: Sequence[tuple[str, int | None]], memvec: Memvec, *, as_json: bool) -> None:
    for theme, age in ages:
        memvec.set_ttl(theme, age)
        kept = {None: "as every prune says", 0: "for ever"}.get(age, f"for {age} days")
        if not as_json:
            say(f"Turns of {theme} are kept {kept}.")
    if as_json:
        show_json({"ttl_days": dict(ages)})


def _age(text: str) -> tuple[str, int | None]:
    theme, equals, age = text.rpartition("=")
    if equals and theme.strip() and (age == "none" or age.isdecimal()):
        return theme, None if age == "none" else int(age)
    raise typer.BadParameter("write THEME=DAYS, for example support=90, support=0 or support=none")
