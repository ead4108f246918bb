"""How long the host's thread waits in the hooks that write, with the database up and down.

The provider is called as the host calls it, a turn or a note every 2 ms, while its drain sends
what it has accepted. The limit in the same run is a loop that only counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench._host import WAITS, count_up, end_drain, new_home, timed_calls, waits
from bench._report import Report, Table, options_of
from bench._server import fresh_server
from hermes_pgsql import embedded
from hermes_pgsql.provider import PgvectorProvider

__all__ = ["main"]

PAUSE = 0.002  # seconds


def main(arguments: Sequence[str] = ()) -> None:
    parser = options_of("hooks", __doc__)
    parser.number("--calls", 500, "calls of each hook")
    options = parser.parse_args(arguments)
    report = Report("hooks", "Hooks that write", options)
    table = report.table(
        f"{options.calls} calls, one every {PAUSE * 1000:.0f} ms (milliseconds)", ["hook", *WAITS]
    )
    waits(table, "(a loop that only counts)", timed_calls(options.calls, count_up))
    with fresh_server() as server, new_home() as first, new_home() as second:
        _measure(table, server.runtime_dsn, first, options.calls, "database up")
        embedded.down(server.root)
        _measure(table, server.runtime_dsn, second, options.calls, "database down")
        end_drain(server.runtime_dsn, first, second)
    report.close()


def _measure(table: Table, dsn: str, home: Path, calls: int, state: str) -> None:
    (home / "config.yaml").write_text(f"memory:\n  pgvector:\n    dsn: {dsn!r}\n", encoding="utf-8")
    provider = PgvectorProvider()
    provider.initialize("bench", hermes_home=str(home), platform="cli", agent_identity="bench")
    sentence = "we moved the nightly export to four o'clock because the replica falls behind at two"

    def turn(number: int) -> None:
        provider.sync_turn(f"{number}: why did {sentence}?", f"{number}: {sentence}.", session_id="bench")

    def note(number: int) -> None:
        provider.on_memory_write("add", "memory", f"{number}: {sentence}", {"session_id": "bench"})

    for name, hook in (("sync_turn", turn), ("on_memory_write", note)):
        waits(table, f"{name}, {state}", timed_calls(calls, hook, PAUSE))
    provider.shutdown()
