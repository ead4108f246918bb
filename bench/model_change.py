"""A fleet changes its embedding model while two hosts recall and write: is anything lost or mixed?

The two models have the same width and reversed axes, so every comparison across spaces shows as a wrong
score. The backfill of the new space is killed with SIGKILL and run again. `--rows N` (default 20,000) is the
number of entries, and of turns. The run fails unless no recall failed, no score was wrong, no row was lost,
and no row that had its vector was embedded again.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from bench._host import end_drain
from bench._report import ROOT, Report, options_of
from bench._server import fresh_server
from hermes_pgsql import link
from hermes_pgsql.backfill import backfill, find_target
from hermes_pgsql.client import Memvec
from hermes_pgsql.config import settings_from_mapping
from hermes_pgsql.embedded import EmbeddedServer
from hermes_pgsql.indexing import build_indexes

sys.path.insert(0, str(ROOT / "tests"))

from embedding_services import Service, reversed_vector, words_vector
from model_change_support import Host, Model, add_rows, texts_of

OLD, NEW = Model("model-a", 64, words_vector), Model("model-b", 64, reversed_vector)
THEMES = [f"theme-{number}" for number in range(8)]
DEADLINE = 1800.0


def main(arguments: Sequence[str] = ()) -> None:
    parser = options_of("model_change", __doc__)
    parser.number("--rows", 20_000, "entries, and as many turns", least=500)
    options = parser.parse_args(arguments)
    report = Report("model_change", "A model change while two hosts recall and write", options)
    link._SPACE_AGAIN = 1.0  # type: ignore[misc]
    folder = Path(tempfile.mkdtemp(prefix="hermes-pgsql-bench-change-"))
    models = {"model-a": words_vector, "model-b": reversed_vector}
    services = [Service(models=dict(models)).start() for _ in range(2)]
    try:
        with fresh_server() as server:
            change = _Change(server, folder, options.rows, report, *services)
            try:
                change.run()
            finally:
                change.leave()
    finally:
        for service in services:
            service.stop()
        shutil.rmtree(folder, ignore_errors=True)
    report.close()


class _Change:
    """`hosts_service` answers the hosts, `service` the backfills alone, to tell their requests apart."""

    def __init__(
        self,
        server: EmbeddedServer,
        folder: Path,
        rows: int,
        report: Report,
        hosts_service: Service,
        service: Service,
    ) -> None:
        self._report = report
        self._dsn = server.admin_dsn
        self._memvec = Memvec(server.admin_dsn)
        self._folder = folder
        self._rows = rows
        self._service = service
        self._url = hosts_service.url
        self._runtime_dsn = server.runtime_dsn
        self._hosts: list[Host] = []
        self._config = folder / "config.yaml"
        self._config.write_text(
            "memory: {pgvector: {embed_write_timeout: 5, embed_dim: 64}}\n", encoding="utf-8"
        )

    def leave(self) -> None:
        """Whatever happened, the hosts stop before their server does."""
        for host in self._hosts:
            host.stop()
        end_drain(self._runtime_dsn, *(host.home for host in self._hosts))

    def run(self) -> None:
        self._steps = self._report.table("Steps (seconds)", ["step", "took"])
        old = self._memvec.add_embedding_space(OLD.name, OLD.width)
        self._timed("rows stored", lambda: add_rows(self._query, THEMES, self._rows, self._rows))
        self._timed("old space filled", self._fill_old)
        self._timed("old space indexed", lambda: build_indexes(self._dsn))
        first, second = (self._host(theme) for theme in THEMES[:2])
        first.wait_for(50)
        second.wait_for(50)

        second.use(NEW, self._url)
        second.wait_for(50)
        self._cli("model", "add", NEW.name, "--dim", str(NEW.width))
        finished = self._killed_backfill()
        self._timed("new space filled, after the kill", lambda: self._backfill(finished))
        settled = second.seen.by_meaning
        second.wait_for(50)
        assert second.seen.by_meaning > settled

        first.use(NEW, self._url)
        first.wait_for(50)
        self._timed("old space dropped", lambda: self._cli("model", "drop", OLD.name, "--execute"))
        first.wait_for(50)
        second.wait_for(50)
        for host in self._hosts:
            host.stop()
        self._flushed()
        self._cli(*self._backfill_words())
        self._check(old)

    # Steps ------------------------------------------------------------

    def _fill_old(self) -> None:
        given = {
            "embed_url": self._service.url,
            "embed_model": OLD.name,
            "embed_dim": 64,
            "embed_protocol": "openai",
        }
        report = backfill(self._memvec, find_target(settings_from_mapping(given), self._memvec), jobs=2)
        assert report.outcome == "done", report
        self._service.requests.clear()

    def _host(self, theme: str) -> Host:
        host = Host(self._folder / theme, self._runtime_dsn, theme, texts_of(self._query, theme))
        host.use(OLD, self._url)
        host.start()
        self._hosts.append(host)
        return host

    def _killed_backfill(self) -> set[str]:
        """A backfill is killed when a third is done; the texts that have their vector by then."""
        process = subprocess.Popen(self._command(*self._backfill_words()), cwd=ROOT, env=self._environment())
        ends = time.monotonic() + DEADLINE
        while self._embedded() < 2 * self._rows // 3:
            if process.poll() is not None:
                raise SystemExit("The backfill ended before it could be killed: give more --rows.")
            assert time.monotonic() < ends
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(1)  # what the server was doing for it
        finished = {row[0] for row in self._query(self._new_texts())}
        self._report.say(f"The backfill was killed with {len(finished):,} of {2 * self._rows:,} rows done.")
        self._service.requests.clear()
        return finished

    def _backfill(self, finished: set[str]) -> None:
        self._cli(*self._backfill_words())
        again = finished & set(self._service.texts())
        self._report.bar("rows that had their vector and were embedded again", len(again), most=0)

    def _flushed(self) -> None:
        ends = time.monotonic() + 120
        for host in self._hosts:
            assert host.provider._link is not None
            while not host.provider._link.flush(5):
                assert time.monotonic() < ends, "the outbox is not empty"

    def _check(self, old: int) -> None:
        written = {row for host in self._hosts for row in host.seen.written}
        stored = {("entry", row[0]) for row in self._query("SELECT content FROM memvec.memory_entries")}
        stored |= {("turn", row[0]) for row in self._query("SELECT content FROM memvec.conversations")}
        lost = len(written - stored) + max(0, 2 * self._rows + len(written) - len(stored))
        coverage = self._memvec.embedding_coverage()
        pending = sum(row.pending for row in coverage)
        table = self._report.table(
            "What the hosts saw",
            ["host", "recalls", "by meaning", "by words", "failed", "wrong space", "rows written"],
        )
        for host in self._hosts:
            seen = host.seen
            table.row(
                host.theme,
                seen.recalls,
                seen.by_meaning,
                seen.by_words,
                seen.failed,
                seen.wrong_space,
                len(seen.written),
            )
        self._report.bar("failed recalls", sum(host.seen.failed for host in self._hosts), most=0)
        self._report.bar("scores across spaces", sum(host.seen.wrong_space for host in self._hosts), most=0)
        self._report.bar("rows lost", lost, most=0)
        self._report.bar("rows without a vector of the new model", pending, most=0)
        problems = [problem for host in self._hosts for problem in host.seen.problems]
        if problems or lost or pending or any(row.space_id == old for row in coverage):
            raise SystemExit(f"the change of model went wrong: {problems}")

    # Tools ------------------------------------------------------------

    def _timed(self, what: str, step: Any) -> None:
        began = time.perf_counter()
        step()
        self._steps.row(what, time.perf_counter() - began)

    def _query(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            return connection.execute(statement.encode(), parameters or None).fetchall()

    def _new_space(self) -> int:
        return int(self._query("SELECT max(id) FROM memvec.embedding_spaces")[0][0])

    def _embedded(self) -> int:
        number = self._new_space()
        tables = (f"memvec.entry_embeddings_{number}", f"memvec.turn_embeddings_{number}")
        return sum(self._query(f"SELECT count(*)::int FROM {table}")[0][0] for table in tables)

    def _new_texts(self) -> str:
        number = self._new_space()
        return (
            f"SELECT content FROM memvec.memory_entries JOIN memvec.entry_embeddings_{number} USING (id)"
            " UNION ALL SELECT content FROM memvec.conversations"
            f" JOIN memvec.turn_embeddings_{number} USING (id)"
        )

    def _backfill_words(self) -> list[str]:
        options = ["--model", NEW.name, "--embed-url", self._service.url, "--embed-protocol", "openai"]
        return ["backfill", *options, "--config", str(self._config), "--jobs", "2"]

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "hermes_pgsql", *words]

    def _environment(self) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("HERMES_", "PG"))}
        return kept | {"HERMES_PGSQL_ADMIN_DSN": self._dsn, "HERMES_HOME": str(self._folder / "nobody")}

    def _cli(self, *words: str) -> None:
        done = subprocess.run(
            self._command(*words),
            cwd=ROOT,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        assert done.returncode == 0, (
            f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
