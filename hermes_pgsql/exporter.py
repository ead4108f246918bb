"""Measurements for Prometheus: of the database (``memvec.metrics()``) and of homes on this host.

A home's numbers are read from its outbox file, where the agents' processes write what they count (see
``meter.py``), so the exporter is a process of its own that asks nobody but SQLite and the database.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from hermes_pgsql.errors import HermesPgsqlError
from hermes_pgsql.meter import BUCKETS

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

    from hermes_pgsql.client import Memvec
    from hermes_pgsql.outbox import Outbox

__all__ = ["NAMES", "Measurement", "measure", "prometheus_families"]

#: Every metric of homes: its type and what it means. Those of the database are in ``memvec.metrics()``.
NAMES: Final[Mapping[str, tuple[str, str]]] = {
    "hermes_pgsql_database_up": ("gauge", "Whether the database answered (1) or not (0)."),
    "hermes_pgsql_outbox_up": ("gauge", "Whether the home's outbox can be read (1) or not (0)."),
    "hermes_pgsql_outbox_operations": ("gauge", "Operations in the outbox, by state."),
    "hermes_pgsql_outbox_oldest_seconds": ("gauge", "How long the oldest operation waits for the database."),
    "hermes_pgsql_outbox_damaged_files": ("gauge", "Outbox files that were found damaged and set aside."),
    "hermes_pgsql_operations_accepted_total": ("counter", "Operations that the outbox ever accepted."),
    "hermes_pgsql_operations_total": ("counter", "Operations that left the outbox, by outcome."),
    "hermes_pgsql_operations_lost_total": (
        "counter",
        "Accepted operations that nobody can account for: always 0, or there is a bug.",
    ),
    "hermes_pgsql_failures_total": ("counter", "What failed, by part (write, embed, recall) and kind."),
    "hermes_pgsql_breaker_open": ("gauge", "Whether recall has stopped asking what fails (1), by breaker."),
    "hermes_pgsql_recall_seconds": ("histogram", "How long recalls took, by tool and mode."),
}


@dataclass(frozen=True, slots=True)
class Measurement:
    """A value of a metric. A histogram has one for each bucket (label ``le``), its sum and its count."""

    name: str
    type: str
    help: str
    labels: Mapping[str, str]
    value: float
    part: str = ""  # of a histogram: _bucket, _sum or _count


def measure(memvec: Memvec | None, homes: Sequence[Path], themes: int = 50) -> list[Measurement]:
    """Everything there is to measure now. A database or a home that cannot be asked is a 0 among it."""
    from hermes_pgsql.outbox import Outbox

    found: list[Measurement] = []
    if memvec is not None:
        found += _of_database(memvec, themes)
    for home in homes:
        found += _of_home(Outbox.open(home), {"home": str(home)})
    return found


def _made(name: str, labels: Mapping[str, str], value: float, part: str = "") -> Measurement:
    kind, meaning = NAMES[name]
    return Measurement(name, kind, meaning, labels, value, part)


def _of_database(memvec: Memvec, themes: int) -> Iterator[Measurement]:
    try:
        rows = memvec.metrics(themes)
    except HermesPgsqlError:
        yield _made("hermes_pgsql_database_up", {}, 0)
        return
    yield _made("hermes_pgsql_database_up", {}, 1)
    for row in rows:
        yield Measurement(row.name, row.type, row.help, row.labels, row.value)


def _of_home(outbox: Outbox, home: Mapping[str, str]) -> Iterator[Measurement]:
    account = outbox.account() if outbox.path.exists() else (0, 0)
    yield _made("hermes_pgsql_outbox_up", home, account is not None)
    if account is None:
        return
    counts = outbox.counts() if outbox.path.exists() else None
    states = {
        "waiting": counts.waiting if counts else 0,
        "vector_outstanding": counts.sent if counts else 0,
        "refused": counts.poison if counts else 0,
    }
    for state, number in states.items():
        yield _made("hermes_pgsql_outbox_operations", {**home, "state": state}, number)
    oldest = outbox.oldest() if counts else None
    age = 0.0 if oldest is None else max(0.0, time.time() - oldest.timestamp())
    yield _made("hermes_pgsql_outbox_oldest_seconds", home, age)
    yield _made("hermes_pgsql_outbox_damaged_files", home, len(outbox.damaged_files()))
    yield _made("hermes_pgsql_operations_accepted_total", home, account[0])
    yield _made("hermes_pgsql_operations_lost_total", home, account[1])
    if counts:
        yield from _counted(outbox, home)


def _counted(outbox: Outbox, home: Mapping[str, str]) -> Iterator[Measurement]:
    """What the agents' processes wrote down."""
    recalls: dict[tuple[str, str], dict[float, float]] = defaultdict(dict)
    seconds: dict[tuple[str, str], float] = {}
    for name, text, value in outbox.metrics():
        labels = cast("dict[str, str]", json.loads(text))
        if name == "operations":
            yield _made("hermes_pgsql_operations_total", {**home, **labels}, value)
        elif name == "failures":
            yield _made("hermes_pgsql_failures_total", {**home, **labels}, value)
        elif name == "breaker_open_until":
            yield _made("hermes_pgsql_breaker_open", {**home, **labels}, value > time.time())
        elif name == "recalls":
            recalls[labels["tool"], labels["mode"]][float(labels["le"])] = value
        elif name == "recall_seconds":
            seconds[labels["tool"], labels["mode"]] = value
    for (tool, mode), buckets in recalls.items():
        labels = {**home, "tool": tool, "mode": mode}
        below = 0.0
        for bound in BUCKETS:
            below += buckets.get(bound, 0.0)
            shown = "+Inf" if bound == BUCKETS[-1] else str(bound)
            yield _made("hermes_pgsql_recall_seconds", {**labels, "le": shown}, below, "_bucket")
        yield _made("hermes_pgsql_recall_seconds", labels, below, "_count")
        yield _made("hermes_pgsql_recall_seconds", labels, seconds.get((tool, mode), 0.0), "_sum")


def prometheus_families(measured: Sequence[Measurement]) -> Iterator[Family]:
    """The same as prometheus-client has it. The extra ``metrics`` must be installed."""
    from prometheus_client.core import Metric as NewFamily

    families: dict[str, Family] = {}
    for one in measured:
        name = one.name.removesuffix("_total") if one.type == "counter" else one.name
        family = families.setdefault(name, NewFamily(name, one.help, one.type))
        suffix = "_total" if one.type == "counter" else one.part
        family.add_sample(f"{name}{suffix}", dict(one.labels), float(one.value))
    return iter(families.values())
