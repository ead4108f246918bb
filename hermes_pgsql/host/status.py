"""What ``hermes memory status`` shows of this provider. Reads files only: no database, no network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from hermes_pgsql.config import hermes_home
from hermes_pgsql.errors import HermesPgsqlError, redact_dsn

__all__ = ["status_of"]


def status_of(home: Path | None, given: object, unavailable: str) -> dict[str, Any]:
    """The settings that differ from the defaults, without passwords, and what waits in the outbox."""
    home = home or hermes_home()
    shown: dict[str, Any] = {}
    if unavailable:
        shown["problem"] = unavailable
    settings = _settings(home, shown)
    if settings is not None:
        shown.update(settings)
    elif isinstance(given, Mapping):
        items = cast("Mapping[object, object]", given).items()
        shown.update({str(key): _plain(value) for key, value in items})
    shown.update(_outbox(home))
    return shown


def _settings(home: Path, shown: dict[str, Any]) -> dict[str, Any] | None:
    try:
        from hermes_pgsql.link import settings_of
        from hermes_pgsql.opening import wants_embedded
    except ImportError:
        return None
    settings = settings_of(home)
    if settings.warnings:
        shown["warnings"] = " ".join(settings.warnings)
    try:
        database = "embedded" if wants_embedded(settings) else redact_dsn(settings.dsn or "")
    except HermesPgsqlError as error:
        database = f"none: {error}"
    changed = settings.model_dump(exclude={"dsn", "admin_dsn", "warnings"}, exclude_defaults=True)
    changed.setdefault("embed_url", "(none: the built-in model where installed, else words only)")
    return {"database": database, **{key: _plain(value) for key, value in changed.items()}}


def _outbox(home: Path) -> dict[str, Any]:
    try:
        from hermes_pgsql.outbox import Outbox
    except ImportError:
        return {}
    outbox = Outbox.open(home)
    if not outbox.path.exists():
        return {"outbox": "empty"}
    counts = outbox.counts()
    text = f"{counts.waiting} waiting, {counts.sent} without vector yet, {counts.poison} set aside"
    if outbox.problem:
        text += f"; {outbox.problem}"
    return {"outbox": text}


def _plain(value: object) -> object:
    return redact_dsn(value) if isinstance(value, str) else value
