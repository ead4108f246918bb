"""What a connection string leads to and where it was written, for the messages of errors.

Never the user, the password or any other value: what a string with a forgotten escape was taken apart into
may be pieces of the password, so parts that do not look like what they should be hide all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, TypeVar

from hermes_pgsql.errors import ConfigError, DatabaseUnavailable, HermesPgsqlError

__all__ = ["bad_keyword", "describe", "parse", "placed", "remember"]

_LOOKS: Final = {
    "service": re.compile(r"[\w.-]+"),
    "host": re.compile(r"[\w.,:%/-]+"),
    "port": re.compile(r"[\d,]+"),
    "dbname": re.compile(r"[\w $.-]{1,63}"),
}
_KEYWORD: Final = re.compile(r'(?:connection option|URI query parameter:?) "(\w+)"')
_HINT: Final = "Write it like postgresql://user@host:5432/database or host=… dbname=… user=…."

# Connection string -> the option, variable or file that named it.
_sources: dict[str, str] = {}
_Error = TypeVar("_Error", bound=HermesPgsqlError)


def remember(dsn: object, source: str) -> None:
    """Note where a connection string was written."""
    if isinstance(dsn, str) and dsn.strip():
        _sources[dsn.strip()] = source


def parse(dsn: str) -> dict[str, object]:
    """Its parts. Raises ``ConfigError``, which names a keyword that does not exist and never a value."""
    import psycopg  # here, so that noting a source needs no driver
    from psycopg.conninfo import conninfo_to_dict

    try:
        # Behind a NUL, libpq would read nothing; half a surrogate pair it cannot be given.
        if "\0" in dsn:
            raise ValueError
        return dict(conninfo_to_dict(dsn))
    except (psycopg.Error, ValueError) as error:
        # Not the driver's text: it quotes what it could not read, which may be the password.
        raise ConfigError(
            f"The dsn is not a valid connection string{bad_keyword(dsn, str(error))}.",
            hint=_HINT,
            detail=_from(dsn),
        ) from None


def describe(dsn: str) -> str:
    """Host and port or socket, the database's name, and where the dsn is from; '' when nothing is known."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        given = conninfo_to_dict(dsn)
    except (psycopg.Error, ValueError):
        given = {}
    place = _place({key: str(value) for key, value in given.items() if value})
    source = _sources.get(dsn.strip())
    if not place:
        return _from(dsn)
    return f"The dsn{f' (from {source})' if source else ''} leads to {place}."


def _from(dsn: str) -> str:
    source = _sources.get(dsn.strip())
    return f"The dsn is from {source}." if source else ""


def placed(error: _Error, dsn: str) -> _Error:
    """The same error; one of the connection says in its detail what was asked for."""
    if isinstance(error, DatabaseUnavailable) and not error.detail:
        error.detail = describe(dsn)
    return error


def _place(given: Mapping[str, str]) -> str:
    import psycopg

    defaults = {
        option.keyword.decode(): option.val.decode()
        for option in psycopg.pq.Conninfo.get_defaults()
        if option.val
    }
    wanted = {**{key: defaults[key] for key in _LOOKS if key in defaults}, **given}
    found = {key: wanted[key] for key in _LOOKS if key in wanted}
    if "host" not in found and "hostaddr" in given:
        found["host"] = given["hostaddr"]
    if any(not _LOOKS[key].fullmatch(value) for key, value in found.items()):
        return ""
    host = found.get("host", "")
    parts = [f"service {found['service']}"] if "service" in found else []
    if host or not parts:
        what = "socket folder" if host.startswith("/") else "host"
        parts.append(f"{what} {host}" if host else "the local socket")
    parts.append(f"port {found['port']}" if "port" in found else "")
    parts.append(f"database {found['dbname']}" if "dbname" in found else "")
    return ", ".join(filter(None, parts))


def bad_keyword(dsn: str, said: str) -> str:
    """What libpq said of a keyword, as the end of a sentence; '' when it was about something else."""
    import psycopg

    found = _KEYWORD.search(said)
    if found is None:
        return ""
    known = [option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()]
    word = found[1]
    near = get_close_matches(word, known, n=1)
    # Behind a password it may be the rest of one with a blank in it.
    if re.search(r"pass|://[^/]*:[^/]*@", dsn.partition(word)[0], re.IGNORECASE):
        return ""
    return f": there is no keyword {word}" + (f" (did you mean {near[0]}?)" if near else "")
