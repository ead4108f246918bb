"""Runs in the environment of hermes-memory-pgvector and does what it is told: `_peer_driver.py DSN`.

Reads one JSON request a line and answers with one line. A request names a method of the peer's store and the
arguments of its calls; the answer holds the milliseconds and the row ids of each call. Of this project only
`_processor.py` is here.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from _processor import BACKENDS, timed
from hermes_pgvector import PgvectorMemoryProvider
from hermes_pgvector.embed import embed
from hermes_pgvector.store import MemoryStore


def main() -> None:
    dsn = sys.argv[1]
    store = MemoryStore(dsn)
    actions: dict[str, Callable[[dict[str, Any]], object]] = {
        "calls": lambda request: calls(dsn, store, request),
        "clients": lambda request: clients(dsn, request),
        "turns": lambda request: turns(dsn, request),
        "import": lambda request: bulk_import(store, request),
    }
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(actions[request["do"]](request)), flush=True)


def calls(dsn: str, store: MemoryStore, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Each call's milliseconds and row ids; stops after `most_seconds` and one call."""
    method = getattr(store, request["method"])
    with psycopg.connect(dsn, autocommit=True) as watch:
        backends = watch.execute(BACKENDS, [watch.info.user]).fetchone()[0] or []
    answers: list[dict[str, Any]] = []
    ends = time.perf_counter() + request["most_seconds"]
    for arguments in request["calls"]:
        found: list[object] = []
        took, working = timed(lambda: found.append(method(**arguments)), backends)  # noqa: B023 (called at once)
        ids = [row["id"] for row in found[0]] if isinstance(found[0], list) else []
        answers.append({"milliseconds": took, "working": working, "ids": ids})
        if time.perf_counter() > ends:
            break
    return answers


def clients(dsn: str, request: dict[str, Any]) -> dict[str, Any]:
    """Many clients, each with a store of its own as each agent has, for some seconds."""
    stores = [MemoryStore(dsn, max_size=1, timeout=60) for _client in range(request["clients"])]
    arguments = request["calls"]
    took: list[float] = []
    failed: list[str] = []
    go = threading.Event()
    ends = 0.0

    def work(number: int, store: MemoryStore) -> None:
        method = getattr(store, request["method"])
        method(**arguments[number % len(arguments)])
        ready.release()
        go.wait()
        at = number
        while time.perf_counter() < ends:
            at += 1
            began = time.perf_counter()
            try:
                method(**arguments[at % len(arguments)])
            except Exception as error:  # noqa: BLE001 (counted)
                failed.append(type(error).__name__)
                continue
            took.append(time.perf_counter() - began)

    ready = threading.Semaphore(0)
    threads = [threading.Thread(target=work, args=pair, daemon=True) for pair in enumerate(stores)]
    for thread in threads:
        thread.start()
    for _thread in threads:
        ready.acquire(timeout=60)
    ends = time.perf_counter() + request["seconds"]
    began = time.perf_counter()
    go.set()
    for thread in threads:
        thread.join(60)
    seconds = time.perf_counter() - began
    for store in stores:
        store.close()
    return {"seconds": seconds, "took": took, "failed": len(failed)}


def turns(dsn: str, request: dict[str, Any]) -> dict[str, Any]:
    """Its provider, as the host drives it: seconds until all turns are in the database with their vectors."""
    texts = request["texts"]
    provider = PgvectorMemoryProvider(
        {
            "dsn": dsn,
            "embed_url": request["url"],
            "embed_protocol": "openai",
            "embed_dim": 768,
            "write_queue_maxsize": 100000,
            "bulk_sync_on_init": False,
        }
    )
    provider.initialize("bench", agent_identity="bench")
    count = "SELECT count(*), count(embedding) FROM conversations WHERE session_id = 'bench'"
    with psycopg.connect(dsn, autocommit=True) as watch:
        began = time.perf_counter()
        for user, assistant in zip(texts[::2], texts[1::2], strict=True):
            provider.sync_turn(user, assistant, session_id="bench")
        while watch.execute(count).fetchone()[0] < len(texts) and time.perf_counter() - began < 300:
            time.sleep(0.02)
        seconds = time.perf_counter() - began
        stored, embedded = watch.execute(count).fetchone()
        watch.execute("TRUNCATE conversations")
    return {"seconds": seconds, "stored": stored, "embedded": embedded}


def bulk_import(store: MemoryStore, request: dict[str, Any]) -> dict[str, Any]:
    """A memory file, read as it is at the start of a session."""

    def vector(text: str) -> list[float]:
        return embed(text, base_url=request["url"], dim=768, protocol="openai")

    began = time.perf_counter()
    done = store.bulk_upsert_md(
        agent_identity=request["identity"], target="memory", file_path=Path(request["file"]), embed_fn=vector
    )
    return {"seconds": time.perf_counter() - began, "inserted": done["inserted"]}


if __name__ == "__main__":
    main()
