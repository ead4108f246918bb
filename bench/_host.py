"""What stands in for a host: a home, turns to write, and how long its thread waits for a call.

On a busy machine the longest times are those in which the thread was ready and had no processor. So every
time is also taken without that wait (on Linux), and a loop that only counts is measured beside the calls.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench._processor import timed
from bench._report import Table, percentile
from hermes_pgsql import pool
from hermes_pgsql.drain import Drain
from hermes_pgsql.outbox import Outbox

__all__ = ["WAITS", "Times", "count_up", "end_drain", "new_home", "put", "timed_calls", "turns", "waits"]

WORDS = ["deploy", "service", "needs", "a", "check", "by", "who", "owns", "the", "backup", "window", "port"]
#: Columns of a table of waits, after the first.
WAITS = ["median", "p99", "p99.9", "p99 with a free processor", "p99.9 with a free processor"]


@dataclass(frozen=True)
class Times:
    """Milliseconds that each call took, and the same without the time it waited for a processor."""

    took: list[float]
    working: list[float]


def waits(table: Table, name: str, times: Times) -> None:
    """A row of the table."""
    parts = [(times.took, 0.5), (times.took, 0.99), (times.took, 0.999)]
    parts += [(times.working, 0.99), (times.working, 0.999)]
    table.row(name, *(percentile(took, part) for took, part in parts))


def timed_calls(count: int, action: Callable[[int], object], pause: float = 0.0) -> Times:
    """Call `action` with 0, 1, … and a pause (seconds) after each."""
    times = Times([], [])
    for number in range(count):
        took, working = timed(lambda: action(number))  # noqa: B023 (called at once)
        times.took.append(took)
        times.working.append(working)
        if pause:
            time.sleep(pause)
    return times


def count_up(_number: int) -> int:
    total = 0
    for number in range(3000):
        total += number
    return total


def put(outbox: Outbox, text: str) -> None:
    arguments = {"session_id": "bench", "role": "user", "content": text, "metadata": {"platform": "cli"}}
    outbox.put("append_turn", "bench", arguments)


def turns(count: int) -> list[str]:
    """Different texts of some 300 characters."""
    return [
        f"{secrets.token_hex(8)} " + " ".join(secrets.choice(WORDS) for _word in range(50))
        for _number in range(count)
    ]


def end_drain(dsn: str, *homes: Path) -> None:
    """End what a provider started, before its homes go.

    At the end of the process a drain writes what was counted into every home that it still serves, which
    would make the home anew.
    """
    drain = Drain.for_dsn(dsn)
    drain.stop(10)
    for home in homes:
        drain.detach(Outbox.open(home))


@contextmanager
def new_home() -> Generator[Path]:
    home = Path(tempfile.mkdtemp(prefix="hermes-pgsql-bench-home-"))
    try:
        yield home
    finally:
        pool.close_all()
        shutil.rmtree(home, ignore_errors=True)
