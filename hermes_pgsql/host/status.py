"""What ``hermes memory status`` shows of this provider: settings, whether the database is ready, what waits.

The database is asked for its schema's version and given a few seconds. An embedded server is not started.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from hermes_pgsql.config import hermes_home
from hermes_pgsql.errors import HermesPgsqlError, NotMigrated, redact_dsn
from hermes_pgsql.redact import redacted_text

if TYPE_CHECKING:
    from hermes_pgsql.config import Settings

__all__ = ["status_of"]

_SECONDS: Final = 3.0  # for the database's answer


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
    schema: dict[str, Any] = {}
    try:
        database = "embedded" if wants_embedded(settings) else redact_dsn(settings.dsn or "")
        schema["schema"] = _schema(settings)
    except HermesPgsqlError as error:
        database = f"none: {error}".replace("\n", " ")
    changed = settings.model_dump(exclude={"dsn", "admin_dsn", "warnings"}, exclude_defaults=True)
    changed.setdefault("embed_url", "(none: the built-in model where installed, else words only)")
    return {
        "database": database,
        **schema,
        **{key: _plain(value) for key, value in changed.items()},
    }


def _schema(settings: Settings) -> str:
    """Whether the database can be used, and what to do if not, on one line."""
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.migrate import db_files
    from hermes_pgsql.opening import wants_embedded

    dsn = settings.dsn
    try:
        if wants_embedded(settings):
            from hermes_pgsql import embedded

            server = embedded.status().server
            if server is None:
                return "not known: the embedded server does not run; it starts with the next session"
            dsn = server.runtime_dsn
        version = Memvec(dsn or "", timeout=_SECONDS).schema_version()
        needed = max(file.version for file in db_files().migrations)
        if version < needed:
            raise NotMigrated(f"The schema is of version {version}, and this package needs {needed}.")
    except HermesPgsqlError as error:
        return redact_dsn(f"not ready: {error}".replace("\n", " "))
    return f"ready, version {version}"


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
    # An address may carry its key behind the question mark.
    return redacted_text(redact_dsn(value)) if isinstance(value, str) else value
