"""What can go wrong, as exceptions a person can read.

The database functions raise SQLSTATEs of class ``MV`` with a message, a detail and a hint; everything else
Postgres or the driver reports is mapped here too. ``str(error)`` is a plain sentence, followed by the hint on
a second line when there is one. No exception of this module ever carries a connection string, a password or a
SQL statement.
"""

# ruff: noqa: N818  (the names say what happened; "Error" on each would add nothing)

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import psycopg

__all__ = [
    "BadSetting",
    "Busy",
    "ConfigError",
    "DatabaseFailure",
    "DatabaseUnavailable",
    "DeliveryUnknown",
    "FileEntryRefused",
    "HermesPgsqlError",
    "InvalidArgument",
    "IsolationTooHigh",
    "MemvecError",
    "MigrationError",
    "MissingExtra",
    "NotMigrated",
    "NotPermitted",
    "ScopeRefused",
    "UnknownSpace",
    "WrongDimension",
    "failure_kind",
    "is_connection_error",
    "is_retryable",
    "is_retryable_sqlstate",
    "redact_dsn",
    "redact_secrets",
    "translate",
]

MIGRATE_COMMAND: Final = "hermes-pgsql migrate --admin-dsn <administrator's DSN>"


class HermesPgsqlError(Exception):
    """The base of every error that this package raises on purpose.

    ``message`` says what happened and to what; ``hint`` (may be empty) says what to do next.
    """

    def __init__(self, message: str, *, hint: str = "", detail: str = "") -> None:
        self.message: str = message
        self.hint: str = hint
        self.detail: str = detail
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class ConfigError(HermesPgsqlError):
    """A setting is missing that the caller cannot do without."""


class NoServerYet(ConfigError):
    """The embedded server is meant, and was never made here. Nothing makes it but who is about to write."""


class MissingExtra(HermesPgsqlError):
    """An optional dependency is needed and not installed; the hint names the command that adds it."""


class DatabaseUnavailable(HermesPgsqlError):
    """The database cannot be reached, or dropped the connection. Trying again later may work.

    ``sqlstate`` is the server's code when it sent one, else ``None``.
    """

    def __init__(
        self, message: str, *, hint: str = "", detail: str = "", sqlstate: str | None = None
    ) -> None:
        super().__init__(message, hint=hint, detail=detail)
        self.sqlstate: str | None = sqlstate


class DeliveryUnknown(DatabaseUnavailable):
    """The connection broke after the statement was sent: it may or may not have been done."""


class DatabaseFailure(HermesPgsqlError):
    """The server refused a statement for a reason of its own; ``sqlstate`` has the code."""

    def __init__(self, sqlstate: str | None, message: str, *, hint: str = "", detail: str = "") -> None:
        super().__init__(message, hint=hint, detail=detail)
        self.sqlstate: str | None = sqlstate


class NotMigrated(HermesPgsqlError):
    """The database lacks the schema ``memvec``, or has an older one than this package needs."""

    def __init__(
        self, message: str, *, hint: str = "", detail: str = "", sqlstate: str | None = None
    ) -> None:
        super().__init__(message, hint=hint or f"Run: {MIGRATE_COMMAND}", detail=detail)
        self.sqlstate: str | None = sqlstate


class MemvecError(HermesPgsqlError):
    """A memvec function refused what it was asked. ``sqlstate`` is the code, of class ``MV``."""

    def __init__(self, sqlstate: str, message: str, detail: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint, detail=detail)
        self.sqlstate: str = sqlstate


class InvalidArgument(MemvecError):
    """MV001: an argument is blank, unknown or out of range."""


class NotPermitted(MemvecError):
    """MV002: the login role is not bound to that theme, or unbound roles are refused."""


class ScopeRefused(MemvecError):
    """MV003: the scope names a sink or a theme the caller may not read."""


class UnknownSpace(MemvecError):
    """MV004: no such embedding space."""


class WrongDimension(MemvecError):
    """MV005: the embedding does not have the width of its space."""


class IsolationTooHigh(MemvecError):
    """MV006: writes run in READ COMMITTED only."""


class BadSetting(MemvecError):
    """MV007: no such database setting, or a value it does not take."""


class Busy(MemvecError):
    """MV008: a lock was not obtained in time. Trying again works."""


class FileEntryRefused(MemvecError):
    """MV009: entries of memory files may not go to a sink."""


class MigrationError(MemvecError):
    """MV1xx: the schema could not be installed or brought up to date. ``step`` says where it stopped."""

    def __init__(self, sqlstate: str, message: str, detail: str = "", hint: str = "", step: str = "") -> None:
        super().__init__(sqlstate, message, detail, hint)
        self.step: str = step


_BY_SQLSTATE: Final[dict[str, type[MemvecError]]] = {
    "MV001": InvalidArgument,
    "MV002": NotPermitted,
    "MV003": ScopeRefused,
    "MV004": UnknownSpace,
    "MV005": WrongDimension,
    "MV006": IsolationTooHigh,
    "MV007": BadSetting,
    "MV008": Busy,
    "MV009": FileEntryRefused,
}

# The statement had no effect and the same one may succeed later: serialization failure, deadlock, lock not
# available, statement timeout or cancel, read-only standby after a failover, busy.
_RETRYABLE: Final = frozenset({"40001", "40P01", "55P03", "57014", "25006", "MV008"})
# The server is shutting down, crashed, is starting up, dropped the database, or ended an idle session.
_CONNECTION_STATES: Final = frozenset({"57P01", "57P02", "57P03", "57P04", "57P05"})
_SECRET_IN_PAIR: Final = re.compile(
    r"\b(?P<key>(?:ssl)?password|passwd|pwd)(?P<equals>\s*=\s*)(?:'(?:\\.|[^'\\])*'|[^\s&]*)", re.IGNORECASE
)
_BLANKS: Final = re.compile(r"(\s+)")
_MASK: Final = "****"


def redact_dsn(dsn: str) -> str:
    """A connection string, or a text that may hold some, with every password masked."""
    words = _BLANKS.split(dsn) if "://" in dsn else [dsn]
    return _SECRET_IN_PAIR.sub(rf"\g<key>\g<equals>{_MASK}", "".join(map(_mask_in_url, words)))


def _mask_in_url(word: str) -> str:
    # Up to the last "@", because people forget to escape one: masking too much beats masking too little.
    scheme, at = word.find("://"), word.rfind("@")
    colon = word.find(":", scheme + 3, at) if 0 <= scheme < at else -1
    return word if colon < 0 else f"{word[: colon + 1]}{_MASK}{word[at:]}"


def redact_secrets(text: str, *secrets: str | None) -> str:
    """``text`` without connection strings' passwords and without the literal ``secrets``."""
    for secret in sorted((s for s in secrets if s), key=len, reverse=True):
        text = text.replace(secret, _MASK)
    return redact_dsn(text)


def is_connection_error(error: BaseException) -> bool:
    """Whether the connection (rather than the statement) failed."""
    import psycopg  # here, so that importing this module stays cheap

    if isinstance(error, DatabaseUnavailable):
        return True
    if isinstance(error, psycopg.Error):
        state = error.sqlstate
        if state is not None:
            return state in _CONNECTION_STATES or state.startswith("08")
        return isinstance(error, psycopg.OperationalError)
    return False


def failure_kind(error: HermesPgsqlError) -> str:
    """One of a few words for counting what failed, such as database_unavailable."""
    embedding: object = getattr(error, "kind", None)
    if isinstance(embedding, str):
        return f"embedding_{embedding}"
    if isinstance(error, DatabaseUnavailable):
        return "database_unavailable"
    if isinstance(error, NotMigrated):
        return "database_not_migrated"
    if isinstance(error, MemvecError):
        return "database_refused"
    if is_retryable(error):
        return "database_busy"
    return "database_failed" if isinstance(error, DatabaseFailure) else "other"


def is_retryable_sqlstate(sqlstate: str | None) -> bool:
    """Whether an error with this code says nothing about the statement itself, so that it may succeed later.

    Covers locks, deadlocks, serialization, timeouts, shutdowns, lost connections (class 08), exhausted
    resources (class 53) and storage trouble (class 58).
    """
    if sqlstate is None:
        return False
    return sqlstate in _RETRYABLE or sqlstate in _CONNECTION_STATES or sqlstate[:2] in {"08", "53", "58"}


def is_retryable(error: BaseException) -> bool:
    """Whether doing the same thing again later may succeed."""
    if is_connection_error(error):
        return True
    sqlstate: object = getattr(error, "sqlstate", None)
    return isinstance(sqlstate, str) and is_retryable_sqlstate(sqlstate)


def translate(error: psycopg.Error, *, step: str = "") -> HermesPgsqlError:
    """The exception of this package for one of the driver's; raise it ``from None`` where users see it.

    ``step`` names the part of a migration that was running.
    """
    state = error.sqlstate
    message = _first_line(error.diag.message_primary or "")
    detail = error.diag.message_detail or ""
    hint = error.diag.message_hint or ""
    if state is not None and state.startswith("MV"):
        if state >= "MV100":
            return MigrationError(state, message, detail, hint, step)
        return _BY_SQLSTATE.get(state, MemvecError)(state, message, detail, hint)
    if is_connection_error(error):
        return _unavailable(error, state)
    if state is None:
        # The driver refused the value before anything was sent (NUL bytes, numbers too large).
        return InvalidArgument("MV001", redact_dsn(_first_line(str(error))) or "The value cannot be sent.")
    return _named_failure(state, message, detail, hint)


def _named_failure(state: str, message: str, detail: str, hint: str) -> HermesPgsqlError:
    if state in {"3F000", "42P01"} or (state == "42883" and "memvec." in message):
        return NotMigrated(
            "The database has no memvec schema of the version this package needs.",
            detail=message,
            sqlstate=state,
        )
    if state == "42501":
        return DatabaseFailure(
            state,
            f"The login role may not do that: {message}.",
            detail=detail,
            hint=hint or f"Grant it the runtime role, with: {MIGRATE_COMMAND} --runtime-role <login role>",
        )
    if state == "57014":
        return DatabaseFailure(state, "The database stopped the statement: it took too long.", detail=detail)
    if state == "55P03":
        return DatabaseFailure(
            state, "The database waited too long for a lock.", detail=detail, hint="Try again."
        )
    if state == "25006":
        return DatabaseFailure(
            state,
            "The database takes no writes: it is a standby or read-only.",
            detail=message,
            hint="Name the primary in the dsn; of several hosts, target_session_attrs=read-write finds it.",
        )
    if state == "53300":
        return DatabaseFailure(
            state, "The database has no connection left for us.", hint="Raise max_connections."
        )
    if state.startswith("53"):
        return DatabaseFailure(
            state, f"The database is out of resources: {message}.", detail=detail, hint=hint
        )
    return DatabaseFailure(
        state, f"The database refused the statement: {message} ({state}).", detail=detail, hint=hint
    )


def _unavailable(error: psycopg.Error, state: str | None) -> DatabaseUnavailable:
    if state in _CONNECTION_STATES:
        return DatabaseUnavailable(
            "The database ended the connection: it is shutting down, starting up or was restarted.",
            hint="Try again in a moment.",
            sqlstate=state,
        )
    sentence, hint = _why_unreachable(str(error))
    return DatabaseUnavailable(sentence, hint=hint, sqlstate=state)


_CHECK_DSN: Final = "Check that the database runs and that the dsn is right."
# By the fragment below; everything else is told to check the dsn.
_HINTS: Final = {
    'role ".*" does not exist': "Name another user in the dsn, or create this one as the agents' login:"
    f" {MIGRATE_COMMAND} --runtime-role <role>",
    'database ".*" does not exist': "Name another database in the dsn, or create this one with createdb.",
    "no password supplied": "Put it into ~/.pgpass (mode 0600), into PGPASSWORD or into the dsn.",
    "unsupported startup parameter": "Take it out of the dsn (most often it is options), or list it in"
    " ignore_startup_parameters of PgBouncer.",
    "no more connections allowed": "Raise max_client_conn of PgBouncer.",
    "query_wait_timeout": "Raise default_pool_size of PgBouncer, or look for what holds its connections.",
}


# libpq's texts name host, address, user and database, which are nobody's business but the operator's; each
# known one is reduced to its reason.
_REASONS: Final = (
    # The first ones hold words of later ones.
    (
        "root certificate file",
        "The secure connection failed: there is no root certificate file (sslrootcert).",
    ),
    ("invalid response to ssl", "What answers at that host and port is not PostgreSQL."),
    ("definition of service", "The dsn names a service that pg_service.conf does not define."),
    ("password authentication failed", "The database did not accept the user name or password."),
    ("no password supplied", "The database asks for a password and none was given."),
    ("peer authentication failed", "The database did not accept the operating-system user for that role."),
    ("no pg_hba.conf entry", "The database does not accept that user from this address (pg_hba.conf)."),
    ("unsupported startup parameter", "The pooler in front of the database refuses a setting in the dsn."),
    ("no such user", "The pooler in front of the database does not know that user."),
    ("no such database", "The pooler in front of the database does not know that database."),
    ("no more connections allowed", "The pooler in front of the database has no connection left for us."),
    ("query_wait_timeout", "The pooler in front of the database had no connection to it in time."),
    ("server_login_retry", "The pooler in front of the database cannot connect to it."),
    ('role ".*" does not exist', "The role (user) named in the dsn does not exist."),
    ('database ".*" does not exist', "The database named in the dsn does not exist on that server."),
    ("does not exist", "The database or the role named in the dsn does not exist."),
    ("too many clients", "The database has no connection left for us."),
    ("remaining connection slots", "The database has no connection left for us."),
    ("connection refused", "The database cannot be reached: the connection was refused."),
    ("no such file or directory", "The database cannot be reached: its socket does not exist."),
    ("could not translate host name", "The database cannot be reached: its host name is unknown."),
    ("name or service not known", "The database cannot be reached: its host name is unknown."),
    ("failed to resolve host", "The database cannot be reached: its host name is unknown."),
    ("starting up", "The database is starting up."),
    ("timeout expired", "The database cannot be reached: no answer in time."),
    ("timed out", "The database cannot be reached: no answer in time."),
    ("couldn't get a connection", "The database cannot be reached: no connection in time."),
    ("invalid", "The dsn holds a value that is not valid."),
    ("certificate", "The secure connection to the database failed: its certificate was not accepted."),
    ("ssl", "The secure connection to the database failed."),
)


def _why_unreachable(text: str) -> tuple[str, str]:
    """The reason as a sentence, and what to do."""
    lowered = text.lower()
    for fragment, sentence in _REASONS:
        if re.search(fragment, lowered):
            return sentence, _HINTS.get(fragment, _CHECK_DSN)
    return "The connection to the database was lost or could not be made.", _CHECK_DSN


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0].rstrip(".") if text else ""
