"""``doctor``: everything that memory depends on, what is wrong with it, and the command that mends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from hermes_pgsql.cli.options import AdminDsn, AsJson, Dsn, HermesHome
from hermes_pgsql.cli.output import plain, say, show, show_json, working

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from hermes_pgsql.doctor import Finding

_STYLES: Final = {"ok": "green", "warning": "yellow", "failure": "bold red", "unknown": "dim"}


def doctor(
    hermes_home: HermesHome = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every check, also those that found nothing wrong.")
    ] = False,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Check configuration, host, outbox, database and embeddings, and name the fix for what is wrong.

    Changes nothing, and needs no more rights than the agents have; with --admin-dsn it also tells what only
    an administrator is told. Exit codes: 0 nothing is wrong, 3 warnings only, 1 something does not work.

    \b
    Examples:
      hermes-pgsql doctor
      hermes-pgsql doctor --all --admin-dsn postgresql://postgres@db/fleet
      hermes-pgsql doctor --json
    """
    from hermes_pgsql.config import hermes_home as default_home
    from hermes_pgsql.config import load_command_line_settings
    from hermes_pgsql.doctor import examine, exit_code

    home = hermes_home or default_home()
    # Not through settings_with: what is wrong with the settings is among the findings.
    settings = load_command_line_settings(home, overrides={"dsn": dsn, "admin_dsn": admin_dsn})
    with working("Examining"):
        findings = examine(home, settings)
    code = exit_code(findings)
    if as_json:
        show_json({"home": str(home), "exit_code": code, "checks": findings})
    else:
        _show(findings, everything=everything)
    raise typer.Exit(code)


def _show(findings: Sequence[Finding], *, everything: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, show_header=False)
    for name in ("state", "area", "check"):
        shown.add_column(name, no_wrap=True)
    shown.add_column("message", overflow="fold", ratio=1)
    for area in dict.fromkeys(finding.area for finding in findings):
        here = [finding for finding in findings if finding.area == area]
        fine = [finding for finding in here if finding.state == "ok"]
        if fine and not everything:
            shown.add_row(_state("ok"), area, "", f"{len(fine)} of {len(here)} checks found nothing wrong")
        for finding in here:
            if everything or finding.state != "ok":
                shown.add_row(_state(finding.state), area, finding.name, Text(plain(finding.message)))
                if finding.fix:
                    shown.add_row(
                        "", "", Text("fix:", justify="right"), Text(plain(finding.fix), style="bold")
                    )
    show(shown)
    counts = {state: sum(finding.state == state for finding in findings) for state in _STYLES}
    say(
        f"{len(findings)} checks: {counts['failure']} failed, {counts['warning']} warned,"
        f" {counts['unknown']} could not be made."
    )
    if any(" DSN" in finding.fix for finding in findings):
        say("DSN stands for an administrator's connection string.")


def _state(state: str) -> Text:
    from rich.text import Text

    return Text(state, style=_STYLES[state])
