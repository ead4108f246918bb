"""How long somebody was ready and had no processor: what a busy machine adds to a time.

Linux keeps it for each thread; elsewhere it is 0. Uses nothing but the standard library, because
`_peer_driver.py` measures with it too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["BACKENDS", "timed", "waited"]

#: The processes that serve a database's clients, the asking one excepted. A parameter: the login role.
BACKENDS = """
    SELECT array_agg(a.pid) FROM pg_stat_activity AS a
     WHERE a.usename = %s AND a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()"""


def timed(action: Callable[[], object], backends: Sequence[int] = ()) -> tuple[float, float]:
    """Milliseconds that an action took, and those without the waits of this thread and of the server."""
    waited_before = waited(backends)
    began = time.perf_counter()
    action()
    took = time.perf_counter() - began
    return 1000 * took, 1000 * max(0.0, took - (waited(backends) - waited_before))


def waited(processes: Sequence[int] = ()) -> float:
    """Seconds that this thread and these processes have been ready without a processor, ever."""
    return sum(
        map(_wait, [f"self/task/{threading.get_native_id()}", *(f"{process}" for process in processes)])
    )


def _wait(task: str) -> float:
    try:
        return int(Path(f"/proc/{task}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0
