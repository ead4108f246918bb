"""The home's configuration and files: values that cannot be used, and secrets that others can read."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_pgsql.doctor.finding import Finding, failure, fine, warning
from hermes_pgsql.rights import READ, WRITE, mend, obstacle

if TYPE_CHECKING:
    from hermes_pgsql.config import Settings

AREA: Final = "configuration"


def checks(home: Path, settings: Settings) -> Generator[Finding]:
    if not readable(home):
        yield failure(AREA, "home", f"{home} cannot be read", mend(home, READ))
        yield _api_key(settings)
        return
    if not home.is_dir():
        yield failure(
            AREA, "home", f"there is no folder {home}", "hermes setup   (or name it with HERMES_HOME)"
        )
        return
    yield _home(home)
    yield from _values(home, settings)
    yield _same_database(home, settings)
    yield _api_key(settings)
    yield from _secret_files(home)


def readable(home: Path) -> bool:
    """Whether it can be looked at: what is not there can."""
    return obstacle(home, READ) is None


def config_doubt(home: Path) -> str | None:
    """Why config.yaml says nothing (it cannot be read, or is no YAML), or None."""
    from hermes_pgsql.config import read_document

    return next(iter(read_document(home / "config.yaml")[1]), None)


def _home(home: Path) -> Finding:
    if obstacle(home, WRITE) is None:
        return fine(AREA, "home", str(home))
    return failure(
        AREA,
        "home",
        f"{home} cannot be written to, so nothing accepted survives the process",
        mend(home, WRITE),
    )


def _values(home: Path, settings: Settings) -> Generator[Finding]:
    file = home / "config.yaml"
    for problem in settings.warnings:
        fix = mend(file, READ) or f"{os.environ.get('EDITOR', 'nano')} {file}"
        yield failure(AREA, "values", problem, fix)
    if not settings.warnings:
        yield fine(AREA, "values", "every setting has a value that is allowed")


def _same_database(home: Path, settings: Settings) -> Finding:
    """Agents prefer the file to the environment, commands the environment to the file."""
    from hermes_pgsql.config import load_settings

    theirs = load_settings(home).dsn
    if theirs is None or theirs == settings.dsn:
        return fine(AREA, "database", "agents and this command mean the same database")
    return warning(
        AREA,
        "database",
        "agents use the dsn in config.yaml, and this command was told another one",
        "unset HERMES_PGSQL_DSN   (and leave --dsn away)",
    )


def _api_key(settings: Settings) -> Finding:
    name = settings.embed_api_key_env
    if name is None:
        return fine(AREA, "API key", "no API key is configured")
    if os.environ.get(name, "").strip():
        return fine(AREA, "API key", f"the variable {name} holds one")
    return warning(
        AREA,
        "API key",
        f"embed_api_key_env names {name}, and this process has no such variable",
        f"export {name}=...   (where agents are started, or in the home's .env)",
    )


def _secret_files(home: Path) -> Generator[Finding]:
    """Files of the home that hold, or may hold, what is nobody else's business."""
    open_files = [path for path in _private(home) if path.exists() and path.stat().st_mode & 0o077]
    for path in open_files:
        yield warning(
            AREA,
            "file permissions",
            f"others may read {path}, which holds secrets or stored text",
            f"chmod go-rwx {path}",
        )
    if not open_files:
        yield fine(AREA, "file permissions", "files with secrets or stored text are their owner's only")


def _private(home: Path) -> list[Path]:
    folder = home / "hermes-pgsql"
    files = [home / ".env", folder, *folder.glob("outbox.db*")]
    config = home / "config.yaml"
    if config.exists() and _holds_password(home):
        files.append(config)
    return files


def _holds_password(home: Path) -> bool:
    from hermes_pgsql.errors import ConfigError
    from hermes_pgsql.host.config_file import has_password, read_config

    try:
        block = read_config(home)
    except ConfigError:
        return False
    return any(has_password(str(block[key])) for key in ("dsn", "admin_dsn") if block.get(key))
