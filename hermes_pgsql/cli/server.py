"""``up`` and ``down``: the embedded server of this operating-system user."""

from __future__ import annotations

import shlex

from hermes_pgsql.cli.options import AsJson
from hermes_pgsql.cli.output import note, say, show_json, warn, working


def up(as_json: AsJson = False) -> None:
    """Start the embedded server (or find it running) and bring its schema up to date.

    \b
    Examples:
      hermes-pgsql up
      hermes-pgsql up --json
    """
    from hermes_pgsql.opening import require_embedded, start_embedded

    require_embedded()
    with working("Starting the embedded server"):
        server, report = start_embedded()
    if report is not None:
        for warning in report.warnings:
            warn(warning)
    if as_json:
        show_json(
            {
                "state": "running",
                "dsn": server.runtime_dsn,
                "admin_dsn": server.admin_dsn,
                "data_dir": str(server.data_dir),
                "migrated": report is not None,
            }
        )
        return
    if report is not None:
        note(f"The schema was brought up to date (version {report.schema_version}).")
    say(f"The embedded server is running, with its data in {server.data_dir}.")
    say("Agents and the command line find it by themselves when no dsn is configured (or: dsn: embedded).")
    say(f"psql: {shlex.join([str(server.bin_dir / 'psql'), server.runtime_dsn])}")


def down(as_json: AsJson = False) -> None:
    """Stop the embedded server. Its data stays.

    \b
    Examples:
      hermes-pgsql down
    """
    from hermes_pgsql import embedded

    stopped = embedded.down()  # also one that runs on after the extra was uninstalled
    if as_json:
        show_json({"state": "stopped", "was_running": stopped})
        return
    say("The embedded server was stopped." if stopped else "The embedded server was not running.")
