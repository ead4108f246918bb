"""The durable queue between the host and the database: one SQLite file per HERMES_HOME.

``put`` returns as soon as the operation is in the file, so it survives the death of the process (not of the
machine's power) and waits for nobody. The drain (``drain.py``) takes operations out in order. Everything here
is safe for threads, for several processes on one home, and over a fork.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

__all__ = ["Counts", "Outbox", "Poison"]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many operations wait for the database, rows wait for a vector, and operations are set aside."""

    waiting: int
    sent: int
    poison: int


@dataclass(frozen=True, slots=True)
class Poison:
    """An operation the database refused. ``arguments`` are as they were put."""

    op_id: UUID
    op: str
    identity: str | None
    arguments: Mapping[str, object]
    put_at: datetime
    code: str
    message: str
    failed_at: datetime


class Outbox:
    """The queue of one home. Get it with ``Outbox.open``; nothing in it raises into the caller.

    When the file cannot be used, operations are kept in memory (and lost with the process): one warning says
    so, ``problem`` says why, and the file is tried again every few seconds.
    """

    @classmethod
    def open(cls, home: Path | str) -> Outbox:
        """The outbox of ``home`` (``$HERMES_HOME``): one object per home and process. Opens no file yet."""
        raise NotImplementedError

    @property
    def path(self) -> Path:
        """Where the file is: ``<home>/hermes-pgsql/outbox.db``."""
        raise NotImplementedError

    @property
    def problem(self) -> str | None:
        """Why the file cannot be used at the moment, or None."""
        raise NotImplementedError

    def put(
        self,
        op: str,
        identity: str | None,
        arguments: Mapping[str, object],
        governance: Mapping[str, object] | None = None,
    ) -> UUID:
        """Accept an operation and return its id: ``op`` names a write function of the database.

        ``arguments`` are those of ``apply_ops`` without ``p_`` (content, target, session_id, ts, …; ``embed``
        False: this row never gets a vector). Text is cleaned, not redacted. Wakes the drains attached to it.
        """
        raise NotImplementedError

    def put_file(
        self,
        identity: str | None,
        target: str,
        path: Path | str,
        source: UUID,
        governance: Mapping[str, object] | None = None,
    ) -> UUID:
        """Accept "make the database equal to this memory file": it is read when the operation is sent.

        Markers for the same file that were not sent yet become one, at the place of the last.
        """
        raise NotImplementedError

    def depth(self) -> int:
        """How many operations the database does not have yet."""
        raise NotImplementedError

    def oldest(self) -> datetime | None:
        """When the oldest of them was put, or None."""
        raise NotImplementedError

    def counts(self) -> Counts:
        raise NotImplementedError

    def in_memory(self) -> int:
        """How many operations are in memory only, because the file cannot be used."""
        raise NotImplementedError

    def poison(self, limit: int = 100) -> list[Poison]:
        """The operations that were set aside, oldest first."""
        raise NotImplementedError

    def retry(self, op_id: UUID) -> bool:
        """Put one that was set aside at the end of the queue; whether there was one."""
        raise NotImplementedError

    def drop(self, op_id: UUID) -> bool:
        """Forget one that was set aside; whether there was one."""
        raise NotImplementedError
