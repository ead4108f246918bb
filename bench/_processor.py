"""Times on a busy machine: what an action took, and what it would have taken with a processor always free.

Linux counts for each process how long it ran and how long it was ready without a processor. The latter is
taken off; as the two sides of a call may wait at once, never below the time that they really ran. Elsewhere
nothing is taken off. Uses nothing but the standard library, because `_peer_driver.py` measures with it too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["BACKENDS", "timed"]

#: The processes that serve a database's clients, the asking one excepted. A parameter: the login role.
BACKENDS = """
    SELECT array_agg(a.pid) FROM pg_stat_activity AS a
     WHERE a.usename = %s AND a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()"""


def timed(action: Callable[[], object], backends: Sequence[int] = ()) -> tuple[float, float]:
    """Milliseconds that an action of this thread took, and those with a processor always free.

    `backends` are the server's processes that work for this thread.
    """
    ran_before, waited_before = _counted(backends)
    began = time.perf_counter()
    action()
    took = time.perf_counter() - began
    ran, waited = _counted(backends)
    free = min(took, max(ran - ran_before, took - (waited - waited_before)))
    return 1000 * took, 1000 * free


def _counted(backends: Sequence[int]) -> tuple[float, float]:
    """Seconds that this thread and the backends have run, and have been ready without a processor."""
    counted = [_of(str(backend)) for backend in backends]
    waited = _of(f"self/task/{threading.get_native_id()}")[1]
    return (
        time.thread_time() + sum(one[0] for one in counted),
        waited + sum(one[1] for one in counted),
    )


def _of(task: str) -> tuple[float, float]:
    try:
        ran, waited = Path(f"/proc/{task}/schedstat").read_text(encoding="ascii").split()[:2]
    except (OSError, ValueError):
        return 0.0, 0.0
    return int(ran) / 1e9, int(waited) / 1e9
