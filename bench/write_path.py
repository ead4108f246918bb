"""How long a host waits for a write, and how soon writes are in the database, beside hermes-memory-pgvector.

Three questions, on a durable server of this run: how long `Outbox.put` takes while nothing, this process or
another process drains it and while the database is down; how many turns a second are durable in Postgres,
and how many have their vector, with an endpoint that needs 0, 20 and 100 ms for a request; and the same for
hermes-memory-pgvector 1.0.0 (from PyPI, in an environment of its own under build/) on the same server and
endpoint. `PEER=no` leaves the last part out.

On a busy machine the longest times are those in which the thread was ready and had no processor. So a loop
that only counts is measured beside them, and (on Linux) every time also without that wait.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from bench.server import fresh_server
from hermes_pgsql import pool
from hermes_pgsql.drain import Drain
from hermes_pgsql.embedded import EmbeddedServer
from hermes_pgsql.embedding.http import HttpEmbedder
from hermes_pgsql.outbox import Outbox

ROOT = Path(__file__).resolve().parent.parent
PEER_PACKAGE = "hermes-memory-pgvector==1.0.0"
PUTS = 2000
DELAYS = (0.0, 0.02, 0.1)
#: Turns written per delay: enough to see the pace, few enough to see the end of it.
OURS = {0.0: 4000, 0.02: 4000, 0.1: 2000}
PEERS = {0.0: 400, 0.02: 160, 0.1: 60}

WORDS = ["deploy", "service", "needs", "a", "check", "by", "who", "owns", "the", "backup", "window", "port"]

DRAINER = """
import sys
from hermes_pgsql.drain import Drain
from hermes_pgsql.outbox import Outbox
Drain.for_dsn(sys.argv[2]).attach(Outbox.open(sys.argv[1]), None)
print("ready", flush=True)
sys.stdin.readline()
"""

# Runs in the peer's environment: its provider, as the host drives it.
PEER = """
import json, sys, time
import psycopg
from hermes_pgvector import PgvectorMemoryProvider
dsn, url, turns = sys.argv[1], sys.argv[2], json.loads(sys.stdin.read())
provider = PgvectorMemoryProvider({
    "dsn": dsn, "embed_url": url, "embed_protocol": "openai", "embed_dim": 768,
    "write_queue_maxsize": 100000, "bulk_sync_on_init": False,
})
provider.initialize("bench", agent_identity="bench")
watch = psycopg.connect(dsn, autocommit=True)
count = "SELECT count(*), count(embedding) FROM conversations WHERE session_id = 'bench'"
assert watch.execute(count).fetchone() == (0, 0)
took = []
began = time.perf_counter()
for user, assistant in zip(turns[::2], turns[1::2]):
    at = time.perf_counter()
    provider.sync_turn(user, assistant, session_id="bench")
    took.append(time.perf_counter() - at)
while watch.execute(count).fetchone()[0] < len(turns):
    if time.perf_counter() - began > 300:
        break
    time.sleep(0.02)
seconds = time.perf_counter() - began
stored, embedded = watch.execute(count).fetchone()
print(json.dumps({"seconds": seconds, "stored": stored, "embedded": embedded, "took": took}))
watch.execute("TRUNCATE conversations")
"""


def main() -> None:
    print("## Writes\n")
    with fresh_server() as server:
        put_latency(server)
        peer = None if os.environ.get("PEER", "").casefold() == "no" else peer_python()
        throughput(server, peer)


# -- how long the host waits --


@dataclass(frozen=True)
class Times:
    """Seconds that each call took, and the same without the time it waited for a processor."""

    took: list[float]
    working: list[float]


def put_latency(server: EmbeddedServer) -> None:
    print(f"`Outbox.put` of {PUTS} turns, one after another without a pause (milliseconds):\n")
    print("| while | median | p99 | p99.9 | p99 with a free processor | p99.9 with a free processor |")
    print("|---|---:|---:|---:|---:|---:|")
    report("(a loop that only counts)", timed(PUTS, lambda _number: count_up()))
    with new_home() as home:
        report("nothing drains", puts(home))
    with new_home() as home:
        drained(server.runtime_dsn, home, "this process drains")
    with new_home() as home:
        drainer = subprocess.Popen(
            [sys.executable, "-c", DRAINER, str(home), server.runtime_dsn],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert drainer.stdout is not None
        drainer.stdout.readline()
        report("another process drains", puts(home))
        drainer.communicate("\n")
    with new_home() as home:
        drain = Drain(server.runtime_dsn)
        drain.attach(Outbox.open(home), None)
        report("this process drains, 5 ms between turns", puts(home, pause=0.005, count=500))
        drain.stop(10)
    with new_home() as home:
        drained(make_conninfo(host="/nonexistent", dbname="x", user="x"), home, "the database is down")
    report("(a loop that only counts)", timed(PUTS, lambda _number: count_up()))
    print()


def drained(dsn: str, home: Path, name: str) -> None:
    drain = Drain(dsn)
    drain.attach(Outbox.open(home), None)
    report(name, puts(home))
    drain.flush(60)
    drain.stop(10)


def puts(home: Path, pause: float = 0.0, count: int = PUTS) -> Times:
    outbox = Outbox.open(home)
    outbox.depth()
    texts = turns(count)
    return timed(count, lambda number: put(outbox, texts[number]), pause)


def put(outbox: Outbox, text: str) -> None:
    arguments = {"session_id": "bench", "role": "user", "content": text, "metadata": {"platform": "cli"}}
    outbox.put("append_turn", "bench", arguments)


def timed(count: int, action: Callable[[int], object], pause: float = 0.0) -> Times:
    times = Times([], [])
    for number in range(count):
        waited = processor_wait()
        began = time.perf_counter()
        action(number)
        took = time.perf_counter() - began
        times.took.append(took)
        times.working.append(max(0.0, took - (processor_wait() - waited)))
        if pause:
            time.sleep(pause)
    return times


def processor_wait() -> float:
    """How long this thread has been ready without a processor, in seconds; 0 where nobody says."""
    try:
        text = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return int(text.split()[1]) / 1e9


def count_up() -> int:
    total = 0
    for number in range(3000):
        total += number
    return total


def report(name: str, times: Times) -> None:
    parts = [(times.took, 0.5), (times.took, 0.99), (times.took, 0.999)]
    parts += [(times.working, 0.99), (times.working, 0.999)]
    shown = " | ".join(f"{1000 * sorted(took)[int(len(took) * part)]:.2f}" for took, part in parts)
    print(f"| {name} | {shown} |", flush=True)


# -- how soon it is in the database --


def throughput(server: EmbeddedServer, peer: Path | None) -> None:
    print("Turns a second, from the first put to the last row (vectors: to the last vector):\n")
    print("| endpoint | hermes-pgsql text | hermes-pgsql vectors | peer (text and vectors) | times (text) |")
    print("|---|---:|---:|---:|---:|")
    peer_dsn = None if peer is None else peer_database(server, peer)
    for delay in DELAYS:
        with endpoint(delay) as url:
            text, vectors = our_pace(server, url, OURS[delay])
            theirs = (
                None if peer is None or peer_dsn is None else peer_pace(peer, peer_dsn, url, PEERS[delay])
            )
        ratio = f"{text / theirs:.0f}" if theirs else ""
        shown = f"{theirs:.0f}" if theirs else "not measured"
        print(f"| {1000 * delay:.0f} ms | {text:.0f} | {vectors:.0f} | {shown} | {ratio} |", flush=True)
    print()


def our_pace(server: EmbeddedServer, url: str, count: int) -> tuple[float, float]:
    texts = turns(count)
    with new_home() as home:
        outbox, drain = Outbox.open(home), Drain(server.runtime_dsn)
        drain.attach(outbox, HttpEmbedder(url, "nomic-embed-text", dim=768, protocol="openai"))
        began = time.perf_counter()
        for text in texts:
            put(outbox, text)
        assert drain.flush(300)
        durable = time.perf_counter() - began
        assert drain.flush_vectors(300)
        complete = time.perf_counter() - began
        drain.stop(10)
    with psycopg.connect(server.admin_dsn) as connection:
        row = connection.execute(
            "SELECT count(*) FROM memvec.conversations WHERE content = ANY (%s)", [texts]
        )
        assert row.fetchone() == (count,)
    return count / durable, count / complete


def turns(count: int) -> list[str]:
    """Different texts of some 300 characters."""
    return [
        f"{secrets.token_hex(8)} " + " ".join(secrets.choice(WORDS) for _word in range(50))
        for _number in range(count)
    ]


@contextmanager
def new_home() -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="hermes-pgsql-bench-home-"))
    try:
        yield home
    finally:
        pool.close_all()
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def endpoint(delay: float) -> Iterator[str]:
    command = [sys.executable, "-m", "bench._endpoint", str(delay)]
    service = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert service.stdout is not None
        yield f"http://127.0.0.1:{int(service.stdout.readline())}"
    finally:
        service.kill()
        service.communicate()


# -- the peer --


def peer_python() -> Path | None:
    """The interpreter of an environment with the peer in it, made once; None where it cannot be had."""
    folder = ROOT / "build" / "bench-peer"
    python = folder / "bin" / "python"
    if (folder / ".ready").exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        subprocess.run(["sh", ROOT / "tools" / "make_venv.sh", folder], cwd=ROOT, **quiet)
        subprocess.run([python, "-m", "pip", "install", "-qq", PEER_PACKAGE], **quiet)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"\n({PEER_PACKAGE} could not be installed: {error})\n")
        return None
    (folder / ".ready").touch()
    return python


def peer_database(server: EmbeddedServer, python: Path) -> str:
    """A database with the peer's schema, on the same server; the DSN of a role that owns it."""
    name, password = f"peer_{secrets.token_hex(4)}", secrets.token_hex(16)
    with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        role, secret = sql.Identifier(name), sql.Literal(password)
        admin.execute(sql.SQL("CREATE ROLE {} SUPERUSER LOGIN PASSWORD {}").format(role, secret))
        admin.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(role, role))
    dsn = make_conninfo(server.admin_dsn, dbname=name, user=name, password=password)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    command = [python, "-m", "hermes_pgvector", "migrate", "--admin-dsn", dsn, "--runtime-role", name]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return dsn


def peer_pace(python: Path, dsn: str, url: str, count: int) -> float:
    given = json.dumps(turns(count))
    done = subprocess.run(
        [python, "-c", PEER, dsn, url], input=given, capture_output=True, text=True, check=True
    )
    measured = json.loads(done.stdout.splitlines()[-1])
    assert measured["stored"] == measured["embedded"] == count, measured
    return measured["stored"] / measured["seconds"]


if __name__ == "__main__":
    main()
