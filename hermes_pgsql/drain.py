"""The background worker of one database: carries what the outboxes hold to it, text first, vectors later.

One drain per DSN and process, shared by every home and provider. It has two daemon threads, so that an
endpoint that hangs never holds up text: one sends operations, one embeds what was written. They start with
the first work and hold nobody alive. Nothing depends on their being stopped, since what is not carried out
stays in the outbox for the next process.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, cast
from uuid import uuid4

from hermes_pgsql.embedding import Embedder, Embedding, EmbeddingFailure
from hermes_pgsql.errors import (
    ConfigError,
    DatabaseUnavailable,
    HermesPgsqlError,
    IsolationTooHigh,
    NotMigrated,
    UnknownSpace,
    WrongDimension,
    failure_kind,
    is_retryable,
    is_retryable_sqlstate,
)
from hermes_pgsql.memory_file import read_entries
from hermes_pgsql.outbox import Batch, Outbox, VectorBatch
from hermes_pgsql.outbox_store import Operation, Refusal, VectorJob

if TYPE_CHECKING:
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.results import OpResult

__all__ = ["Drain", "DrainStatus"]

BATCH: Final = 200  # operations
BATCH_CHARS: Final = 4_000_000
VECTOR_BATCH: Final = 128  # rows
#: Rows for one request to an endpoint, and for the first attempt; requests of one batch run side by side.
VECTOR_SLICE: Final = 16
#: Batches of vectors grow while they take less than this, so that a question never waits long behind one.
_QUICK_BATCH: Final = 0.25  # seconds
#: While text is behind by more than a batch, vectors wait, but never longer than this.
_TEXT_FIRST: Final = 2.0
_TEXT_FIRST_POLL: Final = 0.05
VECTOR_BATCH_CHARS: Final = 1_000_000
IDLE: Final = 5.0  # seconds between looks for work that another process left
_CLAIM_POLL: Final = 0.03
_FIRST_PAUSE: Final = 0.25
#: The longest pause between attempts, in seconds. A database that cannot be reached is asked more often than
#: one that is there and refuses, because it may come back at any moment.
UNAVAILABLE_CAP: Final = 4.0
FAILURE_CAP: Final = 30.0
_LONGEST_ASKED: Final = 300.0
#: New work does not wait longer than this for the next attempt.
_EAGER_PAUSE: Final = 2.0
_REVIVE_EVERY: Final = 15.0
_HOUSEKEEPING_EVERY: Final = 600.0
_METER_EVERY: Final = 1.0
_CALL_TIMEOUT: Final = 45.0  # above the server's own limit for a statement
EMBED_ATTEMPTS: Final = 8
EMBED_RETRY: Final = 10.0  # doubles with each attempt
LONE_TIMEOUTS: Final = 20
#: Who changed a memory file is heard by its hook, a moment later; until then the file is not read.
_FRESH_FILE: Final = 0.3
_AFTER_YOU: Final = 0.005
_GIVE_WAY: Final = 0.0003
_STOP_WAIT: Final = 0.5

# What a whole batch may fail with because of one operation in it: values, constraints, sizes, our own
# refusals. Everything else (rights, missing functions, disk) would hit any operation, and sets none aside.
_GUILTY_CLASSES: Final = frozenset({"21", "22", "23", "54", "MV", "P0"})
_TIMEOUT_STATE: Final = "57014"

log = logging.getLogger(__name__)


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


@dataclass
class _Tally:
    sent: int = 0
    poisoned: int = 0
    embedded: int = 0
    given_up: int = 0


@dataclass
class _Backoff:
    """Growing pauses between attempts at something that fails."""

    cap: float = FAILURE_CAP
    failures: int = 0
    error: str | None = None
    failed_at: float = 0.0
    retry_at: float = 0.0

    def fail(self, error: str, cap: float | None = None, asked: float | None = None) -> None:
        """``asked``: the pause in seconds that the other side wants; some minutes of it are kept."""
        self.failures += 1
        pause = min(self.cap if cap is None else cap, _FIRST_PAUSE * 2 ** min(self.failures - 1, 10))
        pause *= random.uniform(0.75, 1.0)  # noqa: S311 (no secret)
        self.error = error
        self.failed_at = monotonic()
        self.retry_at = self.failed_at + max(pause, min(asked or 0.0, _LONGEST_ASKED))

    def succeed(self) -> None:
        self.failures = 0
        self.error = None
        self.retry_at = 0.0

    def wait(self) -> float:
        """Seconds until the next attempt."""
        return max(0.0, self.retry_at - monotonic())

    def hurry(self, longest: float) -> None:
        """Let the next attempt be at most ``longest`` seconds after the last one."""
        self.retry_at = min(self.retry_at, self.failed_at + longest)


@dataclass
class _Endpoint:
    """What is known about one embedder: when to ask it again, and the space of its model here."""

    backoff: _Backoff = field(default_factory=_Backoff)
    space: int | None = None
    warned: str | None = None


@dataclass
class _Home:
    """An attached outbox and how to serve it."""

    outbox: Outbox
    embedder: Embedder | None = None
    embed_timeout: float = 30.0
    redact: Callable[[str], str] | None = None
    revive: Callable[[], object] | None = None
    batch: int = BATCH
    vector_batch: int = VECTOR_SLICE
    lone_timeouts: tuple[str, int] = ("", 0)

    def model(self) -> str | None:
        return None if self.embedder is None else _key(self.embedder)


class _Worker:
    """A daemon thread that calls ``round`` again and again, pausing as long as it says or until woken."""

    def __init__(self, name: str, work: Callable[[], float]) -> None:
        self._name: str = name
        self._work: Callable[[], float] = work
        self.reset()

    def reset(self) -> None:
        self._lock: threading.Lock = threading.Lock()
        self._event: threading.Event = threading.Event()
        self._thread: threading.Thread | None = None
        self.stopping: bool = False

    def wake(self) -> None:
        """Have the next round now; starts the thread if there is none."""
        self._event.set()
        if not self.started() and not self.stopping:
            with self._lock:
                if not self.started():
                    self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                    try:
                        self._thread.start()
                    except RuntimeError:  # the interpreter is ending; the outbox keeps what there is
                        self._thread = None

    def started(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def stop(self, timeout: float) -> None:
        self.stopping = True
        self._event.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _run(self) -> None:
        while not self.stopping:
            self._event.clear()
            try:
                pause = self._work()
            except Exception:
                log.exception("The %s thread met an error it does not know.", self._name)
                pause = FAILURE_CAP
            if not self.stopping and pause > 0 and self._event.wait(pause):
                # Whoever put something is still in the host's hook: leave the interpreter to it.
                time.sleep(_AFTER_YOU)


_lock = threading.Lock()
_drains: dict[str, Drain] = {}


class Drain:
    """The drain of one DSN. Get it with ``Drain.for_dsn``; it contacts nobody until there is work."""

    def __init__(self, dsn: str) -> None:
        self._dsn: str = dsn
        self._homes: dict[Path, _Home] = {}
        self._endpoints: dict[str, _Endpoint] = {}
        self._database: _Backoff = _Backoff()
        self._vector_store: _Backoff = _Backoff()
        self._tally: _Tally = _Tally()
        self._revived_at: float = 0.0
        self._outages: int = 0
        self._new_work: bool = False
        self._worked: bool = False
        self._behind: bool = False
        self._embedded_at: float = 0.0
        self._turn: int = 0
        self._vector_turn: int = 0
        self._text: _Worker = _Worker("hermes-pgsql-drain", self._text_round)
        self._vectors: _Worker = _Worker("hermes-pgsql-vectors", self._vector_round)
        self._progress: threading.Condition = threading.Condition()

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
            known = self._homes.get(outbox.path)
            if embedder is not None:
                embedder = next((e for e in self._embedders() if _key(e) == _key(embedder)), embedder)
            home = _Home(outbox) if known is None else known
            home.embedder = embedder
            home.embed_timeout = embed_timeout
            home.redact = redact
            home.revive = revive
            # A home has one database: the one of its newest configuration.
            for other in _drains.values():
                if other is not self:
                    other.detach(outbox)
            # A new dict, so that the threads may go through the old one meanwhile.
            self._homes = {**self._homes, outbox.path: home}
        outbox.subscribe(self._on_put)
        self.wake()
        return embedder

    def detach(self, outbox: Outbox) -> None:
        """Serve ``outbox`` no more. What is in it stays there."""
        self._homes = {path: home for path, home in self._homes.items() if path != outbox.path}
        outbox.unsubscribe(self._on_put)

    def wake(self) -> None:
        """Look for work now. ``Outbox.put`` does this by itself."""
        self._text.wake()
        if self._vectors.started():
            self._vectors.wake()

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
            for home in self._homes.values()
            if home.embedder is not None and home.outbox in outboxes
        ]
        for endpoint in self._endpoints.values():
            endpoint.backoff.hurry(0.0)
        self._vectors.wake()
        return self._wait(
            timeout,
            lambda: (
                not any(each.has_waiting() for each in outboxes)
                and all(each.next_vector() is None for each in embedding)
            ),
        )

    def status(self) -> DrainStatus:
        """What waits, what was done and what fails, at this moment."""
        homes = list(self._homes.values())
        counts = [home.outbox.counts() for home in homes]
        oldest = [moment for home in homes if (moment := home.outbox.oldest()) is not None]
        failing = [each.backoff for each in self._endpoints.values() if each.backoff.error is not None]
        if self._vector_store.error is not None:
            failing.append(self._vector_store)
        return DrainStatus(
            waiting=sum(each.waiting for each in counts),
            vectors_waiting=sum(each.sent for each in counts),
            poison=sum(each.poison for each in counts),
            in_memory=sum(home.outbox.in_memory() for home in homes),
            oldest=min(oldest) if oldest else None,
            sent=self._tally.sent,
            poisoned=self._tally.poisoned,
            embedded=self._tally.embedded,
            given_up=self._tally.given_up,
            retry_in=None if self._database.error is None else self._database.wait(),
            last_error=self._database.error,
            embed_retry_in=max(each.wait() for each in failing) if failing else None,
            embed_error=failing[0].error if failing else None,
        )

    # Waiting for it ------------------------------------------------------------

    def _on_put(self) -> None:
        self._new_work = True
        self._text.wake()

    def _outboxes(self, only: Outbox | None) -> list[Outbox]:
        return [home.outbox for home in self._homes.values()] if only is None else [only]

    def _wait(self, timeout: float, done: Callable[[], bool]) -> bool:
        deadline = monotonic() + timeout
        if done():
            return True
        outages = self._outages
        self._database.hurry(0.0)
        self._text.wake()
        while True:
            remaining = deadline - monotonic()
            if remaining <= 0:
                return False
            with self._progress:
                self._progress.wait(min(remaining, 0.05))
            if done():
                return True
            if self._outages > outages or self._text.stopping:
                return False

    def _moved(self) -> None:
        with self._progress:
            self._progress.notify_all()

    def _memvec(self) -> Memvec:
        from hermes_pgsql.client import Memvec  # here: importing the driver takes a while

        return Memvec(self._dsn, timeout=_CALL_TIMEOUT)

    def _embedders(self) -> Iterable[Embedder]:
        return (home.embedder for home in self._homes.values() if home.embedder is not None)

    # Text ------------------------------------------------------------

    def _text_round(self) -> float:
        """One batch of each home; returns how long to pause."""
        for home in self._homes.values():
            home.outbox.write_meter(_METER_EVERY)
        if self._new_work:
            self._new_work = False
            self._database.hurry(_EAGER_PAUSE)
        pause = self._database.wait()
        if pause > 0:
            return pause
        self._turn += 1
        pause = IDLE
        for home in _rotated(self._homes.values(), self._turn):
            if not home.outbox.has_waiting():
                continue
            if not home.outbox.claim("text"):
                pause = min(pause, _CLAIM_POLL)
                continue
            try:
                pause = min(pause, self._carry(home))
            except HermesPgsqlError as error:
                self._database_failed(home, error)
                return self._database.wait()
            finally:
                home.outbox.release("text")
        if pause > 0 and not self._new_work:
            self._rest()
        return pause

    def _carry(self, home: _Home) -> float:
        """Send one batch; returns how long to pause. Raises what the database's failures are."""
        batch = home.outbox.take(home.batch, BATCH_CHARS)
        self._behind = batch is not None and len(batch.operations) >= home.batch
        if batch is None:
            return IDLE
        operations = _before_fresh_file(batch.operations)
        if not operations:
            return _FRESH_FILE / 2
        _give_way()
        settled = self._apply(home, batch, operations)
        home.batch = min(BATCH, home.batch * 2)
        self._database_works()
        self._worked = True
        self._moved()
        if home.embedder is not None and home.outbox.next_vector() is not None:
            self._vectors.wake()
        if not settled:
            # The file cannot be written now; whatever is in memory gets its turn meanwhile.
            time.sleep(_CLAIM_POLL)
        return 0.0

    def _apply(self, home: _Home, batch: Batch, operations: Sequence[Operation]) -> bool:
        """Send these operations and settle them; False when that could not be noted.

        When the database refuses them as a whole, they are sent in halves, until the guilty one is alone.
        """
        ready, refused, skipped = _prepare(home, operations)
        if refused or skipped:
            self._set_aside(home, batch, skipped, refused)
        if not ready:
            return True
        _give_way()
        try:
            results = self._memvec().apply_ops([request for _operation, request in ready])
        except HermesPgsqlError as error:
            if not self._is_guilty(home, error, [operation for operation, _request in ready]):
                raise
            if len(ready) == 1:
                code = str(getattr(error, "sqlstate", None) or "")
                return self._set_aside(home, batch, [], [Refusal(ready[0][0], code, error.message)])
            operations = [operation for operation, _request in ready]
            middle = len(operations) // 2
            first = self._apply(home, batch, operations[:middle])
            return self._apply(home, batch, operations[middle:]) and first
        return self._settle(home, batch, ready, results)

    def _settle(
        self,
        home: _Home,
        batch: Batch,
        ready: Sequence[tuple[Operation, dict[str, object]]],
        results: Sequence[OpResult],
    ) -> bool:
        outcomes = {str(result.op_id): result for result in results}
        done: list[Operation] = []
        refused: list[Refusal] = []
        vectors: list[VectorJob] = []
        postponed: str | None = None
        for operation, request in ready:
            result = outcomes.get(str(request["op_id"]))
            if result is None:
                postponed = "The database gave no answer for an operation."
            elif result.outcome != "error":
                done.append(operation)
                if home.embedder is not None and request.get("embed") is not False:
                    vectors += _outstanding(operation, request, result)
            elif is_retryable_sqlstate(result.error_code):
                postponed = result.message or "The database could not do an operation now."
            else:
                refused.append(Refusal(operation, result.error_code or "", result.message or ""))
        _give_way()
        noted = home.outbox.settle(batch, done, vectors, refused, home.model())
        _give_way()
        if noted:
            self._tally.sent += len(done)
            self._count_poison(home, refused)
        if postponed is not None:
            self._moved()
            raise DatabaseUnavailable(postponed)
        return noted

    def _set_aside(
        self, home: _Home, batch: Batch, skipped: Sequence[Operation], refused: Sequence[Refusal]
    ) -> bool:
        noted = home.outbox.settle(batch, skipped, (), refused)
        if noted:
            self._count_poison(home, refused)
        return noted

    def _count_poison(self, home: _Home, refused: Sequence[Refusal]) -> None:
        self._tally.poisoned += len(refused)
        for refusal in refused:
            home.outbox.meter.failure("write", "operation_refused")
            log.warning(
                "An operation (%s) was refused and set aside: %s (%s). See: hermes-pgsql outbox",
                refusal.operation.op,
                refusal.message,
                refusal.code,
            )

    def _is_guilty(self, home: _Home, error: HermesPgsqlError, operations: Sequence[Operation]) -> bool:
        """Whether one of these operations is to blame for the failure of them all."""
        state = getattr(error, "sqlstate", None)
        if state == _TIMEOUT_STATE:
            return self._too_slow(home, operations)
        return _is_about_values(error)

    def _too_slow(self, home: _Home, operations: Sequence[Operation]) -> bool:
        """Smaller batches after a timeout; one that times out alone again and again is set aside."""
        home.batch = max(1, len(operations) // 4)
        if len(operations) > 1:
            return False
        name, times = home.lone_timeouts
        times = times + 1 if name == operations[0].op_id else 1
        home.lone_timeouts = (operations[0].op_id, times)
        return times >= LONE_TIMEOUTS

    def _database_failed(self, home: _Home, error: HermesPgsqlError) -> None:
        unreachable = isinstance(error, DatabaseUnavailable)
        home.outbox.meter.failure("write", failure_kind(error))
        if isinstance(error, DatabaseUnavailable | NotMigrated | ConfigError):
            self._outages += 1
        if self._database.error is None:
            log.warning(
                "Nothing can be stored in the database now; it is kept in the outbox and sent later. %s%s",
                error,
                "\nTo see whether it is back, run: hermes memory status" if unreachable else "",
            )
        self._database.fail(str(error), UNAVAILABLE_CAP if unreachable else None)
        self._behind = False
        self._moved()
        if unreachable and home.revive is not None and monotonic() - self._revived_at > _REVIVE_EVERY:
            self._revived_at = monotonic()
            try:
                home.revive()
            except Exception as failure:  # noqa: BLE001 (somebody else's code, and the next try may work)
                log.debug("The database could not be revived: %s", type(failure).__name__)

    def _database_works(self) -> None:
        if self._database.error is not None:
            log.info("The database takes what is in the outbox again.")
        self._database.succeed()

    def _rest(self) -> None:
        """What is to be done when there is nothing to send."""
        for home in self._homes.values():
            home.outbox.tidy()
            if home.embedder and not self._vectors.started() and home.outbox.next_vector() is not None:
                self._vectors.wake()
        if not self._worked:
            return
        self._worked = False
        due = [home.outbox.due("housekeeping", _HOUSEKEEPING_EVERY) for home in self._homes.values()]
        if any(due):
            try:
                self._memvec().housekeeping()
            except HermesPgsqlError as error:
                log.debug("Housekeeping has to wait: %s", error)

    # Vectors ------------------------------------------------------------

    def _vector_round(self) -> float:
        """One batch of vectors of each home; returns how long to pause."""
        pause = max(self._vector_store.wait(), self._database.wait())
        if pause > 0:
            return pause
        if self._behind and monotonic() - self._embedded_at < _TEXT_FIRST:
            return _TEXT_FIRST_POLL
        self._embedded_at = monotonic()
        self._vector_turn += 1
        pause = IDLE
        for home in _rotated(self._homes.values(), self._vector_turn):
            due = home.outbox.next_vector()
            if home.embedder is None or due is None:
                continue
            endpoint = self._endpoints.setdefault(_key(home.embedder), _Endpoint())
            wait = max(due - time.time(), endpoint.backoff.wait())
            if wait <= 0 and not home.outbox.claim("vectors"):
                wait = _CLAIM_POLL
            elif wait <= 0:
                try:
                    self._embed(home, home.embedder, endpoint)
                except HermesPgsqlError as error:
                    home.outbox.meter.failure("embed", failure_kind(error))
                    self._vector_store_failed(error)
                    return self._vector_store.wait()
                finally:
                    home.outbox.release("vectors")
            pause = min(pause, max(wait, 0.0))
        return pause

    def _vector_store_failed(self, error: HermesPgsqlError) -> None:
        if self._vector_store.error is None:
            log.warning("Vectors cannot be stored in the database now; they follow later. %s", error)
        unreachable = isinstance(error, DatabaseUnavailable)
        self._vector_store.fail(str(error), UNAVAILABLE_CAP if unreachable else None)

    def _embed(self, home: _Home, embedder: Embedder, endpoint: _Endpoint) -> None:
        """Embed one batch and store it. Raises what the database's failures are."""
        batch = home.outbox.take_vectors(home.vector_batch, VECTOR_BATCH_CHARS)
        if batch is None:
            return
        # Before embedding, where the width is known: a model without a space here need not work for nothing.
        if embedder.dim is not None and self._space(embedder, endpoint, embedder.dim, batch) is None:
            return
        began = monotonic()
        vectors = _embed_side_by_side(embedder, [job.content for job in batch.jobs], home.embed_timeout)
        if monotonic() - began < _QUICK_BATCH:
            home.vector_batch = min(VECTOR_BATCH, home.vector_batch * 2)
        found = [
            (job, vector)
            for job, vector in zip(batch.jobs, vectors, strict=True)
            if not isinstance(vector, EmbeddingFailure)
        ]
        failed = [
            (job, failure)
            for job, failure in zip(batch.jobs, vectors, strict=True)
            if isinstance(failure, EmbeddingFailure)
        ]
        if found and not self._store(home, embedder, endpoint, batch, found):
            return
        self._note_failures(home, endpoint, batch, failed, some_worked=bool(found))
        self._moved()

    def _store(
        self,
        home: _Home,
        embedder: Embedder,
        endpoint: _Endpoint,
        batch: VectorBatch,
        found: Sequence[tuple[VectorJob, Embedding]],
    ) -> bool:
        space = self._space(embedder, endpoint, len(found[0][1]), batch)
        if space is None:
            return False
        jobs = [job for job, _vector in found]
        try:
            stored = self._memvec().store_embeddings(
                space,
                [job.kind for job in jobs],
                [job.row_id for job in jobs],
                [job.content_hash for job in jobs],
                [vector for _job, vector in found],
            )
        except HermesPgsqlError as error:
            endpoint.space = None  # it may have been dropped: ask again which one is ours
            if not _is_about_values(error) or isinstance(error, UnknownSpace | WrongDimension):
                raise
            later = time.time() + EMBED_RETRY
            home.outbox.settle_vectors(batch, (), [(job, later) for job in jobs])
            raise
        # Those that are gone or changed, and the unusable ones, never get this vector.
        self._tally.embedded += stored.stored
        self._tally.given_up += stored.invalid
        self._vector_store.succeed()
        home.outbox.settle_vectors(batch, jobs, (), _key(embedder))
        return True

    def _note_failures(
        self,
        home: _Home,
        endpoint: _Endpoint,
        batch: VectorBatch,
        failed: Sequence[tuple[VectorJob, EmbeddingFailure]],
        *,
        some_worked: bool,
    ) -> None:
        for _job, failure in failed:
            home.outbox.meter.failure("embed", f"embedding_{failure.kind}")
        unavailable = [failure for _job, failure in failed if failure.unavailable]
        if unavailable:
            # So that a slow endpoint gets at least some done within its time, and a dead one is asked little.
            home.vector_batch = max(1, min(VECTOR_SLICE, home.vector_batch // 4))
            if some_worked:
                endpoint.backoff.succeed()
            asked = max((failure.retry_after or 0.0) for failure in unavailable)
            endpoint.backoff.fail(unavailable[0].reason, asked=asked)
        else:
            endpoint.backoff.succeed()
        over: list[VectorJob] = []
        later: list[tuple[VectorJob, float]] = []
        for job, failure in failed:
            if failure.unavailable:
                continue
            if failure.permanent or job.attempts + 1 >= EMBED_ATTEMPTS:
                over.append(job)
            else:
                later.append((job, time.time() + EMBED_RETRY * 2**job.attempts))
        if over:
            log.warning(
                "%d row(s) stay without a vector and are found by words: the embedder cannot do their text.",
                len(over),
            )
            self._tally.given_up += len(over)
        if over or later:
            home.outbox.settle_vectors(batch, over, later)

    def _space(self, embedder: Embedder, endpoint: _Endpoint, dim: int, batch: VectorBatch) -> int | None:
        """The space of the embedder's model here; None (and a pause) when it has none."""
        if endpoint.space is not None:
            return endpoint.space
        job = batch.jobs[0]
        hello = self._memvec_for(job).hello(
            job.identity,
            embedder.model,
            dim,
            embedder.query_prefix,
            embedder.document_prefix,
            embedder.min_similarity,
        )
        if hello.space_id is None:
            warning = hello.warnings[-1] if hello.warnings else f"Model {embedder.model} has no space here."
            if endpoint.warned != warning:
                endpoint.warned = warning
                log.warning("%s", warning)
            endpoint.backoff.fail(warning)
        endpoint.space = hello.space_id
        return hello.space_id

    def _memvec_for(self, job: VectorJob) -> Memvec:
        """A handle with the rules of the host the row came from."""
        from hermes_pgsql.client import Memvec

        governance = cast("dict[str, object] | None", json.loads(job.governance)) if job.governance else None
        return Memvec(self._dsn, governance, timeout=_CALL_TIMEOUT)

    # Ends and forks ------------------------------------------------------------

    def stop(self, timeout: float = _STOP_WAIT) -> None:
        """End the threads, waiting at most ``timeout`` seconds; for the end of the process."""
        deadline = monotonic() + timeout
        workers = (self._text, self._vectors)
        for worker in workers:
            worker.stopping = True
        for worker in workers:
            worker.stop(max(0.0, deadline - monotonic()))

    def write_meters(self) -> None:
        """Write down what was counted for the homes of this drain."""
        for home in self._homes.values():
            home.outbox.write_meter()

    def after_fork_in_child(self) -> None:
        """Forget the parent's threads; new ones start with the first work here."""
        self._text.reset()
        self._vectors.reset()
        self._progress = threading.Condition()
        self._tally = _Tally()
        self._database.succeed()
        self._vector_store.succeed()


def _give_way() -> None:
    """Let the host's threads in: between stretches of work here that keep the interpreter to themselves."""
    time.sleep(_GIVE_WAY)


def _is_about_values(error: HermesPgsqlError) -> bool:
    """Whether other values might have been accepted, so that these are to blame."""
    state = getattr(error, "sqlstate", None)
    if not isinstance(state, str) or is_retryable(error) or isinstance(error, NotMigrated | IsolationTooHigh):
        return False
    return state[:2] in _GUILTY_CLASSES


def _key(embedder: Embedder) -> str:
    """What makes two embedders the same: their vectors can stand for each other's."""
    return "\n".join((embedder.endpoint, embedder.model, embedder.query_prefix, embedder.document_prefix))


def _embed_side_by_side(
    embedder: Embedder, texts: Sequence[str], timeout: float
) -> list[Embedding | EmbeddingFailure]:
    """``embed_documents``, in several calls at the same time when there are many texts."""
    slices = [texts[start : start + VECTOR_SLICE] for start in range(0, len(texts), VECTOR_SLICE)]
    if len(slices) == 1:
        return embedder.embed_documents(texts, timeout)
    results: dict[int, list[Embedding | EmbeddingFailure]] = {}

    def embed(number: int) -> None:
        results[number] = embedder.embed_documents(slices[number], timeout)

    helpers = [
        threading.Thread(target=embed, args=(number,), name="hermes-pgsql-embed", daemon=True)
        for number in range(1, len(slices))
    ]
    for helper in helpers:
        helper.start()
    embed(0)
    for helper in helpers:
        helper.join()
    lost = EmbeddingFailure("the embedder ended without an answer", unavailable=True)
    return [
        vector for number, part in enumerate(slices) for vector in results.get(number, [lost] * len(part))
    ]


def _rotated(homes: Iterable[_Home], turn: int) -> list[_Home]:
    """The homes, each time beginning with another one."""
    listed = list(homes)
    start = turn % len(listed) if listed else 0
    return listed[start:] + listed[:start]


def _before_fresh_file(operations: Sequence[Operation]) -> Sequence[Operation]:
    """The operations up to the first that reads a file which changed this very moment."""
    for place, operation in enumerate(operations):
        if operation.file is not None and _is_fresh(Path(operation.file)):
            return operations[:place]
    return operations


def _is_fresh(path: Path) -> bool:
    try:
        age = time.time() - path.stat().st_mtime
    except OSError:
        return False
    return 0 <= age < _FRESH_FILE


def _prepare(
    home: _Home, operations: Sequence[Operation]
) -> tuple[list[tuple[Operation, dict[str, object]]], list[Refusal], list[Operation]]:
    """The operations as ``apply_ops`` wants them, those that cannot be sent, those with nothing to say."""
    ready: list[tuple[Operation, dict[str, object]]] = []
    refused: list[Refusal] = []
    skipped: list[Operation] = []
    for operation in operations:
        try:
            request = _request(operation)
            if operation.file is not None:
                contents = _file_contents(home, Path(operation.file))
                if contents is None:
                    skipped.append(operation)
                    continue
                # Never the marker's own id: what was recorded for it may have been another state of the file.
                request |= {"op_id": str(uuid4()), "contents": contents}
                del request["path"]
        except OSError as error:
            name = Path(operation.file or "").name
            refused.append(Refusal(operation, "file", f"{name} cannot be read: {error.strerror or error}"))
        except ValueError as error:
            refused.append(Refusal(operation, "json", f"What was put cannot be read back: {error}"))
        else:
            ready.append((operation, request))
    return ready, refused, skipped


def _request(operation: Operation) -> dict[str, object]:
    arguments = cast("object", json.loads(operation.arguments))
    if not isinstance(arguments, dict):
        raise ValueError("it is no object")
    governance = cast("object", json.loads(operation.governance)) if operation.governance else None
    return {
        **cast("dict[str, object]", arguments),
        "op_id": operation.op_id,
        "op": operation.op,
        "identity": operation.identity,
        "governance": governance,
    }


def _file_contents(home: _Home, path: Path) -> list[str] | None:
    entries = read_entries(path)
    if entries is None or home.redact is None:
        return entries
    return list(dict.fromkeys(home.redact(entry) for entry in entries))


def _outstanding(operation: Operation, request: dict[str, object], result: OpResult) -> Iterable[VectorJob]:
    """The rows an operation wrote whose vector is outstanding."""

    def job(kind: str, row_id: int, content_hash: bytes, content: object) -> VectorJob:
        return VectorJob(kind, row_id, content_hash, str(content), operation.identity, operation.governance)

    if operation.op == "sync_memories":
        contents = cast("list[str]", request.get("contents") or [])
        rows = cast("list[dict[str, object]]", (result.detail or {}).get("rows") or [])
        for row in rows:
            content = contents[cast("int", row["position"])]
            content_hash = bytes.fromhex(cast("str", row["content_hash"]))
            yield job("entry", cast("int", row["id"]), content_hash, content)
        return
    if result.id is None or result.content_hash is None:
        return
    if operation.op == "append_turn":
        # One that was there before has its vector, or whoever wrote it still sees to that.
        if result.outcome == "added":
            yield job("turn", result.id, result.content_hash, request.get("content"))
    elif operation.op in {"add_memory", "replace_memory"}:
        yield job("entry", result.id, result.content_hash, request.get("content"))


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
