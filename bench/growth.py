"""How the time of each thing that a host does grows with the rows that are not concerned.

The themes that are asked and written to stay as they are while others are loaded around them: 10, 100 and
(with `--large`) 1000 times the rows of the beginning. What a theme of its own costs should not follow.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench._corpus import Corpus
from bench._operations import HUNDRED, recalls, writes
from bench._operations import race as run
from bench._peer import peer_of
from bench._report import FREE, Cell, Report, options_of, percentile, ratio
from bench._server import LARGE, ROOMY, fresh_server
from hermes_pgsql.client import Memvec

__all__ = ["main"]

#: Rows of the themes that stay as they are; the second is not whole before there are 10,000 rows.
SMALL, MEDIUM = "theme-500", "theme-5000"
BAR_FROM = 20_000


def main(arguments: Sequence[str] = ()) -> None:
    parser = options_of("growth", __doc__)
    parser.number("--rows", [1_000, 10_000, 20_000, 100_000], "sizes of the database to measure at", 600)
    parser.add_argument("--large", action="store_true", help="also 1,000,000 rows (default: no)")
    parser.number("--calls", 30, "calls of each operation")
    options = parser.parse_args(arguments)
    sizes: list[int] = sorted([*options.rows, *([1_000_000] if options.large else [])])
    report = Report("growth", "Growth", options)
    figures: dict[tuple[str, str], dict[int, tuple[float, float | None]]] = {}
    with (
        fresh_server(LARGE if options.large else ROOMY) as server,
        peer_of(server, wanted=not options.no_peer) as peer,
    ):
        corpus = Corpus(server, peer, _theme_of)
        client = Memvec(server.runtime_dsn)
        for rows in sizes:
            corpus.grow(rows)
            themes = [SMALL, *([MEDIUM] if rows >= 10_000 else []), None]
            operations = [
                (theme or "all", operation)
                for theme in themes
                for operation in recalls(corpus, client, theme, options.calls)
            ]
            operations += [
                (HUNDRED, operation) for operation in writes(corpus, client, options.calls, f"at {rows}")
            ]
            for theme, operation in operations:
                done = run(operation, corpus, options.calls, most_seconds=8)
                ours = percentile(done.ours_working, 0.5)
                theirs = percentile(done.theirs_working, 0.5) if done.theirs else None
                figures.setdefault((operation.name, theme), {})[rows] = (ours, theirs)
    _show(report, sizes, figures)
    report.close()


def _theme_of(row: int, number: float) -> str:
    if row < 100:
        return HUNDRED
    if row < 600:
        return SMALL
    if 1_000 <= row < 6_000:
        return MEDIUM
    return f"other-{int(number * 100)}"


def _show(
    report: Report,
    sizes: list[int],
    figures: dict[tuple[str, str], dict[int, tuple[float, float | None]]],
) -> None:
    shown = [f"{rows:,} rows" for rows in sizes]
    columns = ["operation", "theme", *shown, "growth", *(f"peer {size}" for size in shown), "peer growth"]
    table = report.table(
        "p50 in milliseconds with a processor always free; growth is the last by the first", columns, FREE
    )
    for (name, theme), of_size in figures.items():
        ours = {rows: pair[0] for rows, pair in of_size.items()}
        theirs = {rows: pair[1] for rows, pair in of_size.items() if pair[1] is not None}
        cells: list[Cell] = [name, theme]
        for side in (ours, theirs):
            cells += [side.get(rows) for rows in sizes]
            cells.append(ratio(side[min(side)], side[max(side)]) if side else None)
        table.row(*cells)
        last = max(ours)
        if theme in {SMALL, MEDIUM} and BAR_FROM in ours and last > BAR_FROM:
            what = f"{name}, {theme}: growth from {BAR_FROM:,} to {last:,} rows"
            report.bar(what, ours[last] / ours[BAR_FROM], most=3)
