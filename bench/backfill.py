"""How many rows a second a backfill embeds, beside hermes-memory-pgvector's, with 20 ms for each request.

Both commands run on the same server against the same endpoint: ours with four batches of 32 texts at a time,
the peer's as it is (one text a request). First with the HNSW index in place, to which each vector is added,
then, for us, with the index built afterwards; its building counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import psycopg

from bench._peer import Peer, environment, peer_of
from bench._report import ROOT, Report, options_of, ratio
from bench._server import ROOMY, fresh_server
from bench._service import endpoint
from hermes_pgsql.client import Memvec
from hermes_pgsql.embedded import EmbeddedServer

DELAY = 0.02
DIM = 768
TEXT = (
    "format('row %%s of run %%s: the nightly export moved to four because the replica falls behind at two',"
    " n, %s::text)"
)


def main(arguments: Sequence[str] = ()) -> None:
    parser = options_of("backfill", __doc__)
    parser.number("--rows", 10_000, "rows that we embed")
    parser.number("--peer-rows", 300, "rows that the peer embeds")
    options = parser.parse_args(arguments)
    report = Report("backfill", "Backfill", options)
    table = report.table(
        f"Rows a second, {DELAY * 1000:.0f} ms a request, {DIM} dimensions", ["", "rows", "rows a second"]
    )
    with fresh_server(ROOMY) as server, endpoint(DELAY) as url:
        ours = _Ours(server, url, options.rows)
        live = ours.with_live_index()
        table.row("hermes-pgsql, index live", options.rows, live)
        bulk = ours.with_index_afterwards()
        table.row("hermes-pgsql, index built afterwards", options.rows, bulk)
        with peer_of(server, dim=DIM, wanted=not options.no_peer) as peer:
            theirs = None if peer is None else _peer_rate(peer, url, options.peer_rows)
        table.row("hermes-memory-pgvector 1.0.0, index live", options.peer_rows, theirs)
    if theirs is not None:
        report.bar("times the peer, index live", ratio(theirs, live) or 0, least=10)
        report.bar("times the peer, index built afterwards", ratio(theirs, bulk) or 0, least=20)
    report.close()


class _Ours:
    def __init__(self, server: EmbeddedServer, url: str, rows: int) -> None:
        self._dsn = server.admin_dsn
        self._memvec = Memvec(server.admin_dsn)
        self._url = url
        self._rows = rows

    def with_live_index(self) -> float:
        self._memvec.add_embedding_space("bench-live", DIM)
        self._index("bench-live")
        return self._rate("bench-live")

    def with_index_afterwards(self) -> float:
        self._memvec.add_embedding_space("bench-bulk", DIM)
        return self._rate("bench-bulk", lambda: self._index("bench-bulk"))

    def _rate(self, model: str, afterwards: Callable[[], None] = lambda: None) -> float:
        self._query("TRUNCATE memvec.memory_entries, memvec.conversations CASCADE")
        self._query(
            f"SELECT count(memvec.append_turn('bench', 's', 'user', {TEXT}))"
            " FROM generate_series(1, %s) AS n",
            model,
            self._rows,
        )
        command = [
            sys.executable,
            "-m",
            "hermes_pgsql",
            "backfill",
            "--model",
            model,
            "--embed-url",
            self._url,
        ]
        environment = {name: text for name, text in os.environ.items() if not name.startswith("HERMES_")}
        environment |= {"HERMES_PGSQL_ADMIN_DSN": self._dsn, "HERMES_HOME": "/nonexistent"}
        began = time.perf_counter()
        subprocess.run(
            [*command, "--embed-url", self._url, "--embed-protocol", "openai"],
            cwd=ROOT,
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        afterwards()
        return self._rows / (time.perf_counter() - began)

    def _index(self, model: str) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as admin:
            commands = admin.execute(
                "SELECT i.command FROM memvec.vector_indexes() AS i JOIN memvec.embedding_spaces AS s"
                " ON s.id = i.space_id WHERE s.model = %s AND i.kind = 'turn'",
                [model],
            ).fetchall()
            for (command,) in commands:
                admin.execute(command)

    def _query(self, statement: str, *parameters: object) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as admin:
            admin.execute(statement.encode(), parameters or None)


def _peer_rate(peer: Peer, url: str, rows: int) -> float:
    with psycopg.connect(peer.dsn, autocommit=True) as owner:
        owner.execute(
            "INSERT INTO conversations (agent_identity, session_id, role, content)"
            f" SELECT 'bench', 's', 'user', {TEXT} FROM generate_series(1, %s) AS n".encode(),
            ("peer", rows),
        )
    python = environment("bench-peer", "hermes-memory-pgvector==1.0.0")
    command = [python, "-m", "hermes_pgvector", "backfill", "--dsn", peer.dsn, "--embed-url", url]
    began = time.perf_counter()
    subprocess.run(
        [*command, "--embed-protocol", "openai", "--embed-dim", str(DIM)],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    seconds = time.perf_counter() - began
    with psycopg.connect(peer.dsn) as owner:
        embedded = owner.execute("SELECT count(embedding) FROM conversations").fetchone()
    if embedded != (rows,):
        raise SystemExit(f"the peer embedded {embedded} of {rows} rows")
    return rows / seconds


if __name__ == "__main__":
    main(sys.argv[1:])
