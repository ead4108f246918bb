"""How long a host's thread waits until a write is safe: `Outbox.put`, whatever is behind it.

While nothing, this process or another process drains the outbox, and while the database is down. The limit in
the same run is a loop that only counts. How soon the writes are in the database: the benchmark `throughput`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from psycopg.conninfo import make_conninfo

from bench._host import WAITS, Times, count_up, new_home, put, timed_calls, turns, waits
from bench._report import Report, Table, options_of
from bench._server import fresh_server
from hermes_pgsql.drain import Drain
from hermes_pgsql.outbox import Outbox

__all__ = ["main"]

PAUSE = 0.005  # seconds
DRAINER = """
import sys
from hermes_pgsql.drain import Drain
from hermes_pgsql.outbox import Outbox
Drain.for_dsn(sys.argv[2]).attach(Outbox.open(sys.argv[1]), None)
print("ready", flush=True)
sys.stdin.readline()
"""


def main(arguments: Sequence[str] = ()) -> None:
    parser = options_of("write_path", __doc__)
    parser.number("--puts", 2000, "turns put into the outbox", least=4)
    options = parser.parse_args(arguments)
    count: int = options.puts
    report = Report("write_path", "A write that is accepted", options)
    table = report.table(
        f"`Outbox.put` of {count} turns, one after another without a pause (milliseconds)", ["while", *WAITS]
    )
    waits(table, "(a loop that only counts)", timed_calls(count, count_up))
    with fresh_server() as server:
        with new_home() as home:
            waits(table, "nothing drains", _puts(home, count))
        with new_home() as home:
            _drained(table, server.runtime_dsn, home, count, "this process drains")
        with new_home() as home:
            _drained_by_another(table, server.runtime_dsn, home, count)
        with new_home() as home:
            drain = Drain(server.runtime_dsn)
            drain.attach(Outbox.open(home), None)
            waits(table, "this process drains, 5 ms between turns", _puts(home, count // 4, PAUSE))
            drain.stop(10)
    with new_home() as home:
        nowhere = make_conninfo(host="/nonexistent", dbname="x", user="x")
        _drained(table, nowhere, home, count, "the database is down", flush=5)
    waits(table, "(a loop that only counts)", timed_calls(count, count_up))
    report.close()


def _drained(table: Table, dsn: str, home: Path, count: int, name: str, flush: float = 60) -> None:
    drain = Drain(dsn)
    drain.attach(Outbox.open(home), None)
    waits(table, name, _puts(home, count))
    drain.flush(flush)
    drain.stop(10)


def _drained_by_another(table: Table, dsn: str, home: Path, count: int) -> None:
    drainer = subprocess.Popen(
        [sys.executable, "-c", DRAINER, str(home), dsn],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert drainer.stdout is not None
    drainer.stdout.readline()
    waits(table, "another process drains", _puts(home, count))
    drainer.communicate("\n")


def _puts(home: Path, count: int, pause: float = 0.0) -> Times:
    outbox = Outbox.open(home)
    outbox.depth()
    texts = turns(count)
    return timed_calls(count, lambda number: put(outbox, texts[number]), pause)
