"""Options that several commands share, and the settings they make together with environment and file."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from hermes_pgsql.cli.output import warn

if TYPE_CHECKING:
    from hermes_pgsql.config import Settings

Dsn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        envvar="HERMES_PGSQL_DSN",
        show_default=False,
        help="Connection string of the database, or 'embedded'. Default: the one in config.yaml.",
    ),
]
AdminDsn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--admin-dsn",
        envvar="HERMES_PGSQL_ADMIN_DSN",
        show_default=False,
        help="Connection string of an administrator. Not needed for the embedded server.",
    ),
]
HermesHome: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--hermes-home",
        metavar="FOLDER",
        show_default=False,
        help="The host's home. Default: $HERMES_HOME, else ~/.hermes.",
    ),
]
Execute: TypeAlias = Annotated[
    bool, typer.Option("--execute", help="Do it. Without, only show what would be done.")
]
Batch: TypeAlias = Annotated[
    int, typer.Option(min=1, max=1_000_000, help="Rows at a time; writers wait for one batch at most.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def not_blank(text: str | None) -> str | None:
    """``text``; a usage error when it is blank, which an unset variable of the shell makes it."""
    if text is not None and not text.strip():
        raise typer.BadParameter("it is blank; give a name.")
    return text


Theme: TypeAlias = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="THEME",
        help="Theme (see stats) or session key to act as.",
        show_default=False,
        callback=not_blank,
    ),
]

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO: Final = re.compile(r"(\d{1,6})\s*([smhdw])", re.IGNORECASE)


def settings_with(config: Path | None = None, **options: object) -> Settings:
    """The settings, with the given options above environment and file. Complaints go to standard error.

    ``config`` is a file named on the command line; it goes before the environment.
    """
    from hermes_pgsql.config import load_command_line_settings
    from hermes_pgsql.errors import ConfigError

    if config is not None and not config.is_file():
        raise ConfigError(f"There is no file {config}.", hint="Name a config.yaml with --config.")

    for name, value in options.items():
        # --dsn "$DSN" with an unset variable must not mean another database.
        if isinstance(value, str) and not value.strip():
            option = f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"{option} is blank; give a connection string, or leave it away.")
    settings = load_command_line_settings(overrides=options, file=config)
    for warning in settings.warnings:
        warn(warning)
    return settings


def refuse_unusable(**options: object) -> None:
    """A usage error for an option whose value would be replaced by a default if it stood in a file."""
    from hermes_pgsql.config import settings_from_mapping

    for name, value in options.items():
        if value is not None and (warnings := settings_from_mapping({name: value}).warnings):
            raise typer.BadParameter(warnings[0], param_hint=f"--{name.replace('_', '-')}")


def parse_moment(text: str) -> datetime:
    """A date, a date with a time, or how long ago (12h, 7d, 2w)."""
    ago = _AGO.fullmatch(text.strip())
    try:
        if ago:
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2].lower()]: int(ago[1])})
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            "write a date such as 2026-01-31 or 2026-01-31T12:00, or how long ago, such as 12h, 7d or 2w"
        ) from None


def refuse_empty_range(since: datetime | None, until: datetime | None) -> None:
    """A usage error when nothing can lie between the two."""
    if since is not None and until is not None and since >= until:
        raise typer.BadParameter(
            f"--since ({since:%Y-%m-%d %H:%M}) is not before --until ({until:%Y-%m-%d %H:%M}): nothing lies"
            " between them."
        )


Since: TypeAlias = Annotated[
    datetime | None,
    typer.Option(
        parser=parse_moment, metavar="WHEN", show_default=False, help="Not older than (7d, 2026-01-31)."
    ),
]
Until: TypeAlias = Annotated[
    datetime | None,
    typer.Option(parser=parse_moment, metavar="WHEN", show_default=False, help="Not newer than."),
]
