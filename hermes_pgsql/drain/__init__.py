"""The background worker of one database: carries what the outboxes hold to it, text first, vectors later.

One drain per DSN and process, shared by every home and provider. It has two daemon threads, so that an
endpoint that hangs never holds up text: one sends operations (text.py), one embeds what was written
(vectors.py). They start with the first work and hold nobody alive. Nothing depends on their being stopped,
since what is not carried out stays in the outbox for the next process.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Final

from hermes_pgsql.drain.state import Home, State, embedder_key
from hermes_pgsql.drain.text import TextCarrier
from hermes_pgsql.drain.vectors import VectorCarrier
from hermes_pgsql.embedding import Embedder
from hermes_pgsql.outbox import Outbox

__all__ = ["Drain", "DrainStatus"]

_STOP_WAIT: Final = 0.5


@dataclass(frozen=True, slots=True)
class DrainStatus:
    """How the drain is doing. Counts of ``sent`` to ``given_up`` are of this process, the rest is now."""

    waiting: int  # operations the database does not have yet, over all attached outboxes
    vectors_waiting: int
    poison: int
    in_memory: int
    oldest: datetime | None
    sent: int
    poisoned: int
    embedded: int
    given_up: int  # rows that will get no vector from here (permanent failures)
    retry_in: float | None  # seconds until the database is tried again, None when it is not failing
    last_error: str | None  # of the database; None once it works
    embed_retry_in: float | None
    embed_error: str | None


_lock = threading.Lock()
_drains: dict[str, Drain] = {}


class Drain:
    """The drain of one DSN. Get it with ``Drain.for_dsn``; it contacts nobody until there is work."""

    def __init__(self, dsn: str) -> None:
        self._state: State = State(dsn)
        self._vectors: VectorCarrier = VectorCarrier(self._state)
        self._text: TextCarrier = TextCarrier(self._state, self._vectors.worker)

    @classmethod
    def for_dsn(cls, dsn: str) -> Drain:
        """This process's drain for ``dsn`` (the resolved one, never ``embedded``). Never fails."""
        with _lock:
            return _drains.setdefault(dsn, cls(dsn))

    def attach(
        self,
        outbox: Outbox,
        embedder: Embedder | None,
        *,
        embed_timeout: float = 30.0,
        redact: Callable[[str], str] | None = None,
        revive: Callable[[], object] | None = None,
    ) -> Embedder | None:
        """Serve ``outbox`` from now on; a later call for the same one replaces these settings.

        ``embedder`` None: rows get no vector from here. ``redact`` is applied to entries of memory files (all
        else is redacted before ``put``). ``revive`` is called now and then, in the drain's thread, while the
        database cannot be reached (to start an embedded server). The callables must not hold a provider.
        Returns the embedder in use: an equal one attached earlier is kept, with its connections.
        """
        with _lock:
            known = self._state.homes.get(outbox.path)
            if embedder is not None:
                embedder = next(
                    (e for e in self._state.embedders() if embedder_key(e) == embedder_key(embedder)),
                    embedder,
                )
            home = Home(outbox) if known is None else known
            home.embedder = embedder
            home.embed_timeout = embed_timeout
            home.redact = redact
            home.revive = revive
            # A home has one database: the one of its newest configuration.
            for other in _drains.values():
                if other is not self:
                    other.detach(outbox)
            # A new dict, so that the threads may go through the old one meanwhile.
            self._state.homes = {**self._state.homes, outbox.path: home}
        outbox.subscribe(self._text.new_work)
        self.wake()
        return embedder

    def detach(self, outbox: Outbox) -> None:
        """Serve ``outbox`` no more. What is in it stays there."""
        self._state.homes = {path: home for path, home in self._state.homes.items() if path != outbox.path}
        outbox.unsubscribe(self._text.new_work)

    def wake(self) -> None:
        """Look for work now. ``Outbox.put`` does this by itself."""
        self._text.worker.wake()
        if self._vectors.worker.started():
            self._vectors.worker.wake()

    def flush(self, timeout: float, outbox: Outbox | None = None) -> bool:
        """Wait until the text of everything put before is in the database; False when it is not.

        Tries at once even during a back-off, and returns early when that fails. ``outbox`` None: all.
        """
        marks = [(each, each.mark()) for each in self._outboxes(outbox)]
        return self._wait(timeout, lambda: all(each.reached(mark) for each, mark in marks))

    def flush_vectors(self, timeout: float, outbox: Outbox | None = None) -> bool:
        """Like ``flush``, for text and vectors: True when nothing waits for either.

        Vectors of a home that has no embedder are not waited for.
        """
        outboxes = self._outboxes(outbox)
        embedding = [
            home.outbox
            for home in self._state.homes.values()
            if home.embedder is not None and home.outbox in outboxes
        ]
        self._vectors.hurry()
        return self._wait(
            timeout,
            lambda: (
                not any(each.has_waiting() for each in outboxes)
                and all(each.next_vector() is None for each in embedding)
            ),
        )

    def status(self) -> DrainStatus:
        """What waits, what was done and what fails, at this moment."""
        homes = list(self._state.homes.values())
        counts = [home.outbox.counts() for home in homes]
        oldest = [moment for home in homes if (moment := home.outbox.oldest()) is not None]
        database = self._state.database
        tally = self._state.tally
        failing = self._vectors.failing()
        return DrainStatus(
            waiting=sum(each.waiting for each in counts),
            vectors_waiting=sum(each.sent for each in counts),
            poison=sum(each.poison for each in counts),
            in_memory=sum(home.outbox.in_memory() for home in homes),
            oldest=min(oldest) if oldest else None,
            sent=tally.sent,
            poisoned=tally.poisoned,
            embedded=tally.embedded,
            given_up=tally.given_up,
            retry_in=None if database.error is None else database.wait(),
            last_error=database.error,
            embed_retry_in=max(each.wait() for each in failing) if failing else None,
            embed_error=failing[0].error if failing else None,
        )

    def _outboxes(self, only: Outbox | None) -> list[Outbox]:
        return [home.outbox for home in self._state.homes.values()] if only is None else [only]

    def _wait(self, timeout: float, done: Callable[[], bool]) -> bool:
        deadline = monotonic() + timeout
        if done():
            return True
        outages = self._text.outages
        self._text.hurry()
        while True:
            remaining = deadline - monotonic()
            if remaining <= 0:
                return False
            with self._state.progress:
                self._state.progress.wait(min(remaining, 0.05))
            if done():
                return True
            if self._text.outages > outages or self._text.worker.stopping:
                return False

    # Ends and forks ------------------------------------------------------------

    def stop(self, timeout: float = _STOP_WAIT) -> None:
        """End the threads, waiting at most ``timeout`` seconds; for the end of the process."""
        deadline = monotonic() + timeout
        workers = (self._text.worker, self._vectors.worker)
        for worker in workers:
            worker.stopping = True
        for worker in workers:
            worker.stop(max(0.0, deadline - monotonic()))

    def write_meters(self) -> None:
        """Write down what was counted for the homes of this drain."""
        for home in self._state.homes.values():
            home.outbox.write_meter()

    def after_fork_in_child(self) -> None:
        """Forget the parent's threads; new ones start with the first work here."""
        self._state.after_fork_in_child()
        self._text.worker.reset()
        self._vectors.after_fork_in_child()


def _stop_all() -> None:
    deadline = monotonic() + _STOP_WAIT
    for drain in list(_drains.values()):
        drain.stop(max(0.0, deadline - monotonic()))
        drain.write_meters()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    for drain in _drains.values():
        drain.after_fork_in_child()


atexit.register(_stop_all)
os.register_at_fork(after_in_child=_after_fork_in_child)
