"""What is measured: by the agents' processes in the outbox, by the database, and as Prometheus reads it."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml
from conftest import ROOT, Database
from prometheus_client.parser import text_string_to_metric_families
from provider_support import HomeUnderTest, settle, wait_for

from hermes_pgsql import pool
from hermes_pgsql.client import Memvec
from hermes_pgsql.drain import Drain
from hermes_pgsql.exporter import NAMES, Measurement, measure
from hermes_pgsql.meter import Meter
from hermes_pgsql.outbox import Outbox

Series = dict[tuple[str, ...], float]


@pytest.fixture(scope="module")
def memvec(database: Database) -> Iterator[Memvec]:
    yield Memvec(database.runtime_dsn)
    pool.close_all()


def series(measured: list[Measurement], name: str, *labels: str) -> Series:
    """The values of a metric by the given labels (added up where others differ)."""
    found: Series = {}
    for one in measured:
        if f"{one.name}{one.part}" == name:
            key = tuple(one.labels[label] for label in labels)
            found[key] = found.get(key, 0.0) + one.value
    return found


# Counting ------------------------------------------------------------


def test_counts_are_summed_up_and_a_gauge_keeps_its_last_value() -> None:
    meter = Meter()
    meter.failure("write", "database_unavailable")
    meter.failure("write", "database_unavailable")
    meter.breaker("database", 5.0)
    meter.breaker("database", 0.0)
    assert bool(meter)
    samples = {sample.name: sample for sample in meter.take()}
    assert samples["failures"].value == 2
    assert (samples["breaker_open_until"].value, samples["breaker_open_until"].adds) == (0.0, False)
    assert meter.take() == []


def test_every_accepted_operation_is_accounted_for(database: Database, tmp_path: Path) -> None:
    outbox = Outbox.open(tmp_path)
    (tmp_path / "MEMORY.md").write_text("one")
    note = {"target": "memory", "content": "a note"}
    outbox.put("add_memory", "account", note)
    bad = [outbox.put("append_turn", "account", {"session_id": "s", "role": r, "content": r}) for r in "xy"]
    for _ in range(3):
        outbox.put_file("account", "memory", tmp_path / "MEMORY.md", UUID(int=1))
    assert outbox.account() == (6, 0)
    drain = Drain(database.runtime_dsn)
    drain.attach(outbox, None)
    wait_for(lambda: drain.flush(20) and outbox.counts().waiting == 0, 60)
    assert outbox.counts().poison == 2
    assert outbox.retry(bad[0])
    assert outbox.drop(bad[1])
    wait_for(lambda: drain.flush(20) and outbox.counts().waiting == 0, 60)
    drain.stop(10)
    assert outbox.account() == (7, 0)
    outbox.write_meter()
    measured = measure(None, [tmp_path])
    assert series(measured, "hermes_pgsql_operations_total", "outcome") == {
        ("sent",): 2,
        ("refused",): 3,
        ("replaced",): 2,
    }
    refused = series(measured, "hermes_pgsql_failures_total", "part", "kind")
    assert refused["write", "operation_refused"] == 3
    assert series(measured, "hermes_pgsql_operations_lost_total") == {(): 0}
    # What nobody took out is a loss, and shows.
    outbox.put("add_memory", "account", note)
    with sqlite3.connect(outbox.path) as db:
        db.execute("DELETE FROM waiting")
    db.close()
    assert series(measure(None, [tmp_path]), "hermes_pgsql_operations_lost_total") == {(): 1}


def test_an_outbox_of_the_format_before_is_counted_from_now_on(tmp_path: Path) -> None:
    outbox = Outbox.open(tmp_path)
    for _ in range(3):
        outbox.put("add_memory", "old", {"target": "memory", "content": "a note"})
    with sqlite3.connect(outbox.path) as db:
        db.execute("DELETE FROM waiting WHERE seq = 1")  # as if it had been sent
        db.execute("DROP TABLE metrics")
        db.execute("DROP TABLE troubles")
        db.execute("PRAGMA user_version = 1")
    db.close()
    outbox.path.rename(tmp_path / "moved.db")
    (tmp_path / "moved.db").rename(outbox.path)
    copy = tmp_path / "copy" / "hermes-pgsql"
    copy.mkdir(parents=True)
    with sqlite3.connect(outbox.path) as db:
        db.execute("VACUUM INTO ?", (str(copy / "outbox.db"),))
    db.close()
    assert Outbox.open(tmp_path / "copy").account() == (3, 0)
    assert Outbox.open(tmp_path / "copy").counts().waiting == 2


# Of the hosts' processes ------------------------------------------------------------


def test_recalls_are_counted_with_their_mode_and_failures_with_their_kind(
    database: Database, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        dead = f"http://127.0.0.1:{free.getsockname()[1]}"
    home = HomeUnderTest(tmp_path, database.runtime_dsn, database.admin_dsn)
    home.configure(embed_url=dead, embed_model="dead", embed_dim=4)
    provider = home.provider(theme="metered")
    provider.on_memory_write("add", "memory", "The bicycle is gravel grey.")
    settle(provider, 60)
    for _ in range(3):
        assert "gravel" in provider.prefetch("what colour is my bicycle")
    provider.handle_tool_call("recall_memory", {"query": "bicycle"})
    provider.handle_tool_call("recall_memory", {"query": "bicycle", "scope": "whatsapp-dm"})
    Outbox.open(tmp_path).write_meter()
    measured = measure(None, [tmp_path])
    assert series(measured, "hermes_pgsql_recall_seconds_count", "tool", "mode") == {
        ("prefetch", "words"): 3,
        ("recall_memory", "words"): 1,
        ("recall_memory", "refused"): 1,
    }
    buckets = series(measured, "hermes_pgsql_recall_seconds_bucket", "tool", "mode", "le")
    assert buckets["prefetch", "words", "+Inf"] == 3
    seconds = series(measured, "hermes_pgsql_recall_seconds_sum", "tool")
    assert seconds["prefetch",] > 0
    # The endpoint was asked until the breaker opened.
    failures = series(measured, "hermes_pgsql_failures_total", "part", "kind")
    assert failures["recall", "embedding_unreachable"] == 2
    assert series(measured, "hermes_pgsql_breaker_open", "breaker") == {("embedding",): 1}
    # An open breaker that nobody renews is closed when its time is over.
    with sqlite3.connect(Outbox.open(tmp_path).path) as db:
        db.execute("UPDATE metrics SET value = 1 WHERE name = 'breaker_open_until'")
    db.close()
    assert series(measure(None, [tmp_path]), "hermes_pgsql_breaker_open", "breaker") == {("embedding",): 0}


def test_a_home_without_an_outbox_is_an_empty_one_and_stays_untouched(tmp_path: Path) -> None:
    measured = measure(None, [tmp_path])
    assert series(measured, "hermes_pgsql_outbox_up") == {(): 1}
    assert series(measured, "hermes_pgsql_outbox_operations", "state")["waiting",] == 0
    assert list(tmp_path.iterdir()) == []


# Of the database ------------------------------------------------------------


def test_the_database_is_measured_or_is_down(memvec: Memvec) -> None:
    memvec.add_memory("measured", "memory", "a note")
    memvec.housekeeping()
    measured = measure(memvec, [])
    assert series(measured, "hermes_pgsql_database_up") == {(): 1}
    assert series(measured, "memvec_rows", "theme")["measured",] == 1
    down = measure(Memvec("postgresql://hermes@127.0.0.1:9/none", timeout=5.0), [])
    assert series(down, "hermes_pgsql_database_up") == {(): 0}
    assert len(down) == 1


# The command ------------------------------------------------------------


def environment(database: Database, home: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("HERMES_", "PG"))}
    return clean | {"HERMES_PGSQL_DSN": database.runtime_dsn, "HERMES_HOME": str(home)}


def families(text: str) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_they_are_served_as_prometheus_reads_them(database: Database, memvec: Memvec, tmp_path: Path) -> None:
    outbox = Outbox.open(tmp_path)
    outbox.put("add_memory", "served", {"target": "memory", "content": "a note"})
    with outbox.meter.recall("prefetch") as timed:
        timed.asked(words=True, meaning=True)
    outbox.write_meter()
    memvec.schema_version()
    command = [sys.executable, "-m", "hermes_pgsql", "metrics", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        command, env=environment(database, tmp_path), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            url = re.search(r"http://127\.0\.0\.1:\d+/metrics", line)
            assert url, line
            with urllib.request.urlopen(url[0], timeout=60) as answer:  # noqa: S310 (our own)
                found = families(answer.read().decode())
        finally:
            process.terminate()
            process.wait(60)
    assert found["hermes_pgsql_outbox_operations"].type == "gauge"
    assert found["hermes_pgsql_operations_lost"].type == "counter"
    assert found["hermes_pgsql_recall_seconds"].type == "histogram"
    samples = {sample.name: sample.value for sample in found["hermes_pgsql_recall_seconds"].samples}
    assert samples["hermes_pgsql_recall_seconds_count"] == 1
    assert found["memvec_schema_version"].samples[0].value == memvec.schema_version()


def test_they_are_printed_once_or_as_json(database: Database, tmp_path: Path) -> None:
    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hermes_pgsql", "metrics", *options]
        env = environment(database, tmp_path)
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    printed = run("--no-database", "--hermes-home", str(tmp_path / "a"), "--hermes-home", str(tmp_path / "b"))
    assert printed.returncode == 0, printed.stderr
    up = families(printed.stdout)["hermes_pgsql_outbox_up"]
    assert [sample.labels["home"] for sample in up.samples] == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert {"hermes_pgsql_database_up", "memvec_schema_version"} <= {
        m["name"] for m in json.loads(run("--json").stdout)
    }
    wrong = run("--listen", "9187")
    assert wrong.returncode == 2
    assert "HOST:PORT" in wrong.stderr


def test_a_port_that_is_taken_is_an_error_with_a_hint(database: Database, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "hermes_pgsql",
                "metrics",
                "--no-database",
                "--listen",
                f"127.0.0.1:{taken.getsockname()[1]}",
            ],
            env=environment(database, tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "cannot be listened on" in done.stderr


# The alert rules ------------------------------------------------------------


def test_the_alert_rules_name_metrics_that_exist(memvec: Memvec) -> None:
    document = yaml.safe_load((ROOT / "docs" / "alerts.yml").read_text())
    rules = [rule for group in document["groups"] for rule in group["rules"]]
    assert len(rules) >= 8
    source = (ROOT / "db" / "functions" / "maintenance" / "metrics.sql").read_text()
    known = set(re.findall(r"'(memvec_[a-z_]+)'", source)) | set(NAMES)
    known |= {f"{name}_{part}" for name in NAMES for part in ("bucket", "count", "sum")}
    assert {row.name for row in memvec.metrics()} <= known
    for rule in rules:
        assert set(rule) >= {"alert", "expr", "annotations"}, rule
        used = set(re.findall(r"\b(?:memvec|hermes_pgsql)_[a-z_]+", rule["expr"]))
        assert used, rule
        assert used <= known, used - known
        assert "hermes-pgsql " in rule["annotations"]["description"], rule["alert"]


def test_every_metric_of_a_home_is_documented() -> None:
    text = (ROOT / "docs" / "monitoring.md").read_text()
    source = (ROOT / "db" / "functions" / "maintenance" / "metrics.sql").read_text()
    for name in {*NAMES, *re.findall(r"'(memvec_[a-z_]+)'", source)} - {"memvec_admin"}:
        assert f"`{name}" in text, name
