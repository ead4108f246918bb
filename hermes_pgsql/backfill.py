"""Gives the rows of an embedding space the vectors they lack, in any number of processes at a time.

The database hands out rows under leases (``memvec.claim_pending``), so that parallel runs share the work and
a run that is killed loses nothing but the batch it was at. A run looks at each row once, in the order of ids,
and begins anew at the end to find what was written meanwhile; a row whose text cannot be embedded is tried
once per run and, after some runs, given up. When the endpoint cannot be used at all, nothing counts as tried.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from shlex import quote
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from hermes_pgsql.embedding import Embedding, EmbeddingFailure, choose_embedder
from hermes_pgsql.embedding.spaces import SpaceKey, missing_space
from hermes_pgsql.errors import (
    ConfigError,
    DatabaseFailure,
    DeliveryUnknown,
    HermesPgsqlError,
    UnknownSpace,
    is_retryable,
)

if TYPE_CHECKING:
    from datetime import datetime

    from hermes_pgsql.client import Memvec
    from hermes_pgsql.config import Settings
    from hermes_pgsql.embedding import Embedder, FailureKind
    from hermes_pgsql.results import Pending, SpaceTable

__all__ = [
    "BackfillReport",
    "Target",
    "TextFailure",
    "backfill",
    "find_target",
    "space_title",
]

JOBS: Final = 4
BATCH: Final = 32  # texts in one request
MAX_BATCH: Final = 256
MAX_JOBS: Final = 32
FAILURES_KEPT: Final = 1000
_MOST_ROWS: Final = 512  # claimed at once
_QUICK: Final = 1.0  # seconds; claims grow while a batch takes less
_STRIKES: Final = 5  # failures of the endpoint, pauses between them, before a run gives up on it
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 300.0
_QUIET_ROUNDS: Final = 3
_POLL: Final = 0.5
_STORE_ATTEMPTS: Final = 6
#: What no waiting mends: the run ends at once.
_HOPELESS: Final[frozenset[FailureKind]] = frozenset({"auth", "config", "model", "not_found", "redirect"})

Result = TypeVar("Result")
Progress = Callable[[int, int], None]
Outcome = Literal["done", "partly", "unavailable"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Target:
    """A space and the embedder of its model."""

    space_id: int
    model: str
    dim: int
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class TextFailure:
    """A row of this run that could not be embedded. ``permanent``: the same text would fail again."""

    kind: str
    id: int
    reason: str
    permanent: bool


@dataclass(frozen=True, slots=True)
class BackfillReport:
    """What a run did. ``left`` rows have no vector at its end: ``failing`` ones are tried again by the next
    run, ``given_up`` ones are not, the others have just been written.

    ``failed`` counts the rows of this run that may succeed in another one, ``unembeddable`` those that never
    will; ``failures`` are the first thousand of both. ``changed`` rows got other words meanwhile, or went.
    ``unavailable`` says why the run ended early, if the endpoint could not be used.
    """

    space_id: int
    model: str
    embedded: int
    changed: int
    failed: int
    unembeddable: int
    left: int
    failing: int
    given_up: int
    seconds: float
    failures: tuple[TextFailure, ...] = ()
    unavailable: str | None = None

    @property
    def outcome(self) -> Outcome:
        if self.unavailable is not None:
            return "unavailable"
        return "partly" if self.failing or self.given_up else "done"


def backfill(
    memvec: Memvec,
    target: Target,
    *,
    jobs: int = JOBS,
    batch: int = BATCH,
    timeout: float = 30.0,
    given_up: bool = False,
    progress: Progress | None = None,
) -> BackfillReport:
    """Embed what is pending in the target's space. ``memvec`` needs a login of the embedder group.

    ``timeout``: seconds for the requests of one claim, retries included. ``given_up``: try also the rows that
    failed too often. ``progress`` is called with the rows done and the rows there are. Raises the database's
    errors, and ``ConfigError`` when the space is dropped meanwhile.
    """
    try:
        return _Run(memvec, target, jobs, batch, timeout, given_up, progress).run()
    except UnknownSpace:
        raise ConfigError(
            f"The embedding space of the model {target.model} was dropped while it was being filled.",
            hint="hermes-pgsql model list shows what is there.",
        ) from None


@dataclass
class _Tally:
    embedded: int = 0
    changed: int = 0
    failed: int = 0
    unembeddable: int = 0
    failures: list[TextFailure] = field(default_factory=list[TextFailure])

    def done(self) -> int:
        return self.embedded + self.changed + self.failed + self.unembeddable


@dataclass
class _EndpointState:
    """When the endpoint may be asked again, and why the run gives up on it, once it does."""

    strikes: int = 0
    until: float = 0.0
    hopeless: str | None = None

    def failed(self, failure: EmbeddingFailure) -> None:
        if failure.kind in _HOPELESS:
            self.hopeless = failure.reason
        if monotonic() < self.until:
            return  # a job beside this one has met the same failure
        self.strikes += 1
        if self.strikes >= _STRIKES:
            self.hopeless = failure.reason
        pause = max(_FIRST_PAUSE * 2 ** (self.strikes - 1), failure.retry_after or 0.0)
        self.until = monotonic() + min(pause, _LONGEST_PAUSE)

    def worked(self) -> None:
        self.strikes = 0


class _Run:
    def __init__(
        self,
        memvec: Memvec,
        target: Target,
        jobs: int,
        batch: int,
        timeout: float,
        given_up: bool,  # noqa: FBT001
        progress: Progress | None,
    ) -> None:
        self._memvec = memvec
        self._space = target.space_id
        self._target = target
        self._jobs = max(1, min(jobs, MAX_JOBS))
        self._rows = max(1, min(batch, MAX_BATCH))
        self._timeout = timeout
        self._given_up = given_up
        self._progress = progress
        # Long enough for a request that runs into its deadline, and no longer: after a crash others wait.
        self._lease = int(2 * timeout) + 30
        self._tally = _Tally()
        self._endpoint = _EndpointState()
        self._claiming = threading.Lock()
        self._counting = threading.Lock()
        self._stop = threading.Event()
        self._started: datetime | None = None
        self._total = 0
        self._after: tuple[str, int] | None = None
        self._claimed = 0
        self._errors: list[BaseException] = []

    def run(self) -> BackfillReport:
        began = monotonic()
        count = self._memvec.pending_embeddings(self._space)
        self._started = count.counted_at
        self._total = count.pending if self._given_up else count.pending - count.given_up
        self._show()
        self._work()
        left = self._memvec.pending_embeddings(self._space)
        tally = self._tally
        return BackfillReport(
            space_id=self._space,
            model=self._target.model,
            embedded=tally.embedded,
            changed=tally.changed,
            failed=tally.failed,
            unembeddable=tally.unembeddable,
            left=left.pending,
            failing=left.failed,
            given_up=left.given_up,
            seconds=monotonic() - began,
            failures=tuple(tally.failures),
            unavailable=self._endpoint.hopeless,
        )

    # Rounds ------------------------------------------------------------

    def _work(self) -> None:
        """Rounds over all rows, until one finds none; but not for ever after hosts that go on writing."""
        quiet = 0
        while not self._stop.is_set():
            size = self._rows
            self._after, self._claimed = None, 0
            self._round()
            if self._claimed < size:
                quiet += 1
            # What another run has, it may not live to finish.
            others = self._memvec.pending_embeddings(self._space).leased
            if not others and (self._claimed == 0 or quiet >= _QUIET_ROUNDS):
                return
            if self._claimed < size:
                self._stop.wait(_POLL)

    def _round(self) -> None:
        jobs = [
            threading.Thread(target=self._job, name=f"hermes-pgsql-backfill-{number}", daemon=True)
            for number in range(self._jobs)
        ]
        for job in jobs:
            job.start()
        try:
            for job in jobs:
                while job.is_alive():
                    job.join(_POLL)
        except KeyboardInterrupt:
            # What is under way is finished, so that no lease is left behind.
            self._stop.set()
            for job in jobs:
                job.join(self._timeout + 5)
            raise
        if self._errors:
            raise self._errors[0]

    def _job(self) -> None:
        try:
            while not self._stop.is_set():
                self._stop.wait(max(0.0, self._endpoint.until - monotonic()))
                rows = self._claim()
                if not rows:
                    return
                self._embed(rows)
        except BaseException as error:  # noqa: BLE001 (raised again by the thread that waits)
            self._errors.append(error)
            self._stop.set()

    def _claim(self) -> Sequence[Pending]:
        with self._claiming:
            if self._stop.is_set():
                return ()
            rows = self._persistent(
                lambda: self._memvec.claim_pending(
                    self._space,
                    self._rows,
                    after=self._after,
                    failed_before=self._started,
                    given_up=self._given_up,
                    lease_seconds=self._lease,
                )
            )
            if rows:
                self._after = (rows[-1].kind, rows[-1].id)
                self._claimed += len(rows)
            return rows

    # One batch ------------------------------------------------------------

    def _embed(self, rows: Sequence[Pending]) -> None:
        began = monotonic()
        vectors = self._target.embedder.embed_documents([row.content for row in rows], self._timeout)
        seconds = monotonic() - began
        found: list[tuple[Pending, Embedding]] = []
        failed: list[tuple[Pending, EmbeddingFailure]] = []
        untried: list[tuple[Pending, EmbeddingFailure]] = []
        for row, vector in zip(rows, vectors, strict=True):
            if not isinstance(vector, EmbeddingFailure):
                found.append((row, vector))
            elif self._says_nothing_of_the_text(vector, alone=len(rows) == 1):
                untried.append((row, vector))
            else:
                failed.append((row, vector))
        stored, changed, invalid = self._store(found)
        self._report(failed)
        self._release([row for row, _failure in untried])
        with self._counting:
            tally = self._tally
            tally.embedded += stored
            tally.changed += changed
            tally.failed += invalid + sum(not failure.permanent for _row, failure in failed)
            tally.unembeddable += sum(failure.permanent for _row, failure in failed)
            room = FAILURES_KEPT - len(tally.failures)
            tally.failures += [
                TextFailure(row.kind, row.id, failure.reason, failure.permanent)
                for row, failure in failed[:room]
            ]
            if found:
                self._endpoint.worked()
            if untried:
                self._endpoint.failed(untried[0][1])
                if self._endpoint.hopeless:
                    self._stop.set()
            self._resize(len(rows), seconds, shrink=bool(untried))
            self._show()

    def _says_nothing_of_the_text(self, failure: EmbeddingFailure, *, alone: bool) -> bool:
        if failure.kind == "width":
            # With the first text it is the model that is another one, later it is this reply.
            return self._tally.embedded == 0
        if failure.kind == "timeout" and alone and self._tally.embedded:
            return False  # others had time enough
        return failure.unavailable

    def _resize(self, rows: int, seconds: float, *, shrink: bool) -> None:
        """Large claims for a quick endpoint; small ones for a slow one, so that it keeps its deadline."""
        if shrink:
            self._rows = max(1, min(self._rows, rows // 4))
        elif seconds < _QUICK and rows >= self._rows:
            self._rows = min(_MOST_ROWS, self._rows * 2)

    def _store(self, found: Sequence[tuple[Pending, Embedding]]) -> tuple[int, int, int]:
        """How many vectors were stored, named a text that has changed or gone, and were unusable."""
        if not found:
            return 0, 0, 0
        stored = self._persistent(
            lambda: self._memvec.store_embeddings(
                self._space,
                [row.kind for row, _vector in found],
                [row.id for row, _vector in found],
                [row.content_hash for row, _vector in found],
                [vector for _row, vector in found],
            )
        )
        return stored.stored, stored.changed + stored.gone, stored.invalid

    def _report(self, failed: Sequence[tuple[Pending, EmbeddingFailure]]) -> None:
        if failed:
            self._persistent(
                lambda: self._memvec.report_embedding_failure(
                    self._space,
                    [row.kind for row, _failure in failed],
                    [row.id for row, _failure in failed],
                    [failure.reason for _row, failure in failed],
                    [failure.permanent for _row, failure in failed],
                )
            )

    def _release(self, rows: Sequence[Pending]) -> None:
        if rows:
            self._persistent(
                lambda: self._memvec.release_pending(
                    self._space, [row.kind for row in rows], [row.id for row in rows]
                )
            )

    def _persistent(self, call: Callable[[], Result]) -> Result:
        """The call, again and again for a while when the database is restarted or busy."""
        pause = _POLL
        for _attempt in range(_STORE_ATTEMPTS - 1):
            try:
                return call()
            except HermesPgsqlError as error:
                # A claim or a report that was perhaps done twice costs a lease or an attempt, no more.
                if not is_retryable(error) and not isinstance(error, DeliveryUnknown):
                    raise
                log.debug("backfill: %s", error)
            self._stop.wait(pause)
            pause *= 2
        return call()

    def _show(self) -> None:
        if self._progress is not None:
            done = self._tally.done()
            self._progress(done, max(done, self._total))


# Which space, and with what ------------------------------------------------------------


def find_target(
    settings: Settings, memvec: Memvec, model: str | None = None, *, batch: int = BATCH
) -> Target:
    """The space to fill and its embedder: of ``model``, else of the configured model.

    With ``model`` the space's own task prefixes and width are used. The first space of a database is added,
    as any first client adds its own. Raises ``ConfigError`` when there is no such space or no embedder for
    it, and ``EmbeddingError`` when the width has to be asked of an endpoint that does not answer.
    """
    spaces = _one_each(memvec.describe_spaces())
    if model is not None:
        space = _named(spaces, settings, model)
        return Target(space.space_id, space.model, space.dim, _embedder_for(space, settings, batch))
    embedder = _embedder(settings, batch)
    dim = embedder.dim
    if dim is None:
        dim = len(embedder.embed_query("How wide is a vector?", settings.embed_write_timeout))
    fitting = [
        space.space_id
        for space in spaces
        if (space.model, space.dim, space.query_prefix, space.document_prefix)
        == (embedder.model, dim, embedder.query_prefix, embedder.document_prefix)
    ]
    if not fitting and not spaces:
        fitting = [_first_space(memvec, embedder, dim)]
    if not fitting:
        said, ways = missing_space(
            SpaceKey(embedder.model, dim, embedder.query_prefix, embedder.document_prefix),
            [SpaceKey(s.model, s.dim, s.query_prefix, s.document_prefix) for s in spaces],
            prefixes_are_free=False,  # here they are what shall be filled
        )
        raise ConfigError(
            f"{said[0].upper()}{said[1:]}.",
            hint=f"Add it with: {ways[-1]}\nor name one that is there with --model.",
        )
    return Target(fitting[0], embedder.model, dim, embedder)


def space_title(space: SpaceTable) -> str:
    """A space in words, for messages."""
    return f"{space.model} ({space.dim} dimensions)"


def _one_each(tables: Sequence[SpaceTable]) -> list[SpaceTable]:
    return list({table.space_id: table for table in tables}.values())


def _named(spaces: Sequence[SpaceTable], settings: Settings, model: str) -> SpaceTable:
    found = [space for space in spaces if space.model == model]
    if settings.embed_model == model:  # then the other settings of the model are meant as well
        wanted = {
            "dim": settings.embed_dim,
            "query_prefix": settings.embed_query_prefix,
            "document_prefix": settings.embed_document_prefix,
        }
        found = [
            space
            for space in found
            if all(value is None or getattr(space, name) == value for name, value in wanted.items())
        ]
    if not found:
        raise ConfigError(
            f"The database has no embedding space for the model {model}; it has: {_listed(spaces)}.",
            hint=f"Add it with: hermes-pgsql model add {quote(model)} --dim WIDTH",
        )
    if len(found) > 1:
        raise ConfigError(
            f"The model {model} has several embedding spaces: {_listed(found)}.",
            hint="Tell which with --embed-model and --embed-dim, or by the prefixes in config.yaml.",
        )
    return found[0]


def _embedder_for(space: SpaceTable, settings: Settings, batch: int) -> Embedder:
    from hermes_pgsql.embedding.builtin import MODEL

    asked = {"embed_model": space.model, "embed_dim": space.dim}
    prefixes = {"embed_query_prefix": space.query_prefix, "embed_document_prefix": space.document_prefix}
    if settings.embed_url is None and space.model != MODEL:
        raise ConfigError(
            f"No endpoint is configured that serves the model {space.model}.",
            hint="Give its address with --embed-url.",
        )
    return _embedder(settings.model_copy(update=asked | prefixes), batch)


def _embedder(settings: Settings, batch: int) -> Embedder:
    choice = choose_embedder(
        embed_url=settings.embed_url,
        embed_model=settings.embed_model,
        embed_dim=settings.embed_dim,
        embed_api_key_env=settings.embed_api_key_env,
        embed_protocol=settings.embed_protocol,
        embed_query_prefix=settings.embed_query_prefix,
        embed_document_prefix=settings.embed_document_prefix,
        batch_size=batch,
        retries=settings.embed_write_retries,
        backoff=settings.embed_write_backoff,
    )
    if choice.embedder is None:
        raise ConfigError(
            f"There is nothing to embed with: {choice.reason}.",
            hint="Name an endpoint with --embed-url and --embed-model, or in config.yaml.",
        )
    return choice.embedder


def _first_space(memvec: Memvec, embedder: Embedder, dim: int) -> int:
    try:
        return memvec.add_embedding_space(
            embedder.model, dim, embedder.query_prefix, embedder.document_prefix, embedder.min_similarity
        )
    except DatabaseFailure as error:
        if error.sqlstate != "42501":
            raise
    raise ConfigError(
        "The database has no embedding space yet.",
        hint=f"An administrator adds it with: hermes-pgsql model add {quote(embedder.model)} --dim {dim}",
    )


def _listed(spaces: Sequence[SpaceTable]) -> str:
    titles = [space_title(space) for space in spaces]
    if len(set(titles)) < len(titles):  # what tells them apart are the prefixes
        titles = [
            f"{title} with the prefixes {space.query_prefix!r} and {space.document_prefix!r}"
            for title, space in zip(titles, spaces, strict=True)
        ]
    return ", ".join(titles) or "none"
