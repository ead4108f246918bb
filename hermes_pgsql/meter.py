"""What a process counts while it serves a home, for ``hermes-pgsql metrics``: recalls, failures, breakers.

Recalls happen in the hosts' processes and the exporter is one of its own, so counts go through the home's
outbox file: noted here in memory in a microsecond, without a lock, and written there by the drain's thread
about once a second. The last second of a process that is killed is missing from them; nothing else is.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic, time
from types import TracebackType
from typing import Final

__all__ = ["BUCKETS", "Meter", "RecallTimer", "Sample"]

#: Upper bounds in seconds of the recall histogram; the last is infinite.
BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, float("inf"))
_KEPT: Final = 20_000  # samples, when nobody can write them down


@dataclass(frozen=True, slots=True)
class Sample:
    """A number to be added to a counter, or (``adds`` False) to take a gauge's place. ``labels`` is JSON."""

    name: str
    labels: str
    value: float
    adds: bool = True


class Meter:
    """The counts of one home in this process that are not written down yet. Safe for threads."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=_KEPT)

    def add(self, name: str, labels: dict[str, str], amount: float = 1.0) -> None:
        """Add to a counter."""
        self._samples.append(Sample(name, labels_text(labels), amount))

    def note(self, name: str, labels: dict[str, str], value: float) -> None:
        """Set a gauge."""
        self._samples.append(Sample(name, labels_text(labels), value, adds=False))

    def failure(self, part: str, kind: str) -> None:
        """Count something that failed: ``part`` is write, embed or recall."""
        self.add("failures", {"part": part, "kind": kind})

    def breaker(self, name: str, open_for: float) -> None:
        """Note how long a breaker stays open from now, in seconds; 0: it is closed."""
        self.note("breaker_open_until", {"breaker": name}, time() + open_for if open_for > 0 else 0.0)

    def recall(self, tool: str) -> RecallTimer:
        """Times the block as one recall by ``tool`` (prefetch, recall_memory, recall_conversation)."""
        return RecallTimer(self, tool)

    def take(self) -> list[Sample]:
        """What was counted since the last call, summed up."""
        sums: dict[tuple[str, str], Sample] = {}
        while self._samples:
            try:
                sample = self._samples.popleft()
            except IndexError:  # another thread was faster
                break
            key = (sample.name, sample.labels)
            before = sums.get(key)
            if before is not None and sample.adds:
                sample = Sample(*key, before.value + sample.value)
            sums[key] = sample
        return list(sums.values())

    def give_back(self, samples: Iterable[Sample]) -> None:
        """Keep samples that could not be written down."""
        self._samples.extendleft(reversed(list(samples)))

    def clear(self) -> None:
        """Forget everything: in a forked child it is the parent's to write down."""
        self._samples = deque(maxlen=_KEPT)

    def __bool__(self) -> bool:
        return bool(self._samples)


class RecallTimer:
    """Counts one recall at its end: how long it took and whether it went by words, meaning or both."""

    def __init__(self, meter: Meter, tool: str) -> None:
        self._meter = meter
        self._tool = tool
        self._mode = "failed"
        self._began = 0.0

    def asked(self, *, words: bool, meaning: bool) -> None:
        """Say what the database was asked with."""
        self._mode = "hybrid" if words and meaning else "words" if words else "meaning"

    def __enter__(self) -> RecallTimer:
        self._began = monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        seconds = monotonic() - self._began
        mode = self._mode
        if error is not None:
            from hermes_pgsql.errors import MemvecError

            mode = "refused" if isinstance(error, MemvecError) else "failed"
        labels = {"tool": self._tool, "mode": mode}
        bound = next(bound for bound in BUCKETS if seconds <= bound)
        self._meter.add("recalls", {**labels, "le": str(bound)})
        self._meter.add("recall_seconds", labels, seconds)


def labels_text(labels: dict[str, str]) -> str:
    """Labels as the key they are kept under."""
    return json.dumps(labels, sort_keys=True, separators=(",", ":"))
