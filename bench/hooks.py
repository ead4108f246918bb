"""How long the host's thread waits in the hooks that write, with the database up and down.

The provider is called as the host calls it, a turn or a note every 2 ms, while its drain sends
what it has accepted. The limit in the same run is a loop that only counts.
"""

from __future__ import annotations

from bench.server import fresh_server
from bench.write_path import count_up, new_home, report, timed
from hermes_pgsql import embedded
from hermes_pgsql.provider import PgvectorProvider

CALLS = 500
PAUSE = 0.002

__all__ = ["main"]


def main() -> None:
    print(f"## Hooks that write: {CALLS} calls, one every {PAUSE * 1000:.0f} ms (milliseconds)\n")
    print("| hook | median | p99 | p99.9 | p99 with a free processor | p99.9 with a free processor |")
    print("|---|---:|---:|---:|---:|---:|")
    report("(a loop that only counts)", timed(CALLS, lambda _number: count_up()))
    with fresh_server() as server:
        measure(server.runtime_dsn, "database up")
        embedded.down(server.root)
        measure(server.runtime_dsn, "database down")
    print()


def measure(dsn: str, state: str) -> None:
    with new_home() as home:
        (home / "config.yaml").write_text(f"memory:\n  pgvector:\n    dsn: {dsn!r}\n", encoding="utf-8")
        provider = PgvectorProvider()
        provider.initialize("bench", hermes_home=str(home), platform="cli", agent_identity="bench")
        sentence = "we moved the nightly export to four o'clock because the replica falls behind at two"

        def turn(number: int) -> None:
            provider.sync_turn(f"{number}: why did {sentence}?", f"{number}: {sentence}.", session_id="bench")

        def note(number: int) -> None:
            provider.on_memory_write("add", "memory", f"{number}: {sentence}", {"session_id": "bench"})

        for name, hook in (("sync_turn", turn), ("on_memory_write", note)):
            report(f"{name}, {state}", timed(CALLS, hook, PAUSE))
        provider.shutdown()
