"""Which theme a command acts as, said when it is not the one that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_pgsql.cli.output import note, plain

if TYPE_CHECKING:
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.config import Settings
    from hermes_pgsql.results import Identity

_WHY: Final = {
    "not-in-allowlist": "is not among the allowed themes (allowed_themes",
    "bench-reject": "is a benchmark's name, which is refused (bench_mode",
}


def acting_theme(memvec: Memvec, name: str, settings: Settings) -> str:
    """The theme that ``name`` stands for; a note when rules of the database or of this host changed it."""
    found, of = memvec.canonical_identity(name), "the database"
    if found.reason not in _WHY and (here := _ruled_here(memvec, name, found, settings)) is not None:
        found, of = here, "config.yaml"
    if found.reason in _WHY:
        note(f'"{plain(name)}" {_WHY[found.reason]} of {of}); "{found.agent_identity}" is used.')
    return found.agent_identity


def _ruled_here(memvec: Memvec, name: str, found: Identity, settings: Settings) -> Identity | None:
    # A chat keeps its sink, and where the fleet has an alias the host's rules are about the name before it.
    if not settings.governance() or found.kind in {"direct", "group"} or found.reason == "alias":
        return None
    return memvec.canonical_identity(
        name,
        settings.identity_aliases or None,
        settings.allowed_themes or None,
        "reject" if settings.bench_mode == "reject" else None,
    )
