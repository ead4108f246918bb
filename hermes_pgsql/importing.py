"""Rows from elsewhere, streamed into ``memvec.import_rows`` a batch at a time.

Where the rows come from (the older plugin's tables, memory files, JSONL) is another module's business; here
they are masked, sent, and counted. The next batch is read while the database stores the last one, so memory
does not grow with the number of rows. A row that the database refuses is noted with its place and the reason
and stops nothing; running the same import again stores what is missing and nothing twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from zlib import crc32

from hermes_pgsql.errors import DatabaseUnavailable, HermesPgsqlError, NotMigrated, is_retryable
from hermes_pgsql.redact import redact

if TYPE_CHECKING:
    from pgvector import HalfVector

    from hermes_pgsql.client import Memvec
    from hermes_pgsql.results import Imported
    from hermes_pgsql.values import VectorLike

__all__ = ["Counts", "Incoming", "Report", "import_all"]

Progress = Callable[[int], None]

LANES: Final = 2  # batches under way at once
BATCH_ROWS: Final = 500
BATCH_CHARS: Final = 4_000_000
MOST_NOTED: Final = 1000
_CHAT_SINKS: Final = frozenset({"whatsapp-dm", "external-group", "_bench"})
_KINDS: Final = frozenset({"entry", "turn", "edge", "agent"})
_ATTEMPTS: Final = 6
_PAUSE: Final = 0.2


@dataclass(slots=True)
class Incoming:
    """A row as ``import_rows`` takes it, where it was found, and its vectors by the id of their space.

    ``fault`` is why it cannot be imported, when that is known before the database sees it; ``as_it_is``
    spares it the masking (it went through it when it was first stored); a ``stranger`` is a row whose person
    is named by another database.
    """

    place: str
    row: dict[str, object]
    vectors: Mapping[int, HalfVector | VectorLike] = field(default_factory=dict[int, "HalfVector"])
    fault: str | None = None
    as_it_is: bool = False
    stranger: bool = False


@dataclass(slots=True)
class Counts:
    """What became of the rows of one kind."""

    read: int = 0
    added: int = 0
    duplicates: int = 0
    skipped: int = 0
    vectors: int = 0


@dataclass(slots=True)
class Report:
    """What an import did, or in a dry run would do.

    ``into_sinks`` counts, by sink, the rows whose identity was a chat's or a benchmark's key; ``of_nobody``
    those of a chat that nobody knows any more, which are kept and never recalled; ``of_strangers`` those of
    persons that another database names; ``not_allowed`` those whose theme is not on the allow-list, so that
    they went to the theme ``default``; ``masked`` the secrets that were masked. ``skipped`` has the place and
    reason of up to 1,000 rows.
    """

    dry_run: bool
    kinds: dict[str, Counts] = field(default_factory=dict[str, Counts])
    into_sinks: Counter[str] = field(default_factory=Counter[str])
    of_nobody: int = 0
    of_strangers: int = 0
    not_allowed: int = 0
    masked: int = 0
    reasons: Counter[str] = field(default_factory=Counter[str])
    skipped: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    notes: list[str] = field(default_factory=list[str])

    def of(self, kind: str) -> Counts:
        """The counts of a kind of rows."""
        return self.kinds.setdefault(kind, Counts())

    def skip(self, kind: str, place: str, reason: str) -> None:
        """Note a row that was not imported."""
        self.of(kind).skipped += 1
        self.reasons[reason] += 1
        if len(self.skipped) < MOST_NOTED:
            self.skipped.append((place, reason))


def import_all(
    memvec: Memvec,
    rows: Iterable[Incoming],
    report: Report,
    *,
    origin: str,
    mask: bool,
    in_order: bool = False,
    progress: Progress | None = None,
) -> None:
    """Import ``rows`` and count them in ``report``. Raises what makes going on pointless: no database, say.

    ``origin`` is where they come from, in a word or two: one row of the maintenance log counts what this
    import stored, also when it was interrupted. ``mask`` says whether secrets in the text are masked; a text
    that changes so loses its vectors, which were made of the other one. ``in_order`` keeps the order of all
    rows, not only of those of one theme, which takes longer: the database then breaks ties between themes as
    it did where the rows come from. ``progress`` is told how many rows are done.
    """
    done = 0
    running: dict[int, _Running] = {}
    lanes = 1 if in_order else LANES
    run = memvec.begin_import(origin, dry_run=report.dry_run)

    def settle(lane: int) -> None:
        nonlocal done
        batch, results = running.pop(lane)
        _count(report, batch, results.result())
        done += len(batch)
        if progress is not None:
            progress(done)

    with ThreadPoolExecutor(lanes, "hermes-pgsql-import") as senders:
        for lane, batch in _batches(rows, report, lanes, mask=mask):
            if lane in running:
                settle(lane)
            running[lane] = batch, senders.submit(_send, memvec, batch, run, report.dry_run)
        for lane in list(running):
            settle(lane)


_Running = tuple[list["Incoming"], "Future[list[Imported]]"]


def _batches(
    rows: Iterable[Incoming], report: Report, lanes: int, *, mask: bool
) -> Iterator[tuple[int, list[Incoming]]]:
    """Batches with their lanes. The rows of one theme share a lane: the database lets one writer at them."""
    batches: list[list[Incoming]] = [[] for _ in range(lanes)]
    sizes = [0] * lanes
    for incoming in rows:
        kind = _kind(incoming)
        report.of(kind).read += 1
        if incoming.fault is not None:
            report.skip(kind, incoming.place, incoming.fault)
            continue
        lane = crc32(str(incoming.row.get("identity")).strip().casefold().encode("utf-8", "replace")) % lanes
        content = incoming.row.get("content")
        if isinstance(content, str):
            if mask and not incoming.as_it_is:
                incoming.row["content"], masked = redact(content)
                if masked:
                    report.masked += masked
                    incoming.vectors = {}
            sizes[lane] += len(content)
        batches[lane].append(incoming)
        if len(batches[lane]) >= BATCH_ROWS or sizes[lane] >= BATCH_CHARS:
            yield lane, batches[lane]
            batches[lane], sizes[lane] = [], 0
    for lane, batch in enumerate(batches):
        if batch:
            yield lane, batch


def _send(memvec: Memvec, batch: Sequence[Incoming], run: int, dry_run: bool) -> list[Imported]:  # noqa: FBT001
    """The results of a batch; of its halves when one row makes the whole fail."""
    for attempt in range(_ATTEMPTS):
        try:
            return _send_once(memvec, batch, run, dry_run)
        except (DatabaseUnavailable, NotMigrated):
            raise
        except HermesPgsqlError as error:
            if is_retryable(error):
                if attempt == _ATTEMPTS - 1:
                    raise
                time.sleep(_PAUSE * 2**attempt)
                continue
            if not _is_of_a_row(error):
                raise
            if len(batch) == 1:
                return [_refused(batch[0], error)]
            middle = len(batch) // 2
            halves = (batch[:middle], batch[middle:])
            return [done for half in halves for done in _send(memvec, half, run, dry_run)]
    raise AssertionError


def _send_once(memvec: Memvec, batch: Sequence[Incoming], run: int, dry_run: bool) -> list[Imported]:  # noqa: FBT001
    rows = [incoming.row for incoming in batch]
    if dry_run:
        return memvec.import_rows(rows, dry_run=True, run=run)
    spaces = sorted({space for incoming in batch for space in incoming.vectors}) or [None]
    results: list[Imported] = []
    for space in spaces:
        vectors = None if space is None else [incoming.vectors.get(space) for incoming in batch]
        answered = memvec.import_rows(rows, space=space, embeddings=vectors, run=run)
        # Of a second space only the vectors are news: by then every row is a duplicate.
        results = results or answered
    return results


def _is_of_a_row(error: HermesPgsqlError) -> bool:
    state = getattr(error, "sqlstate", None) or ""
    return state in {"MV001", "MV005"} or state[:2] in {"21", "22", "23", "54"}


def _refused(incoming: Incoming, error: HermesPgsqlError) -> Imported:
    from hermes_pgsql.results import Imported

    kind = incoming.row.get("kind")
    # What the database says of a value may quote it, so only the code goes into the report.
    reason = f"the database refused it ({getattr(error, 'sqlstate', None) or 'MV001'})"
    return Imported(1, kind if isinstance(kind, str) else None, "refused", None, None, False, reason)  # noqa: FBT003


def _count(report: Report, batch: Sequence[Incoming], results: Sequence[Imported]) -> None:
    for incoming, result in zip(batch, results, strict=True):
        kind = _kind(incoming)
        counts = report.of(kind)
        if result.outcome == "refused":
            report.skip(kind, incoming.place, result.message or "the database refused it")
            continue
        if result.outcome == "added":
            counts.added += 1
        else:
            counts.duplicates += 1
        would_be = report.dry_run and result.outcome == "added" and bool(incoming.vectors)
        if result.embedded or would_be:
            counts.vectors += 1
        if kind in ("entry", "turn"):
            _count_identity(report, incoming, result)


def _kind(incoming: Incoming) -> str:
    """Under which name a row is counted: that of its kind if it is one, so that the report stays short."""
    kind = incoming.row.get("kind")
    return kind if isinstance(kind, str) and kind in _KINDS else "row"


def _count_identity(report: Report, incoming: Incoming, result: Imported) -> None:
    reason = result.reason or ""
    if reason == "nobody":
        report.of_nobody += 1
    elif reason == "person" and incoming.stranger:
        report.of_strangers += 1
    elif result.agent_identity in _CHAT_SINKS and reason.endswith("-bucket"):
        report.into_sinks[result.agent_identity] += 1
    elif reason == "not-in-allowlist":
        report.not_allowed += 1
