"""What maintenance costs those who go on writing and reading, and whether any of their rows is lost.

Two measurements, each with its own numbers: a remap under full-speed writers with vectors indexed, and a
prune in batches under concurrent recall. Vectors are random directions around a few hundred centres, as the
topics of a theme are. The sizes are options: `python -m bench maintenance --rows 2000 --turns 50000`.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeAlias

import psycopg

from bench._report import Report, options_of, percentile
from bench._server import ROOMY, fresh_server

Connection: TypeAlias = psycopg.Connection[tuple[object, ...]]

# A vector near one of 300 centres, made by the server: nothing is carried over the wire.
VECTORS = """
    CREATE UNLOGGED TABLE bench_centres AS
    SELECT c AS id,
           (SELECT array_agg(random() - 0.5)
              FROM generate_series(1, {dim}) AS d WHERE c + d > 0)::real[] AS centre
      FROM generate_series(0, 299) AS c;
    CREATE FUNCTION bench_vector(p_seed bigint) RETURNS public.halfvec LANGUAGE sql VOLATILE AS $$
        SELECT (SELECT array_agg(u.v + (random() - 0.5) * 0.6)
                  FROM unnest(c.centre) AS u (v))::real[]::public.halfvec
          FROM bench_centres AS c WHERE c.id = p_seed % 300
    $$"""
TURNS = """
    INSERT INTO memvec.conversations
           (agent_identity, session_id, role, content, content_hash, search, search_version, ts)
    SELECT %(theme)s::text, 'session ' || i %% 500, 'user', t.content, memvec.content_hash(t.content),
           memvec.search_vector(t.content), 1, now() - make_interval(days => %(age)s::integer)
      FROM generate_series(%(first)s::integer, %(last)s::integer) AS i
     CROSS JOIN LATERAL (SELECT format('turn %%s about %%s and %%s of %%s', i, md5((i %% 997)::text),
                                       md5((i %% 7919)::text), %(theme)s::text) AS content) AS t"""
EMBEDDINGS = """
    INSERT INTO memvec.turn_embeddings_{space} (id, agent_identity, person_key, session_id, ts, embedding)
    SELECT c.id, c.agent_identity, c.person_key, c.session_id, c.ts, bench_vector(c.id)
      FROM memvec.conversations AS c
     WHERE c.agent_identity = %s"""
RECALL = (
    "SELECT id FROM memvec.recall_conversation('asker', %s, p_embedding => %s, p_space => %s, p_limit => 10)"
)


def main(arguments: Sequence[str] = ()) -> None:
    parser = options_of("maintenance", __doc__)
    parser.number("--rows", 20_000, "turns of the theme that is remapped")
    parser.number("--beside", 20_000, "turns of another theme beside them")
    parser.number("--dim", 768, "width of the vectors; an index takes 4000 at most")
    parser.number("--turns", 1_000_000, "turns in the table that is pruned")
    parser.number("--old", 100_000, "turns among them that are old, and go")
    parser.number("--batch", 5_000, "turns pruned at a time")
    parser.number("--seconds", 15.0, "how long the idle server is watched", 0.1)
    parser.add_argument("--only", choices=["remap", "prune"], help="one of the two (default: both)")
    options = parser.parse_args(arguments)
    report = Report("maintenance", "Maintenance under load", options)
    if options.only != "prune":
        _remap(report, options.rows, options.beside, options.dim)
    if options.only != "remap":
        _prune(report, options.turns, options.old, options.batch, options.seconds)
    report.close()


# Remap ------------------------------------------------------------------------------------------


def _remap(report: Report, rows: int, beside_rows: int, dim: int) -> None:
    with fresh_server(ROOMY) as server, psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        space = _space(admin, dim)
        for theme, count in (("old", rows), ("other", beside_rows)):
            admin.execute(TURNS, {"theme": theme, "age": 0, "first": 1, "last": count})
            admin.execute(EMBEDDINGS.format(space=space).encode(), [theme])
        admin.execute("SET maintenance_work_mem = '512MB'")
        admin.execute(
            f"CREATE INDEX turn_embeddings_{space}_hnsw ON memvec.turn_embeddings_{space}"
            " USING hnsw (embedding public.halfvec_cosine_ops) WITH (m = 16, ef_construction = 128)".encode()
        )
        admin.execute(f"VACUUM ANALYZE memvec.conversations, memvec.turn_embeddings_{space}".encode())
        with (
            _writers(server.runtime_dsn, "old", 4) as accepted,
            _writers(server.runtime_dsn, "other", 1) as beside,
        ):
            time.sleep(1.0)
            idle = max(beside.waits[:-1], default=0.0)
            beside.waits.clear()
            cpu = _cpu_seconds(admin)
            began = time.perf_counter()
            admin.execute("SELECT * FROM memvec.remap('old', 'new', false)")
            took = time.perf_counter() - began
            cpu = _cpu_seconds(admin) - cpu
            left = _one(admin, "SELECT count(*) FROM memvec.conversations WHERE agent_identity = 'old'")
            worst = max(beside.waits, default=0.0)
            time.sleep(1.0)
        found = {
            row[0]
            for row in admin.execute("SELECT content FROM memvec.conversations WHERE agent_identity = 'new'")
        }
        lost = len(accepted.contents - found)
        late = _one(admin, "SELECT count(*) FROM memvec.conversations WHERE agent_identity = 'old'")
        wrong = _one(
            admin,
            f"SELECT count(*) FROM memvec.turn_embeddings_{space} AS e"
            " JOIN memvec.conversations AS c USING (id) WHERE e.agent_identity <> c.agent_identity",
        )
    table = report.table(
        f"Remap of {rows:,} turns of width {dim} with an HNSW index, beside {beside_rows:,} others",
        [
            "written meanwhile",
            "seconds",
            "of a processor",
            "lost",
            "left",
            "others wait at worst (ms)",
            "before",
        ],
    )
    table.row(len(accepted.contents), took, cpu, lost, left + late + wrong, 1000 * worst, 1000 * idle)
    report.bar("remap: rows lost", lost, most=0)
    report.bar("remap: rows or vectors left in the old theme", left + late + wrong, most=0)
    report.bar("remap: seconds", took, most=60)
    report.bar("remap: another theme's worst wait, ms", 1000 * worst, most=100)


class _Accepted:
    def __init__(self) -> None:
        self.contents: set[str] = set()
        self.waits: list[float] = []


@contextmanager
def _writers(dsn: str, theme: str, count: int) -> Generator[_Accepted]:
    """So many connections that append turns as fast as they can: what was accepted, how long each took."""
    accepted, stop = _Accepted(), threading.Event()

    def keep_writing(number: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            counter = 0
            while not stop.is_set():
                content = f"written by {number} as number {counter} for {theme}"
                operation = {
                    "op_id": str(uuid.uuid4()),
                    "op": "append_turn",
                    "identity": theme,
                    "session_id": f"w{number}",
                    "role": "user",
                    "content": content,
                }
                began = time.perf_counter()
                try:
                    connection.execute("SELECT * FROM memvec.apply_ops(%s)", [json.dumps([operation])])
                except psycopg.Error as error:
                    if error.sqlstate not in {"MV008", "40001"}:
                        raise
                    continue
                accepted.waits.append(time.perf_counter() - began)
                accepted.contents.add(content)
                counter += 1

    with ThreadPoolExecutor(count) as pool:
        writers = [pool.submit(keep_writing, number) for number in range(count)]
        try:
            yield accepted
        finally:
            stop.set()
        for writer in writers:
            writer.result()


# Prune ------------------------------------------------------------------------------------------


def _prune(report: Report, turns: int, old: int, batch: int, seconds: float) -> None:
    dim = 64
    with fresh_server(ROOMY) as server, psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        space = _space(admin, dim)
        admin.execute(TURNS, {"theme": "asker", "age": 400, "first": 1, "last": old})
        admin.execute(TURNS, {"theme": "asker", "age": 1, "first": old + 1, "last": min(turns, old + 20_000)})
        for number, first in enumerate(range(old + 20_001, turns + 1, 20_000)):
            last = min(turns, first + 19_999)
            admin.execute(TURNS, {"theme": f"theme {number}", "age": 1, "first": first, "last": last})
        admin.execute(EMBEDDINGS.format(space=space).encode(), ["asker"])
        admin.execute(f"VACUUM ANALYZE memvec.conversations, memvec.turn_embeddings_{space}".encode())
        admin.execute("SELECT memvec.housekeeping()")
        vectors = [
            str(row[0])
            for row in admin.execute("SELECT bench_vector(g)::text FROM generate_series(1, 50) AS g")
        ]
        idle = _recalls(server.runtime_dsn, vectors, space, lambda: time.sleep(seconds))
        pruned = 0
        began = time.perf_counter()

        def prune() -> None:
            nonlocal pruned
            while True:
                changes = admin.execute("SELECT * FROM memvec.prune(365, false, %s)", [batch])
                done = {row[0]: row[2] for row in changes}
                pruned += int(str(done["conversations"]))
                if not done["conversations"]:
                    return

        busy = _recalls(server.runtime_dsn, vectors, space, prune)
        took = time.perf_counter() - began
        left = _one(admin, "SELECT count(*) FROM memvec.conversations WHERE ts < now() - interval '365 days'")
    table = report.table(
        f"Prune of old turns in a table of {turns:,}, {batch:,} at a time, while somebody recalls",
        ["pruned", "seconds", "left", "recall p95 idle (ms)", "meanwhile (ms)", "times"],
        "recall p95: what 95 of 100 recalls did not exceed; `times`: meanwhile by idle.",
    )
    table.row(pruned, took, left, 1000 * idle, 1000 * busy, busy / idle)
    report.bar("prune: old turns left", left, most=0)
    report.bar("prune: recall p95 meanwhile, times idle", busy / idle, most=3)


def _recalls(dsn: str, vectors: list[str], space: int, meanwhile: Callable[[], None]) -> float:
    """The 95th percentile of recalls, one after the other, while something else goes on."""
    times: list[float] = []
    done = threading.Event()

    def keep_asking() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            number = 0
            while not done.is_set() or len(times) < 20:
                began = time.perf_counter()
                connection.execute(RECALL, [f"turn {number} about", vectors[number % len(vectors)], space])
                times.append(time.perf_counter() - began)
                number += 1
                time.sleep(0.02)

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(keep_asking)
        try:
            meanwhile()
        finally:
            done.set()
        asking.result()
    return percentile(times, 0.95)


# Both ------------------------------------------------------------------------------------------


def _space(admin: Connection, dim: int) -> int:
    admin.execute(VECTORS.format(dim=dim).encode())
    return _one(admin, f"SELECT memvec.add_embedding_space('bench', {dim})")


def _one(admin: Connection, query: str) -> int:
    row = admin.execute(query.encode()).fetchone()
    return int(str(row[0])) if row else 0


def _cpu_seconds(admin: Connection) -> float:
    """Processor time of the connection's backend, which does not depend on who else is busy (Linux)."""
    try:
        with open(f"/proc/{admin.info.backend_pid}/stat", encoding="ascii") as stat:  # noqa: PTH123
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / 100
