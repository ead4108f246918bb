"""What every benchmark prints and writes: tables and bars as Markdown while it runs, and all of it as JSON.

    options = options_of("latency", __doc__)
    options.number("--rows", 200_000, "notes", least=500)
    report = Report("latency", "Latency", options.parse_args(arguments))
    table = report.table("Recall (milliseconds)", ["question", "p50"])
    table.row("rare words", 1.2)
    report.bar("rare words, p50", 1.2, most=4)
    report.close()

The JSON file is `--json FILE`, or build/bench/NAME.json; the last line says where. It also says on what
machine, and how busy.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

__all__ = [
    "BUILD",
    "FREE",
    "ROOT",
    "Cell",
    "Options",
    "Report",
    "Table",
    "at_least",
    "options_of",
    "percentile",
    "ratio",
]

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"

#: What the columns of most tables of times mean.
FREE = (
    "p50, p95: what 50 and 95 of 100 calls did not exceed with a processor always free: without the time they"
    " waited for one that others had."
)

Cell: TypeAlias = str | int | float | None


class Options(argparse.ArgumentParser):
    """The options of a benchmark, each with a help that says its default."""

    def number(self, flag: str, default: float | Sequence[int], what: str, least: float = 1) -> None:
        """A number, whole if `least` is, or several where the default is several."""
        several = isinstance(default, Sequence)
        self.add_argument(
            flag,
            type=at_least(least),
            nargs="+" if several else None,
            default=default,
            metavar="N",
            help=f"{what} (default: {' '.join(map(str, default)) if several else default}; at least {least})",
        )


def at_least(least: float) -> Callable[[str], float]:
    """The type of an option: a number that is not smaller, whole if `least` is."""

    def number(text: str) -> float:
        value = type(least)(text)
        if not value >= least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {text}")
        return value

    return number


def options_of(name: str, module_doc: str | None) -> Options:
    """The parser of a benchmark, with the options that all of them have."""
    options = Options(
        prog=f"python -m bench {name}",
        description=module_doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument(
        "--json", type=Path, metavar="FILE", help=f"where the result goes (default: build/bench/{name}.json)"
    )
    options.add_argument(
        "--no-peer", action="store_true", help="leave hermes-memory-pgvector out (default: it is beside us)"
    )
    return options


def percentile(values: Sequence[float], part: float) -> float:
    """The value that `part` (0 to 1) of the values do not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def ratio(ours: float | None, theirs: float | None) -> float | None:
    """How many times ours theirs is; None where one of them was not measured."""
    return None if ours is None or theirs is None or ours == 0 else theirs / ours


@dataclass
class Table:
    """A table whose rows are printed as they come."""

    title: str
    columns: list[str]
    note: str = ""
    rows: list[list[Cell]] = field(default_factory=list)

    def row(self, *cells: Cell) -> None:
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title}: {len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(list(cells))
        print(f"| {' | '.join(map(_shown, cells))} |", flush=True)

    def begin(self) -> None:
        if self.title:
            print(f"\n{self.title}\n")
        if self.note:
            print(f"{self.note}\n")
        print(f"| {' | '.join(self.columns)} |")
        print(f"|{'|'.join(['---'] + ['---:'] * (len(self.columns) - 1))}|", flush=True)


@dataclass
class _Bar:
    what: str
    figure: float
    least: float | None
    most: float | None

    @property
    def passed(self) -> bool:
        return (self.least is None or self.figure >= self.least) and (
            self.most is None or self.figure <= self.most
        )

    @property
    def limit(self) -> str:
        parts = [
            f"{sign} {limit:g}"
            for sign, limit in (("at least", self.least), ("at most", self.most))
            if limit is not None
        ]
        return " and ".join(parts)


class Report:
    """One run of one benchmark."""

    def __init__(self, name: str, title: str, options: argparse.Namespace) -> None:
        self._file: Path = options.json or BUILD / "bench" / f"{name}.json"
        self._options = {key: value for key, value in vars(options).items() if key != "json"}
        self._title = title
        self._began = time.monotonic()
        self._load_before = _load()
        self._remarks: list[str] = []
        self._tables: list[Table] = []
        self._bars: list[_Bar] = []
        print(f"## {title}")

    def say(self, remark: str) -> None:
        """A sentence of the result."""
        self._remarks.append(remark)
        print(f"\n{remark}", flush=True)

    def table(self, title: str, columns: Sequence[str], note: str = "") -> Table:
        """A table; `note` explains below the title what the columns do not say themselves."""
        table = Table(title, list(columns), note)
        self._tables.append(table)
        table.begin()
        return table

    def bar(self, what: str, figure: float, *, least: float | None = None, most: float | None = None) -> None:
        """A figure that has to be within limits; shown at the end."""
        self._bars.append(_Bar(what, figure, least, most))

    def close(self) -> None:
        """Print the bars and the state of the machine, and write the JSON file."""
        if self._bars:
            table = Table(
                "Bars:", ["bar", "figure", "limit", "result"], "Each figure has to keep to its limit."
            )
            table.begin()
            for bar in self._bars:
                table.row(bar.what, bar.figure, bar.limit, "pass" if bar.passed else "**fail**")
        machine = {
            "processors": os.cpu_count(),
            "system": platform.platform(),
            "python": platform.python_version(),
            "load_before": self._load_before,
            "load_after": _load(),
            "seconds": round(time.monotonic() - self._began, 1),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        document = {
            "title": self._title,
            "options": self._options,
            "machine": machine,
            "remarks": self._remarks,
            "tables": [vars(table) for table in self._tables],
            "bars": [vars(bar) | {"passed": bar.passed} for bar in self._bars],
        }
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(document, indent=1, default=str) + "\n", encoding="utf-8")
        print(
            f"\n({machine['seconds']:.0f} s on {machine['processors']} processors; load {self._load_before}"
            f" before, {machine['load_after']} after. The same as JSON: {self._file})\n",
            flush=True,
        )


def _load() -> str:
    """Processes that wanted a processor in the last one and five minutes: above the number of processors,
    times are those of a busy machine."""
    try:
        one, five, _fifteen = os.getloadavg()
    except OSError:
        return "unknown"
    return f"{one:.1f} (5 min: {five:.1f})"


def _shown(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.1f}" if abs(cell) >= 10 else f"{cell:.3f}"
    return f"{cell:,}" if isinstance(cell, int) else cell
