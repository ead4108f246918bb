"""``install``: let hermes-agent find the provider, or take that away again."""

from __future__ import annotations

from typing import Annotated

import typer

from hermes_pgsql.cli.options import AsJson, HermesHome
from hermes_pgsql.cli.output import note, say, show, show_json, warn, working


def install(
    remove: Annotated[bool, typer.Option("--remove", help="Take it away again.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Move aside what is in the way, to a hidden name beside it.")
    ] = False,
    hermes_home: HermesHome = None,
    as_json: AsJson = False,
) -> None:
    """Write the folder plugins/pgvector into the host's home, and see that the host loads it.

    \b
    Examples:
      hermes-pgsql install
      hermes-pgsql install --hermes-home /srv/hermes
      hermes-pgsql install --remove
    """
    from hermes_pgsql.config import hermes_home as default_home
    from hermes_pgsql.host import shim

    home = hermes_home or default_home()
    if remove:
        gone = shim.remove(home, force=force)
        if as_json:
            show_json({"folder": str(gone.folder), "removed": gone.removed})
        else:
            show(f"Removed {gone.folder}." if gone.removed else f"There is no {gone.folder}.")
        return
    with working("Asking the host whether it loads the provider"):
        done = shim.install(home, force=force)
    for warning in done.warnings:
        warn(warning)
    if as_json:
        show_json(
            {
                "folder": str(done.folder),
                "written": done.written,
                "moved": str(done.moved) if done.moved else None,
                "checked_with": done.checked_with,
                "warnings": done.warnings,
            }
        )
        return
    if done.moved:
        note(f"What was there is now {done.moved}.")
    show(f"{'Wrote' if done.written else 'Already there:'} {done.folder}")
    if done.checked_with:
        show(f"The host loads it ({done.checked_with}).")
    say("Next: hermes memory setup pgvector   (asks for database and endpoint)")
    say("or:   hermes config set memory.provider pgvector   (as they are)")
