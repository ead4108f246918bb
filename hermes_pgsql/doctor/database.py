"""The database: can it be reached, is its schema this package's, and what does it say of itself."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast

from hermes_pgsql.doctor.finding import Finding, State, failure, fine, unknown, warning
from hermes_pgsql.errors import DatabaseFailure, HermesPgsqlError, NotMigrated
from hermes_pgsql.installing import install_again, install_newer

if TYPE_CHECKING:
    from hermes_pgsql.config import Settings
    from hermes_pgsql.results import Health

AREA: Final = "database"
_SECONDS: Final = 20.0
_SKEW: Final = 10.0  # seconds
_SLOW: Final = 0.5
_MIGRATE: Final = "hermes-pgsql migrate --admin-dsn DSN"
#: Checks whose answer is about the login that asks: the administrator's answer is another one.
_OF_THE_LOGIN: Final = frozenset({"login", "timeouts", "binding", "bound themes"})


@dataclass
class Look:
    """What the database said, to the agents' login and (where there is one) to an administrator."""

    dsn: str | None = None
    problem: Finding | None = None
    seconds: float = 0.0
    skew: float | None = None
    health: Sequence[Health] = ()
    admin_health: Sequence[Health] = ()
    admin_problem: str | None = None
    spaces: list[Mapping[str, Any]] | None = field(default=None)


def look(settings: Settings) -> Look:
    """Ask the database once. An embedded server that does not run is not started."""
    seen = Look()
    try:
        seen.dsn = _dsn(settings, seen)
    except HermesPgsqlError as error:
        seen.problem = failure(AREA, "dsn", error.message, error.hint)
    if seen.dsn is None:
        return seen
    _ask(settings, seen)
    return seen


def checks(seen: Look) -> Generator[Finding]:
    yield _driver()
    if seen.problem is not None:
        yield seen.problem
        yield unknown(
            AREA,
            "state",
            "not looked at, because the database does not answer",
            "mend that first, then run: hermes-pgsql doctor",
        )
        return
    yield _answers(seen)
    yield _clock(seen)
    yield _schema(seen)
    if seen.admin_problem is not None:
        yield warning(
            AREA, "administrator", seen.admin_problem, "correct --admin-dsn or HERMES_PGSQL_ADMIN_DSN"
        )
    yield from _health(seen)


def _dsn(settings: Settings, seen: Look) -> str | None:
    from hermes_pgsql.opening import wants_embedded

    if not wants_embedded(settings):
        return settings.dsn
    from hermes_pgsql import embedded

    status = embedded.status()
    if status.server is None:
        seen.problem = warning(
            AREA,
            "embedded server",
            f"the embedded server is {status.state}; it starts with the next session",
            "hermes-pgsql up",
        )
        return None
    return status.server.runtime_dsn


def _ask(settings: Settings, seen: Look) -> None:
    from hermes_pgsql.client import Memvec

    memvec = Memvec(seen.dsn or "", timeout=_SECONDS)
    try:
        memvec.schema_version()  # so that what is timed is an answer, not a connection being made
        began, before = monotonic(), time.time()
        seen.health = memvec.health()
        after, seen.seconds = time.time(), monotonic() - began
    except HermesPgsqlError as error:
        seen.problem = _no_answer(error)
        return
    clock = _value(seen.health, "clock")
    if clock is not None:
        server = float(clock["epoch"])
        # Between the two moments it was asked; a slow answer is no skew.
        seen.skew = min(0.0, server - before) + max(0.0, server - after)
    seen.spaces = _value(seen.health, "spaces")
    administrator = _admin_dsn(settings)
    if administrator is not None:
        try:
            seen.admin_health = Memvec(administrator, timeout=_SECONDS).health()
        except HermesPgsqlError as error:
            seen.admin_problem = f"the administrator's database does not answer: {_with_place(error)}"


def _admin_dsn(settings: Settings) -> str | None:
    if settings.admin_dsn is not None:
        return settings.admin_dsn
    from hermes_pgsql import embedded
    from hermes_pgsql.opening import wants_embedded

    server = embedded.status().server if wants_embedded(settings) else None
    return None if server is None else server.admin_dsn


def _no_answer(error: HermesPgsqlError) -> Finding:
    if isinstance(error, NotMigrated):
        return failure(AREA, "schema", f"{error.message}", _MIGRATE)
    if isinstance(error, DatabaseFailure) and error.sqlstate == "42501":
        return failure(AREA, "rights", error.message, f"{_MIGRATE} --runtime-role ROLE")
    return failure(
        AREA, "connection", _with_place(error), error.hint or "Check the dsn, and that the server runs."
    )


def _with_place(error: HermesPgsqlError) -> str:
    return " ".join(filter(None, (error.message, error.detail)))


def _driver() -> Finding:
    import psycopg

    implementation, library = psycopg.pq.__impl__, psycopg.pq.version()
    said = f"psycopg {psycopg.__version__} ({implementation}), libpq {library // 10000}.{library % 10000}"
    if implementation == "python" or library < 140000:
        return warning(AREA, "driver", f"{said} is slow or old", "pip install 'psycopg[binary]>=3.2.2'")
    return fine(AREA, "driver", said)


def _answers(seen: Look) -> Finding:
    said = f"the database answers in {1000 * seen.seconds:,.0f} ms"
    if seen.seconds > _SLOW:
        return warning(AREA, "connection", said, "SELECT * FROM pg_stat_activity WHERE state = 'active';")
    return fine(AREA, "connection", said)


def _clock(seen: Look) -> Finding:
    if seen.skew is None:
        return unknown(AREA, "clock", "the database did not tell its time", _MIGRATE)
    if abs(seen.skew) <= _SKEW:
        return fine(AREA, "clock", "this host and the database agree about the time")
    ahead = "ahead of" if seen.skew > 0 else "behind"
    return warning(
        AREA,
        "clock",
        f"the database is {abs(seen.skew):,.0f} s {ahead} this host: turns get wrong times",
        "timedatectl set-ntp true   (on the one that is wrong)",
    )


def _schema(seen: Look) -> Finding:
    """Whether the schema is the one this package brings, file by file."""
    from hermes_pgsql.migrate import db_files

    found = _value(seen.health, "version", area="schema")
    ours = {file.name: file.sha256 for file in db_files().migrations}
    if found is None:
        return unknown(AREA, "schema", "the database did not tell its version", _MIGRATE)
    theirs = cast("dict[str, str]", found["files"])
    if sorted(theirs) > sorted(ours) and theirs.keys() > ours.keys():
        return failure(
            AREA,
            "schema",
            f"the schema (version {found['version']}) is newer than this package",
            install_newer(),
        )
    if missing := sorted(ours.keys() - theirs.keys()):
        return failure(AREA, "schema", f"the schema lacks {', '.join(missing)} of this package", _MIGRATE)
    if changed := sorted(name for name in ours if theirs.get(name) != ours[name]):
        return failure(
            AREA,
            "schema",
            f"the files of the package differ from those that were applied: {', '.join(changed)}",
            install_again(),
        )
    return fine(AREA, "schema", f"the schema is at version {found['version']}, as this package needs")


def _health(seen: Look) -> Generator[Finding]:
    """What ``memvec.health()`` found; what the agents' login is not told, from the administrator's answer."""
    admin = {(row.area, row.name): row for row in seen.admin_health}
    for row in seen.health:
        if (row.area, row.name) in {("server", "clock"), ("schema", "version")}:
            continue  # compared above
        if row.name not in _OF_THE_LOGIN:
            row = admin.get((row.area, row.name), row)
        yield Finding(row.area, row.name, State(row.state), row.message, row.fix or "")


def _value(health: Sequence[Health], name: str, area: str | None = None) -> Any:
    return next((row.value for row in health if row.name == name and area in (None, row.area)), None)
