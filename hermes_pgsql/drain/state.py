"""What the two sides of a drain share: the homes they serve, how the database does, and what was done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_pgsql.drain.worker import Backoff
from hermes_pgsql.embedding import Embedder
from hermes_pgsql.errors import HermesPgsqlError, IsolationTooHigh, NotMigrated, is_retryable
from hermes_pgsql.outbox import Outbox

if TYPE_CHECKING:
    from hermes_pgsql.client import Memvec

__all__ = [
    "BATCH",
    "CLAIM_POLL",
    "IDLE",
    "VECTOR_SLICE",
    "Home",
    "State",
    "Tally",
    "embedder_key",
    "is_about_values",
    "rotated",
]

BATCH: Final = 200  # operations
#: Rows for one request to an endpoint, and for the first attempt.
VECTOR_SLICE: Final = 16
IDLE: Final = 5.0  # seconds between looks for work that another process left
CLAIM_POLL: Final = 0.03
_CALL_TIMEOUT: Final = 45.0  # above the server's own limit for a statement

# What a whole batch may fail with because of one operation in it: values, constraints, sizes, our own
# refusals. Everything else (rights, missing functions, disk) would hit any operation, and sets none aside.
_GUILTY_CLASSES: Final = frozenset({"21", "22", "23", "54", "MV", "P0"})


@dataclass
class Tally:
    """What this process has done."""

    sent: int = 0
    poisoned: int = 0
    embedded: int = 0
    given_up: int = 0


@dataclass
class Home:
    """An attached outbox and how to serve it."""

    outbox: Outbox
    embedder: Embedder | None = None
    #: What the outbox says of its vectors, and when that was written; unknown at first.
    trouble: tuple[str | None, float] = ("", 0.0)
    embed_timeout: float = 30.0
    redact: Callable[[str], str] | None = None
    revive: Callable[[], object] | None = None
    batch: int = BATCH
    vector_batch: int = VECTOR_SLICE
    lone_timeouts: tuple[str, int] = ("", 0)

    def model(self) -> str | None:
        return None if self.embedder is None else embedder_key(self.embedder)


@dataclass
class State:
    """One for each drain; its threads and its callers read and write it without a lock, a field at a time."""

    dsn: str
    homes: Mapping[Path, Home] = field(default_factory=dict[Path, Home])
    database: Backoff = field(default_factory=Backoff)
    tally: Tally = field(default_factory=Tally)
    #: Text is behind by more than a batch.
    behind: bool = False
    progress: threading.Condition = field(default_factory=threading.Condition)

    def memvec(self, governance: Mapping[str, object] | None = None) -> Memvec:
        """A client of the database, with a host's rules where a row has them."""
        from hermes_pgsql.client import Memvec  # here: importing the driver takes a while

        return Memvec(self.dsn, governance, timeout=_CALL_TIMEOUT)

    def embedders(self) -> Iterable[Embedder]:
        return (home.embedder for home in self.homes.values() if home.embedder is not None)

    def moved(self) -> None:
        """Tell those who wait for the drain that something changed."""
        with self.progress:
            self.progress.notify_all()

    def after_fork_in_child(self) -> None:
        self.progress = threading.Condition()
        self.tally = Tally()
        self.database.succeed()


def embedder_key(embedder: Embedder) -> str:
    """What makes two embedders the same: their vectors can stand for each other's."""
    return "\n".join((embedder.endpoint, embedder.model, embedder.query_prefix, embedder.document_prefix))


def rotated(homes: Iterable[Home], turn: int) -> list[Home]:
    """The homes, each time beginning with another one."""
    listed = list(homes)
    start = turn % len(listed) if listed else 0
    return listed[start:] + listed[:start]


def is_about_values(error: HermesPgsqlError) -> bool:
    """Whether other values might have been accepted, so that these are to blame."""
    state = getattr(error, "sqlstate", None)
    if not isinstance(state, str) or is_retryable(error) or isinstance(error, NotMigrated | IsolationTooHigh):
        return False
    return state[:2] in _GUILTY_CLASSES
