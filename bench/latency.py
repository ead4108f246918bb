"""How long each thing takes that a host does with 200,000 notes, beside the peer and beside the limit.

Recall of notes by words and by meaning together, of rare words, of one word that a fifth of all rows hold,
and of a question, in themes of 1, 10 and 20 % and in all; prefetch; writes into a theme of 100 notes, with
their vectors as the peer does them, and without as a host does them, whose vectors follow. The limit is what
no function could beat: a bare round trip, and a scan of the vector index without any filter. The bars are
multiples of that scan in the same run, so that they mean the same on every machine. `times` compares by the
clock, so it wants a quiet machine: for a common word the peer's query employs several processors, and of
those only the clock tells.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from bench._corpus import Corpus, shared_out
from bench._operations import REPLACE_LATER, Operation, Race, race, recalls, writes
from bench._peer import peer_of
from bench._processor import timed
from bench._report import FREE, Report, Table, options_of, percentile, ratio
from bench._server import ROOMY, fresh_server
from hermes_pgsql.client import Memvec

__all__ = ["main"]

BAR_ROWS = 200_000
#: With the bar: as many bare scans of the vector index may a recall take.
THEMES = {"1 %": 5, "10 %": 19, "20 %": 19, None: 10}
COMMON_SCANS = 31
WRITE_SCANS = 2.5


def main(arguments: Sequence[str] = ()) -> None:
    parser = options_of("latency", __doc__)
    parser.number("--rows", BAR_ROWS, "notes in the database; the bars are for the default", least=500)
    parser.number("--calls", 40, "calls of each operation")
    options = parser.parse_args(arguments)
    report = Report("latency", f"Latency with {options.rows:,} notes", options)
    with fresh_server(ROOMY) as server, peer_of(server, wanted=not options.no_peer) as peer:
        corpus = Corpus(server, peer, shared_out)
        corpus.grow(options.rows)
        scan = _limits(report, corpus, options.calls)
        table = report.table(
            "Milliseconds of each operation",
            [
                "operation",
                "theme",
                "p50",
                "p95",
                "p50 here",
                "peer p50",
                "peer p95",
                "peer p50 here",
                "times",
            ],
            f"{FREE} `p50 here` is by the clock, that time included; `times` is the peer's p50 here by ours.",
        )
        client = Memvec(server.runtime_dsn)
        for theme in THEMES:
            for operation in recalls(corpus, client, theme, options.calls):
                done = _measured(table, corpus, operation, theme or "all", options.calls)
                _recall_bars(report, corpus, operation.name, theme, done, scan)
        for operation in writes(corpus, client, options.calls, "latency"):
            done = _measured(table, corpus, operation, "100 notes", options.calls)
            if corpus.rows >= BAR_ROWS and operation.name in {REPLACE_LATER, "remove"}:
                _scans_bar(report, f"{operation.name}, 100 notes", done, scan, WRITE_SCANS)
    report.close()


def _limits(report: Report, corpus: Corpus, calls: int) -> float:
    """Shows them and returns the milliseconds of a bare scan."""
    table = report.table(
        "The limit (milliseconds with a processor always free)",
        ["", "p50", "p95"],
        "What no function could beat: a bare round trip, and a scan of the vector index without any filter.",
    )
    vectors = corpus.vectors(2**31, calls)
    warm_up = vectors[:3]
    nearest = (
        f"SELECT id FROM memvec.entry_embeddings_{corpus.space}"
        " ORDER BY embedding OPERATOR(public.<=>) %b LIMIT 10"
    )
    with psycopg.connect(corpus.server.admin_dsn, autocommit=True) as connection:
        register_vector(connection)
        backends = [connection.info.backend_pid]
        trips = [timed(lambda: connection.execute("SELECT 1").fetchall(), backends)[1] for _ in range(200)]
        scans = [
            timed(
                lambda vector=vector: connection.execute(nearest, [HalfVector(vector)]).fetchall(), backends
            )[1]
            for vector in [*warm_up, *vectors]
        ][len(warm_up) :]
    table.row("SELECT 1", percentile(trips, 0.5), percentile(trips, 0.95))
    table.row("10 rows from the HNSW index", percentile(scans, 0.5), percentile(scans, 0.95))
    return percentile(scans, 0.5)


def _measured(table: Table, corpus: Corpus, operation: Operation, theme: str, calls: int) -> Race:
    done = race(operation, corpus, calls)
    ours = _cells(done.ours_working, done.ours)
    theirs = _cells(done.theirs_working, done.theirs) if done.theirs else (None, None, None)
    table.row(operation.name, theme, *ours, *theirs, ratio(ours[2], theirs[2]))
    return done


def _recall_bars(
    report: Report, corpus: Corpus, name: str, theme: str | None, done: Race, scan: float
) -> None:
    if corpus.rows < BAR_ROWS:
        return
    what = f"{name}, {theme or 'all'}"
    if name in {"rare words", "a question"}:
        _scans_bar(report, what, done, scan, THEMES[theme])
    if name == "one common word" and theme is None:
        _scans_bar(report, what, done, scan, COMMON_SCANS)
        if done.theirs:
            times = percentile(done.theirs, 0.5) / percentile(done.ours, 0.5)
            report.bar(f"{what}: times the peer's", times, least=20)


def _scans_bar(report: Report, what: str, done: Race, scan: float, most: float) -> None:
    report.bar(
        f"{what}: p50 in bare scans of the index", percentile(done.ours_working, 0.5) / scan, most=most
    )


def _cells(working: list[float], took: list[float]) -> tuple[float, float, float]:
    return percentile(working, 0.5), percentile(working, 0.95), percentile(took, 0.5)
