"""What both sides of the drain work with: a thread that goes round and round, and growing pauses."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final

__all__ = ["FAILURE_CAP", "UNAVAILABLE_CAP", "Backoff", "Worker"]

_FIRST_PAUSE: Final = 0.25
#: The longest pause between attempts, in seconds. A database that cannot be reached is asked more often than
#: one that is there and refuses, because it may come back at any moment.
UNAVAILABLE_CAP: Final = 4.0
FAILURE_CAP: Final = 30.0
_LONGEST_ASKED: Final = 300.0
_AFTER_YOU: Final = 0.005

log = logging.getLogger(__name__)


@dataclass
class Backoff:
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


class Worker:
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
