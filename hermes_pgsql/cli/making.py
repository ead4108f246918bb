"""What writes makes the embedded server on its first use, and says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from hermes_pgsql.cli.output import note, working
from hermes_pgsql.errors import NoServerYet

if TYPE_CHECKING:
    from hermes_pgsql.config import Settings

Found = TypeVar("Found")


def made_if_absent(find: Callable[[Settings], Found], settings: Settings) -> Found:
    """What ``find`` finds; where the embedded server is meant and was never made, it is made first."""
    try:
        return find(settings)
    except NoServerYet:
        from hermes_pgsql.opening import start_embedded

        with working("Making the embedded server"):
            server, _ = start_embedded()
        note(f"there was no embedded server yet: it was made in {server.root}")
        return find(settings)
