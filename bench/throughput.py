"""How much goes through in a second: writes, a bulk import, and recalls of 1 to 200 clients at once.

Writes are turns through the outbox, from the first put to the last row (and the last vector), with endpoints
that need 0, 20 and 100 ms for a request. The import is a memory file of new notes, as a session reads it when
it starts. Recalls are questions to themes of 1 % of all rows: clients with a connection each, and clients
that share the process's pool of four as those of one gateway do. The peer does the same on the same server.
"""

from __future__ import annotations

import itertools
import threading
import time
from array import array
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from bench._corpus import Corpus, shared_out
from bench._host import new_home, put, turns
from bench._peer import Peer, peer_of
from bench._report import Report, options_of, percentile, ratio
from bench._server import ROOMY, fresh_server
from bench._service import endpoint
from hermes_pgsql.client import Memvec
from hermes_pgsql.drain import Drain
from hermes_pgsql.embedded import EmbeddedServer
from hermes_pgsql.embedding.http import HttpEmbedder
from hermes_pgsql.outbox import Outbox

__all__ = ["main"]

MODEL = "nomic-embed-text"
#: Turns written for each delay in milliseconds, ours and the peer's: enough to see the pace.
TURNS = {0: (4000, 400), 20: (4000, 160), 100: (2000, 60)}
CLIENTS = (1, 2, 4, 8, 32, 100, 200)
RECALL = """
    SELECT id FROM memvec.recall_memory(
        p_identity => %s, p_query => %s, p_embedding => %b, p_space => %s, p_limit => 10)"""


def main(arguments: Sequence[str] = ()) -> None:
    parser = options_of("throughput", __doc__)
    parser.number("--part", 1.0, "how many of the usual writes and notes to import", 0.001)
    parser.number("--rows", 20_000, "notes in the database for the recalls", 1000)
    parser.number("--clients", CLIENTS, "clients that recall at once")
    parser.number("--seconds", 5.0, "how long each number of clients recalls", 0.1)
    options = parser.parse_args(arguments)
    report = Report("throughput", "Throughput", options)
    connections = {"max_connections": str(max(options.clients) + 50)}
    with (
        fresh_server(ROOMY | connections) as server,
        peer_of(server, wanted=not options.no_peer) as peer,
    ):
        _writes(report, server, peer, options.part)
        _imports(report, server, peer, max(10, int(500 * options.part)))
    with (
        fresh_server(ROOMY | connections) as server,
        peer_of(server, wanted=not options.no_peer) as peer,
    ):
        corpus = Corpus(server, peer, shared_out)
        corpus.grow(options.rows)
        _recalls(report, corpus, options.clients, options.seconds)
    report.close()


# -- writes --


def _writes(report: Report, server: EmbeddedServer, peer: Peer | None, part: float) -> None:
    table = report.table(
        "Turns a second through the outbox",
        ["endpoint", "in the database", "with their vectors", "peer (both)", "times (text)"],
        "The endpoint needs so long for a request. `times (text)`: our pace into the database by the peer's.",
    )
    for delay, (ours, theirs) in TURNS.items():
        with endpoint(delay / 1000) as url:
            text, vectors = _our_pace(server, url, _even(ours * part))
            pace = None if peer is None else _their_pace(peer, url, _even(theirs * part))
        table.row(f"{delay} ms", text, vectors, pace, None if pace is None else text / pace)


def _even(count: float) -> int:
    return max(10, int(count) // 2 * 2)


def _our_pace(server: EmbeddedServer, url: str, count: int) -> tuple[float, float]:
    texts = turns(count)
    with new_home() as home:
        outbox, drain = Outbox.open(home), Drain(server.runtime_dsn)
        drain.attach(outbox, HttpEmbedder(url, MODEL, dim=768, protocol="openai"))
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


def _their_pace(peer: Peer, url: str, count: int) -> float:
    done = peer.ask(do="turns", url=url, texts=turns(count))
    assert done["stored"] == done["embedded"] == count, done
    return count / done["seconds"]


def _imports(report: Report, server: EmbeddedServer, peer: Peer | None, count: int) -> None:
    table = report.table(
        f"A memory file of {count} new notes (seconds; with the peer the session waits for it)",
        ["endpoint", "in the database", "with their vectors", "again", "peer (both)", "peer again"],
        "again: the same file once more, which has nothing new.",
    )
    for delay in (0, 20):
        with endpoint(delay / 1000) as url, new_home() as home:
            file = home / "MEMORY.md"
            file.write_text("\n§\n".join(turns(count)), encoding="utf-8")
            ours = _our_import(server, url, f"import-{delay}", file, count)
            theirs: tuple[float | None, float | None] = (None, None)
            if peer is not None:
                theirs = _their_import(peer, url, f"import-{delay}", file, count)
        table.row(f"{delay} ms", *ours, *theirs)


def _our_import(
    server: EmbeddedServer, url: str, identity: str, file: Path, count: int
) -> tuple[float, float, float]:
    """Seconds until the notes are there, until they have vectors, and for the same file once more."""
    source = uuid4()
    with new_home() as home:
        outbox, drain = Outbox.open(home), Drain(server.runtime_dsn)
        drain.attach(outbox, HttpEmbedder(url, MODEL, dim=768, protocol="openai"))
        began = time.perf_counter()
        outbox.put_file(identity, "memory", file, source)
        assert drain.flush(300)
        durable = time.perf_counter() - began
        assert drain.flush_vectors(300)
        complete = time.perf_counter() - began
        began = time.perf_counter()
        outbox.put_file(identity, "memory", file, source)
        assert drain.flush(300)
        again = time.perf_counter() - began
        drain.stop(10)
    with psycopg.connect(server.admin_dsn) as connection:
        row = connection.execute(
            "SELECT count(*) FROM memvec.memory_entries WHERE agent_identity = %s", [identity]
        )
        assert row.fetchone() == (count,)
    return durable, complete, again


def _their_import(peer: Peer, url: str, identity: str, file: Path, count: int) -> tuple[float, float]:
    asked = {"do": "import", "identity": identity, "file": str(file), "url": url}
    first, again = peer.ask(**asked), peer.ask(**asked)
    assert first["inserted"] == count, first
    return first["seconds"], again["seconds"]


# -- recalls --


@dataclass(frozen=True)
class _Pace:
    """What many clients got done: recalls a second and how long each took (milliseconds)."""

    per_second: float
    took: list[float]

    def cells(self) -> tuple[float, float, float]:
        return self.per_second, percentile(self.took, 0.5), percentile(self.took, 0.95)


def _recalls(report: Report, corpus: Corpus, clients: Sequence[int], seconds: float) -> None:
    table = report.table(
        f"Recalls a second with {corpus.rows:,} notes; the longer times are spent waiting (milliseconds)",
        ["clients", "a connection each", "p50", "p95", "pool of 4", "p50", "p95",
         "peer", "p50", "p95", "times (pool of 4)"],
        "p50, p95: what 50 and 95 of 100 recalls did not exceed, by the clock. `times (pool of 4)`: our pace"
        " with the pool by the peer's.",
    )  # fmt: skip
    for count in clients:
        each = _each(corpus, count, seconds)
        pooled = _pooled(corpus, count, seconds)
        theirs = None if corpus.peer is None else _theirs(corpus, corpus.peer, count, seconds)
        table.row(
            count,
            *each.cells(),
            *pooled.cells(),
            *((None, None, None) if theirs is None else theirs.cells()),
            None if theirs is None else ratio(theirs.per_second, pooled.per_second),
        )


def _asked(corpus: Corpus, count: int = 50) -> list[tuple[str, str, array[float]]]:
    """Theme, question and vector; themes of some 1 % of all rows, one after another."""
    vectors = corpus.vectors(2**31 + 2, count)
    return [
        (f"other-{at % 40}", corpus.question(at), array("f", vector)) for at, vector in enumerate(vectors)
    ]


def _each(corpus: Corpus, clients: int, seconds: float) -> _Pace:
    asked = [(theme, text, HalfVector(vector.tolist())) for theme, text, vector in _asked(corpus)]

    @contextmanager
    def client() -> Generator[Callable[[int], object]]:
        with psycopg.connect(corpus.server.runtime_dsn, autocommit=True) as connection:
            register_vector(connection)

            def recall(at: int) -> object:
                theme, text, vector = asked[at % len(asked)]
                return connection.execute(RECALL, [theme, text, vector, corpus.space]).fetchall()

            yield recall

    return _storm(clients, seconds, client)


def _pooled(corpus: Corpus, clients: int, seconds: float) -> _Pace:
    asked = _asked(corpus)
    memory = Memvec(corpus.server.runtime_dsn)

    @contextmanager
    def client() -> Generator[Callable[[int], object]]:
        def recall(at: int) -> object:
            theme, text, vector = asked[at % len(asked)]
            return memory.recall_memory(theme, text, embedding=vector, space=corpus.space)

        yield recall

    return _storm(clients, seconds, client)


def _theirs(corpus: Corpus, peer: Peer, clients: int, seconds: float) -> _Pace:
    calls = [
        {"query_text": text, "query_embedding": vector.tolist(), "agent_identity": theme, "limit": 10}
        for theme, text, vector in _asked(corpus)
    ]
    done = peer.ask(do="clients", method="hybrid_search", calls=calls, clients=clients, seconds=seconds)
    took = [1000 * one for one in done["took"]] or [float("nan")]
    return _Pace(len(done["took"]) / done["seconds"], took)


def _storm(
    clients: int, seconds: float, client: Callable[[], AbstractContextManager[Callable[[int], object]]]
) -> _Pace:
    """So many threads, each with a client that has been warmed up, recall for some seconds."""
    took: list[list[float]] = [[] for _client in range(clients)]
    begin = threading.Barrier(clients + 1)
    ends = [0.0]

    def work(number: int, recall: Callable[[int], object]) -> None:
        recall(number)
        begin.wait(300)
        begin.wait(300)
        for at in itertools.count(number):
            began = time.perf_counter()
            if began > ends[0]:
                return
            recall(at)
            took[number].append(1000 * (time.perf_counter() - began))

    with ExitStack() as open_clients:
        recalls = [open_clients.enter_context(client()) for _client in range(clients)]
        threads = [threading.Thread(target=work, args=pair, daemon=True) for pair in enumerate(recalls)]
        for thread in threads:
            thread.start()
        begin.wait(300)
        began = time.perf_counter()
        ends[0] = began + seconds
        begin.wait(300)
        for thread in threads:
            thread.join(300)
        elapsed = time.perf_counter() - began
    done = list(itertools.chain.from_iterable(took))
    return _Pace(len(done) / elapsed, done or [float("nan")])
