"""How much of the true nearest ten a vector recall finds when only a part of the rows may be found.

Themes of 0.2 to 20 % of all rows, and `scope=all`, in 50,000 and 200,000 rows of 768 dimensions (a million
with `--large`); what lies near a question has nothing to do with the theme. Exact is a comparison with every
row, made outside the database. Beside it the peer's own query on the same rows: its `search`, as it is. Then
by words: how often a question of five words of a row finds it, in a theme of 250 rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench._corpus import SHARES, Corpus, Vectors, shared_out
from bench._operations import HUNDRED, ours_recalling, their_sinks
from bench._peer import Answer, peer_of
from bench._processor import timed
from bench._report import FREE, Report, Table, options_of, percentile
from bench._server import LARGE, ROOMY, fresh_server
from hermes_pgsql.client import Memvec

__all__ = ["main"]

ALL = "all"
SMALL = "250 rows"
SMALL_ROWS = range(100, 350)
BEST = 10
BAR_ROWS = 50_000


def main(arguments: Sequence[str] = ()) -> None:
    parser = options_of("filtered", __doc__)
    parser.number(
        "--rows", [50_000, 200_000], "sizes of the database to measure at; bars from 50000", SMALL_ROWS.stop
    )
    parser.add_argument("--large", action="store_true", help="also 1,000,000 rows (default: no)")
    parser.number("--questions", 40, "questions of each theme")
    parser.number("--rounds", 3, "times each question is asked")
    options = parser.parse_args(arguments)
    report = Report("filtered", "Vector recall in a part of the rows", options)
    sizes = [*options.rows, *([1_000_000] if options.large else [])]
    with (
        fresh_server(LARGE if options.large else ROOMY) as server,
        peer_of(server, wanted=not options.no_peer) as peer,
    ):
        nearest = Nearest(options.questions)
        corpus = Corpus(server, peer, _theme_of, nearest.observe)
        nearest.questions = corpus.vectors(-1 % 2**32, options.questions)
        for rows in sorted(sizes):
            corpus.grow(rows)
            _measure(report, corpus, nearest, options.rounds)
            _by_words(report, corpus)
    report.close()


def _theme_of(row: int, number: float) -> str:
    return SMALL if row in SMALL_ROWS else shared_out(row, number)


class Nearest:
    """The exact answer, kept up to date while rows are loaded: the nearest ten of each theme and of all."""

    def __init__(self, questions: int) -> None:
        self.questions: Vectors = np.empty((questions, 0), dtype=np.float32)
        self._best: dict[str, list[list[tuple[float, int]]]] = {
            name: [[] for _question in range(questions)] for name in (*SHARES, ALL)
        }

    def observe(self, first: int, themes: list[str], vectors: Vectors) -> None:
        near = self.questions @ vectors.T
        named = np.array(themes)
        for name, best in self._best.items():
            where = np.arange(len(themes)) if name == ALL else np.flatnonzero(named == name)
            for at, kept in enumerate(best):
                similarity = near[at, where]
                top = np.argsort(-similarity)[:BEST]
                kept += [(float(-similarity[one]), first + 1 + int(where[one])) for one in top]
                kept.sort()
                del kept[BEST:]

    def of(self, name: str) -> list[set[int]]:
        return [{row for _distance, row in kept} for kept in self._best[name]]


def _measure(report: Report, corpus: Corpus, nearest: Nearest, rounds: int) -> None:
    table = report.table(
        f"{corpus.rows:,} rows, {len(nearest.questions)} questions, 10 rows asked for"
        " (milliseconds with a processor always free)",
        ["theme", "recall@10", "rows", "fewest", "p50", "p95",
         "peer recall@10", "peer rows", "peer fewest", "peer p50", "peer p95"],
        f"recall@10: the part of the true nearest ten that was found. rows, fewest: how many came back, on"
        f" average and at worst. {FREE}",
    )  # fmt: skip
    client = Memvec(corpus.server.runtime_dsn)
    for name in (*SHARES, ALL):
        exact = nearest.of(name)
        if not any(exact):
            continue  # so few rows that none is this theme's
        # Interleaved, so that both sides meet the machine in the same state.
        ours: list[Answer] = []
        theirs: list[Answer] = []
        for _round in range(rounds):
            backends = corpus.backends()
            ours += [_ours(client, corpus, name, vector, backends) for vector in nearest.questions]
            if corpus.peer is not None:
                theirs += corpus.peer.calls("search", [_theirs(name, vector) for vector in nearest.questions])
        _row(report, table, corpus.rows, name, exact, ours, theirs)


def _by_words(report: Report, corpus: Corpus) -> None:
    client = Memvec(corpus.server.runtime_dsn)
    asked = [row for row in SMALL_ROWS[::5] if row < corpus.rows]
    found = 0
    for row in asked:
        rows = client.recall_memory(SMALL, corpus.question(row), limit=BEST)
        found += row + 1 in [one.id for one in rows]
    share = found / len(asked)
    report.say(
        f"By words in a theme of 250 of {corpus.rows:,} rows: {share:.3f} of {len(asked)} rows asked for."
    )
    report.bar(f"found by words in 250 of {corpus.rows:,} rows", share, least=0.99)


def _ours(client: Memvec, corpus: Corpus, name: str, vector: Vectors, backends: list[int]) -> Answer:
    where = {"identity": HUNDRED, "scope": "all"} if name == ALL else {"identity": name, "scope": "own"}
    numbers = array("f", vector)
    found: list[int] = []
    took = timed(lambda: found.extend(ours_recalling(client, corpus.space, None, numbers, **where)), backends)
    return Answer(*took, found)


def _theirs(name: str, vector: Vectors) -> dict[str, Any]:
    asked: dict[str, Any] = {"query_embedding": vector.tolist(), "limit": BEST}
    return asked | (their_sinks() if name == ALL else {"agent_identity": name})


def _row(
    report: Report,
    table: Table,
    rows: int,
    name: str,
    exact: list[set[int]],
    ours: list[Answer],
    theirs: list[Answer],
) -> None:
    label = "scope=all" if name == ALL else name
    found = _found(exact, ours)
    table.row(label, *found, *(_found(exact, theirs) if theirs else [None] * 5))
    if rows >= BAR_ROWS:
        where = f"{label} of {rows:,} rows"
        report.bar(f"recall@10, {where}", found[0], least=0.99 if rows < 1_000_000 else 0.97)
        report.bar(f"fewest rows, {where}", found[2], least=min(map(len, exact)))


def _found(exact: list[set[int]], answers: list[Answer]) -> tuple[float, float, int, float, float]:
    """Recall, rows on average, fewest rows, p50 and p95."""
    wanted = exact * (len(answers) // len(exact))
    hits = sum(len(right.intersection(answer.ids)) for right, answer in zip(wanted, answers, strict=True))
    returned = [len(answer.ids) for answer in answers]
    took = [answer.working for answer in answers]
    return (
        hits / max(1, sum(map(len, wanted))),
        sum(returned) / len(returned),
        min(returned),
        percentile(took, 0.5),
        percentile(took, 0.95),
    )
