"""The vector side of a drain: embeds the rows that the text side wrote, and stores what comes of it."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Final, cast

from hermes_pgsql.drain.state import (
    CLAIM_POLL,
    IDLE,
    VECTOR_SLICE,
    Home,
    State,
    embedder_key,
    is_about_values,
    rotated,
)
from hermes_pgsql.drain.worker import UNAVAILABLE_CAP, Backoff, Worker
from hermes_pgsql.embedding import Embedder, Embedding, EmbeddingFailure
from hermes_pgsql.errors import (
    DatabaseUnavailable,
    HermesPgsqlError,
    UnknownSpace,
    WrongDimension,
    failure_kind,
)
from hermes_pgsql.outbox import VectorBatch
from hermes_pgsql.outbox_store import VectorJob

if TYPE_CHECKING:
    from hermes_pgsql.client import Memvec

__all__ = ["EMBED_ATTEMPTS", "VectorCarrier"]

VECTOR_BATCH: Final = 128  # rows; the requests of one batch run side by side
VECTOR_BATCH_CHARS: Final = 1_000_000
#: Batches of vectors grow while they take less than this, so that a question never waits long behind one.
_QUICK_BATCH: Final = 0.25  # seconds
#: While text is behind by more than a batch, vectors wait, but never longer than this.
_TEXT_FIRST: Final = 2.0
_TEXT_FIRST_POLL: Final = 0.05
EMBED_ATTEMPTS: Final = 8
_TELL_AGAIN: Final = 15.0
EMBED_RETRY: Final = 10.0  # doubles with each attempt

log = logging.getLogger(__name__)


@dataclass
class _Endpoint:
    """What is known about one embedder: when to ask it again, and the space of its model here."""

    backoff: Backoff = field(default_factory=Backoff)
    space: int | None = None
    warned: str | None = None


class VectorCarrier:
    """Knows how each endpoint does, and how storing vectors does, which may fail while text goes through."""

    def __init__(self, state: State) -> None:
        self._state: State = state
        self._endpoints: dict[str, _Endpoint] = {}
        self._store_backoff: Backoff = Backoff()
        self._embedded_at: float = 0.0
        self._turn: int = 0
        self.worker: Worker = Worker("hermes-pgsql-vectors", self._round)

    def hurry(self) -> None:
        """Ask every endpoint at once, also during a pause."""
        for endpoint in self._endpoints.values():
            endpoint.backoff.hurry(0.0)
        self.worker.wake()

    def failing(self) -> list[Backoff]:
        """The endpoints that fail, and the storing of vectors if that does."""
        backoffs = [*(each.backoff for each in self._endpoints.values()), self._store_backoff]
        return [each for each in backoffs if each.error is not None]

    def after_fork_in_child(self) -> None:
        self.worker.reset()
        self._store_backoff.succeed()

    def _round(self) -> float:
        """One batch of vectors of each home; returns how long to pause."""
        pause = max(self._store_backoff.wait(), self._state.database.wait())
        if pause > 0:
            return pause
        if self._state.behind and monotonic() - self._embedded_at < _TEXT_FIRST:
            return _TEXT_FIRST_POLL
        self._embedded_at = monotonic()
        self._turn += 1
        pause = IDLE
        for home in rotated(self._state.homes.values(), self._turn):
            due = home.outbox.next_vector()
            if home.embedder is None or due is None:
                continue
            endpoint = self._endpoints.setdefault(embedder_key(home.embedder), _Endpoint())
            wait = max(due - time.time(), endpoint.backoff.wait())
            if wait <= 0 and not home.outbox.claim("vectors"):
                wait = CLAIM_POLL
            elif wait <= 0:
                try:
                    self._embed(home, home.embedder, endpoint)
                except HermesPgsqlError as error:
                    home.outbox.meter.failure("embed", failure_kind(error))
                    _tell_trouble(home, str(error))
                    self._store_failed(error)
                    return self._store_backoff.wait()
                finally:
                    home.outbox.release("vectors")
            pause = min(pause, max(wait, 0.0))
        return pause

    def _store_failed(self, error: HermesPgsqlError) -> None:
        if self._store_backoff.error is None:
            log.warning("Vectors cannot be stored in the database now; they follow later. %s", error)
        unreachable = isinstance(error, DatabaseUnavailable)
        self._store_backoff.fail(str(error), UNAVAILABLE_CAP if unreachable else None)

    def _embed(self, home: Home, embedder: Embedder, endpoint: _Endpoint) -> None:
        """Embed one batch and store it. Raises what the database's failures are."""
        batch = home.outbox.take_vectors(home.vector_batch, VECTOR_BATCH_CHARS)
        if batch is None:
            return
        # Before embedding, where the width is known: a model without a space here need not work for nothing.
        if embedder.dim is not None and self._space(embedder, endpoint, embedder.dim, batch) is None:
            _tell_trouble(home, endpoint.backoff.error)
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
            _tell_trouble(home, endpoint.backoff.error)
            return
        _tell_trouble(home, failed[0][1].reason if failed else None)
        self._note_failures(home, endpoint, batch, failed, some_worked=bool(found))
        self._state.moved()

    def _store(
        self,
        home: Home,
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
            stored = self._state.memvec().store_embeddings(
                space,
                [job.kind for job in jobs],
                [job.row_id for job in jobs],
                [job.content_hash for job in jobs],
                [vector for _job, vector in found],
            )
        except HermesPgsqlError as error:
            endpoint.space = None  # it may have been dropped: ask again which one is ours
            if not is_about_values(error) or isinstance(error, UnknownSpace | WrongDimension):
                raise
            later = time.time() + EMBED_RETRY
            home.outbox.settle_vectors(batch, (), [(job, later) for job in jobs])
            raise
        # Those that are gone or changed, and the unusable ones, never get this vector.
        self._state.tally.embedded += stored.stored
        self._state.tally.given_up += stored.invalid
        self._store_backoff.succeed()
        home.outbox.settle_vectors(batch, jobs, (), embedder_key(embedder))
        return True

    def _note_failures(
        self,
        home: Home,
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
            self._state.tally.given_up += len(over)
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
        """A client with the rules of the host the row came from."""
        governance = cast("dict[str, object] | None", json.loads(job.governance)) if job.governance else None
        return self._state.memvec(governance)


def _tell_trouble(home: Home, message: str | None) -> None:
    """Write it where ``doctor``, ``stats`` and ``outbox`` find it, when it is news or some time ago."""
    told, at = home.trouble
    if message != told or (message is not None and monotonic() - at > _TELL_AGAIN):
        home.trouble = (message, monotonic())
        home.outbox.note_vector_trouble(message)


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
