"""How many text operations a second `memvec.apply_ops` stores, and how far that is from the tables' limit.

The limit in the same run is a bare INSERT … SELECT of the same rows into a copy of the table with the same
indexes: no identities, no locks, no duplicates, no record of operations. Texts are drawn from a vocabulary
whose words are as unequally common as in a language (Zipf).
"""

from __future__ import annotations

import itertools
import json
import random
import statistics
import time
import uuid
from collections.abc import Callable, Iterator

import psycopg

from bench.server import fresh_server

ROUNDS = 40
SYLLABLES = [
    "ba",
    "co",
    "de",
    "fi",
    "gu",
    "ha",
    "jo",
    "ki",
    "lu",
    "ma",
    "ne",
    "po",
    "qui",
    "ra",
    "tion",
    "ing",
]
NUMBERS = itertools.count()

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


def main() -> None:
    print("## apply_ops: text operations per second, one connection\n")
    print("| operation | words a text | batch | per second | of a bare INSERT | replay per second |")
    print("|---|---|---|---|---|---|")
    with fresh_server() as server, psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        admin.execute(LIMIT_TABLE)
        with psycopg.connect(server.runtime_dsn, autocommit=True) as runtime:
            for kind, words, batch in itertools.product(("append_turn", "add_memory"), (8, 20), (100, 500)):
                print(_row(runtime, admin, kind, words, batch), flush=True)
            stored = admin.execute("SELECT count(*) FROM memvec.applied_ops").fetchone()
    print(f"\n{stored[0] if stored else 0:,} operations, each stored once; their replay stored nothing.\n")


def _row(
    runtime: psycopg.Connection[tuple[object, ...]],
    admin: psycopg.Connection[tuple[object, ...]],
    kind: str,
    words: int,
    batch: int,
) -> str:
    text = _texts(words)
    batches = [json.dumps([_operation(kind, next(text)) for _ in range(batch)]) for _ in range(ROUNDS)]

    def apply(operations: str) -> None:
        outcomes = {row[0] for row in runtime.execute(APPLY, [operations])}
        if outcomes != {"added"}:
            raise SystemExit(f"{kind}: expected every operation to be added, got {outcomes}")

    before = _rows(admin)
    rate = _rate(apply, batches, batch)
    if _rows(admin) - before != ROUNDS * batch:
        raise SystemExit(f"{kind}: some operations were lost or doubled")
    replay = _rate(apply, batches, batch)
    if _rows(admin) - before != ROUNDS * batch:
        raise SystemExit(f"{kind}: a replay stored something")
    limit = _rate(lambda operations: _insert(admin, operations), batches, batch)
    return f"| {kind} | {words} | {batch} | {rate:,.0f} | {rate / limit:.2f} | {replay:,.0f} |"


def _rate(work: Callable[[str], None], batches: list[str], batch: int) -> float:
    """Operations per second: the median over the batches, the first five left out."""
    seconds: list[float] = []
    for operations in batches:
        began = time.perf_counter()
        work(operations)
        seconds.append(time.perf_counter() - began)
    return batch / statistics.median(seconds[5:])


def _insert(admin: psycopg.Connection[tuple[object, ...]], operations: str) -> None:
    admin.execute(LIMIT_INSERT, [operations])


def _rows(admin: psycopg.Connection[tuple[object, ...]]) -> int:
    row = admin.execute(
        "SELECT (SELECT count(*) FROM memvec.conversations) + (SELECT count(*) FROM memvec.memory_entries)"
    ).fetchone()
    return int(str(row[0])) if row else 0


def _operation(kind: str, content: str) -> dict[str, object]:
    return {
        "op_id": str(uuid.uuid4()),
        "op": kind,
        "identity": random.choice(("marketing", "sales", "ops")),
        "session_id": f"session-{random.randrange(20)}",
        "role": "user",
        "target": "memory",
        "content": content,
    }


def _texts(words: int) -> Iterator[str]:
    random.seed(words)
    vocabulary = ["".join(random.choices(SYLLABLES, k=random.randint(1, 3))) for _ in range(20_000)]
    weights = list(itertools.accumulate(1 / rank for rank in range(1, len(vocabulary) + 1)))
    while True:
        drawn = random.choices(vocabulary, cum_weights=weights, k=words - 1)
        yield f"{' '.join(drawn)} {next(NUMBERS)}."
