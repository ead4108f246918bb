"""How many text operations a second `memvec.apply_ops` stores, and how far that is from the tables' limit.

Each connection writes to a theme of its own, as the homes of a fleet do. The limit in the same run is a bare
INSERT … SELECT of the same rows into a copy of the table with the same indexes: no identities, no locks, no
duplicates, no record of operations. Texts are drawn from a vocabulary whose words are as unequally common as
in a language (Zipf). Commits are durable, so each batch also pays one flush of the log to the disk.
"""

from __future__ import annotations

import itertools
import json
import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import psycopg

from bench._corpus import vocabulary
from bench._report import Cell, Report, options_of
from bench._server import fresh_server

__all__ = ["main"]

WARM_UP = 5
KINDS = ("append_turn", "add_memory")
CONNECTIONS = (1, 2)
NUMBERS = itertools.count()

Connection: TypeAlias = psycopg.Connection[tuple[object, ...]]

LIMIT_TABLE = """
    CREATE TABLE bench_turns
        (LIKE memvec.conversations INCLUDING DEFAULTS INCLUDING IDENTITY INCLUDING INDEXES);
    ALTER TABLE bench_turns ALTER search SET NOT NULL"""
LIMIT_INSERT = """
    INSERT INTO bench_turns (agent_identity, session_id, role, content, content_hash, search, search_version)
    SELECT o ->> 'identity', o ->> 'session_id', o ->> 'role', o ->> 'content',
           sha256(convert_to(o ->> 'content', 'UTF8')), to_tsvector('english', o ->> 'content'), 1
      FROM jsonb_array_elements(%s::jsonb) AS o"""
APPLY = "SELECT outcome FROM memvec.apply_ops(%s::jsonb)"


def main(arguments: Sequence[str] = ()) -> None:
    parser = options_of("apply_ops", __doc__)
    parser.number("--rounds", 40, "batches of each kind")
    parser.number("--batch", [100, 500], "operations in one batch")
    options = parser.parse_args(arguments)
    report = Report("apply_ops", "apply_ops", options)
    table = report.table(
        "Text operations a second",
        ["operation", "connections", "words a text", "batch", "per second", "of a bare INSERT", "replayed"],
        "`of a bare INSERT`: the part that is reached of the pace of a bare INSERT, which is the limit."
        " `replayed`: the same operations once more, which are there already.",
    )
    with fresh_server() as server, psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        admin.execute(LIMIT_TABLE)
        runtime = [psycopg.connect(server.runtime_dsn, autocommit=True) for _ in range(max(CONNECTIONS))]
        limit = [psycopg.connect(server.admin_dsn, autocommit=True) for _ in range(max(CONNECTIONS))]
        for kind, count, words, batch in itertools.product(KINDS, CONNECTIONS, (8, 20), options.batch):
            table.row(
                *_row(admin, runtime[:count], limit[:count], kind, words, batch, WARM_UP + options.rounds)
            )
        stored = _rows(admin)
        for connection in (*runtime, *limit):
            connection.close()
    report.say(f"{stored:,} operations, each stored once; their replay stored nothing.")
    report.close()


def _row(
    admin: Connection,
    runtime: list[Connection],
    limit: list[Connection],
    kind: str,
    words: int,
    batch: int,
    rounds: int,
) -> list[Cell]:
    text = _texts(words)
    work = [
        [json.dumps([_operation(kind, number, next(text)) for _ in range(batch)]) for _ in range(rounds)]
        for number in range(len(runtime))
    ]
    before = _rows(admin)
    rate = _rate(_apply, runtime, work, batch)
    if _rows(admin) - before != len(work) * rounds * batch:
        raise SystemExit(f"{kind}: some operations were lost or doubled")
    replay = _rate(_apply, runtime, work, batch)
    if _rows(admin) - before != len(work) * rounds * batch:
        raise SystemExit(f"{kind}: a replay stored something")
    most = _rate(_insert, limit, work, batch)
    return [kind, len(runtime), words, batch, rate, rate / most, replay]


def _rate(
    store: Callable[[Connection, str], None],
    connections: list[Connection],
    work: list[list[str]],
    batch: int,
) -> float:
    """Operations per second of all connections together; the first five batches of each warm up."""
    for connection, batches in zip(connections, work, strict=True):
        for operations in batches[:WARM_UP]:
            store(connection, operations)

    def run(connection: Connection, batches: list[str]) -> None:
        for operations in batches[WARM_UP:]:
            store(connection, operations)

    began = time.perf_counter()
    with ThreadPoolExecutor(len(connections)) as pool:
        for done in [pool.submit(run, *share) for share in zip(connections, work, strict=True)]:
            done.result()
    return sum(len(batches) - WARM_UP for batches in work) * batch / (time.perf_counter() - began)


def _apply(connection: Connection, operations: str) -> None:
    outcomes = {row[0] for row in connection.execute(APPLY, [operations])}
    if outcomes != {"added"}:
        raise SystemExit(f"expected every operation to be added, got {outcomes}")


def _insert(connection: Connection, operations: str) -> None:
    connection.execute(LIMIT_INSERT, [operations])


def _rows(admin: Connection) -> int:
    row = admin.execute(
        "SELECT (SELECT count(*) FROM memvec.conversations) + (SELECT count(*) FROM memvec.memory_entries)"
    ).fetchone()
    return int(str(row[0])) if row else 0


def _operation(kind: str, connection: int, content: str) -> dict[str, object]:
    return {
        "op_id": str(uuid.uuid4()),
        "op": kind,
        "identity": f"theme-{connection}",
        "session_id": f"session-{random.randrange(20)}",
        "role": "user",
        "target": "memory",
        "content": content,
    }


def _texts(words: int) -> Iterator[str]:
    numbers = random.Random(words)
    known = vocabulary()
    weights = list(itertools.accumulate(1 / rank for rank in range(1, len(known) + 1)))
    while True:
        drawn = numbers.choices(known, cum_weights=weights, k=words - 1)
        yield f"{' '.join(drawn)} {next(NUMBERS)}."
