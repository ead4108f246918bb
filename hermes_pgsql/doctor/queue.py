"""The outbox of the home: what waits, what the database refused, and whether the file can be used."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_pgsql.doctor.finding import Finding, failure, fine, unknown, warning
from hermes_pgsql.rights import READ, mend, obstacle

if TYPE_CHECKING:
    from hermes_pgsql.config import Settings
    from hermes_pgsql.outbox import Outbox

AREA: Final = "outbox"
_OLD: Final = 300.0  # seconds that an operation may wait while agents run
_MANY: Final = 1000


def checks(home: Path, settings: Settings) -> Generator[Finding]:
    del settings
    from hermes_pgsql.outbox import Outbox

    outbox = Outbox.open(home)
    if (found := obstacle(outbox.path, READ)) is not None:
        yield unknown(
            AREA, "file", f"{outbox.path} cannot be looked at ({found} cannot be read)", mend(found, READ)
        )
        return
    if not outbox.path.exists():
        yield fine(AREA, "file", "there is none yet: no agent has written anything")
        return
    counts = outbox.counts()
    if outbox.problem is not None:
        yield failure(
            AREA,
            "file",
            f"{outbox.path} cannot be used ({outbox.problem}); what is accepted is lost with the process",
            f"ls -la {outbox.path.parent}; df {outbox.path.parent}   (then mend rights or make room)",
        )
        return
    yield fine(AREA, "file", str(outbox.path))
    yield _backlog(outbox, counts.waiting)
    yield _vectors(outbox, counts.sent)
    yield _refused(counts.poison)
    yield _damaged(outbox)
    yield _account(outbox)


def _backlog(outbox: Outbox, waiting: int) -> Finding:
    oldest = outbox.oldest()
    age = 0.0 if oldest is None else (datetime.now(UTC) - oldest).total_seconds()
    if age < _OLD and waiting < _MANY:
        return fine(AREA, "backlog", f"{waiting:,} operations wait")
    return warning(
        AREA,
        "backlog",
        f"{waiting:,} operations wait for the database, the oldest for {age / 60:,.0f} minutes;"
        " agents send them when they run and the database answers",
        "hermes-pgsql outbox   (mend what is said about the database here; the next session sends them)",
    )


def _vectors(outbox: Outbox, outstanding: int) -> Finding:
    trouble = outbox.vector_trouble() if outstanding else None
    if trouble is None:
        return fine(AREA, "vectors", f"{outstanding:,} stored rows wait for their vector")
    minutes = (datetime.now(UTC) - trouble.at).total_seconds() / 60
    return warning(
        AREA,
        "vectors",
        f"{outstanding:,} stored rows wait for their vector and are found by words;"
        f" {minutes:,.0f} minutes ago that failed: {trouble.message}",
        "mend what is said about embedding here; agents try again when they run",
    )


def _refused(poison: int) -> Finding:
    if not poison:
        return fine(AREA, "refused", "the database refused nothing")
    return warning(
        AREA,
        "refused",
        f"the database refused {poison:,} operations, which were set aside",
        "hermes-pgsql outbox   (then --retry ID or --drop ID for each)",
    )


def _damaged(outbox: Outbox) -> Finding:
    damaged = outbox.damaged_files()
    if not damaged:
        return fine(AREA, "damage", "no outbox was ever found damaged")
    return warning(
        AREA,
        "damage",
        f"{len(damaged)} damaged files were set aside; what they hold was not sent",
        f"sqlite3 {damaged[-1]} '.recover'   (look what is in it, then remove it)",
    )


def _account(outbox: Outbox) -> Finding:
    account = outbox.account()
    if account is None or account[1] == 0:
        return fine(AREA, "account", "every accepted operation is accounted for")
    return failure(
        AREA,
        "account",
        f"{account[1]:,} accepted operations are neither waiting nor sent nor refused",
        "hermes-pgsql outbox --json   (and report it as a bug: this cannot happen)",
    )
