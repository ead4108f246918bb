"""``migrate``: install the schema in a database or bring it up to date."""

from __future__ import annotations

from typing import Annotated

import typer

from hermes_pgsql.cli.options import AdminDsn, AsJson, Dsn, settings_with
from hermes_pgsql.cli.output import say, show_json, warn, working


def migrate(
    admin_dsn: AdminDsn = None,
    runtime_role: Annotated[
        str, typer.Option(help="Login role of the agents; made if it is missing. Empty: none.")
    ] = "hermes",
    embedder_role: Annotated[
        str | None,
        typer.Option(show_default=False, help="Login role of embedding workers; made if it is missing."),
    ] = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Install the schema memvec, or bring it up to date. Running it again changes nothing.

    \b
    Examples:
      hermes-pgsql migrate
      hermes-pgsql migrate --admin-dsn postgresql://postgres@db/fleet --runtime-role hermes
    """
    from hermes_pgsql.migrate import migrate as run
    from hermes_pgsql.opening import admin_dsn as find_admin_dsn

    settings = settings_with(dsn=dsn, admin_dsn=admin_dsn)
    with working("Bringing the schema up to date"):
        report = run(find_admin_dsn(settings), runtime_role.strip() or None, embedder_role=embedder_role)
    if as_json:
        show_json(report)
        return
    for name in report.applied:
        say(f"applied  {name}")
    say(f"written  {report.functions} functions, as every time")
    for sentence in report.granted:
        say(f"done     {sentence}")
    if not report.applied and not report.granted:
        say("The tables and roles were up to date.")
    say(f"The schema is at version {report.schema_version}.")
    for warning in report.warnings:
        warn(warning)
