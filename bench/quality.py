"""How often recall finds the turns that answer a question: LoCoMo, by words, by meaning, and by both.

Each conversation is a theme of its own, and once more all of them are in one theme. We and the peer get the
same texts and the same vectors, of the built-in model and of all-MiniLM-L6-v2, and of an endpoint of yours
where `--endpoint` names one. Constants are tuned on the tune half of the questions only, so the test half is
what counts. The data is not part of this project: `--data FOLDER` says where it is. R@5 and R@10 are the part
of a question's turns that are among the first 5 and 10 rows found; MRR is the mean of 1/n, where the first of
them is the n-th row.
"""

from __future__ import annotations

import argparse
import itertools
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from pgvector import Vector
from pgvector.psycopg import register_vector

from bench._corpus import without_indexes
from bench._locomo import FILE, FOLDS, NEEDED, Question, Score, Turn, read, scored
from bench._models import Embedded, embedded
from bench._peer import PEER, PEER_BEFORE, Peer, peer_of
from bench._report import Report, at_least, options_of
from bench._server import ROOMY, fresh_server
from bench._service import minilm
from hermes_pgsql.client import Memvec
from hermes_pgsql.embedded import EmbeddedServer
from hermes_pgsql.embedding.builtin import BuiltinEmbedder
from hermes_pgsql.embedding.http import HttpEmbedder

__all__ = ["main"]

BUILTIN, MINILM, ENDPOINT = "built-in", "all-MiniLM-L6-v2", "endpoint"
LIMIT = 10
BATCH = 500
AT_ONCE = 4  # questions; this benchmark takes no times
#: How the conversations are laid out in themes.
LAYOUTS: dict[str, Callable[[str], str]] = {
    "each conversation a theme": lambda conversation: f"locomo {conversation}",
    "all conversations in one theme": lambda _conversation: "locomo",
}
ALL_WORDS = """
    SELECT c.id
      FROM memvec.conversations AS c, websearch_to_tsquery('english', %s) AS q
     WHERE c.agent_identity = %s AND to_tsvector('english', c.content) @@ q
     ORDER BY ts_rank_cd(to_tsvector('english', c.content), q) DESC, c.id
     LIMIT 10"""


def main(arguments: Sequence[str] = ()) -> None:
    parser = options_of("quality", __doc__)
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="LoCoMo (default: none, and nothing is measured)",
    )
    parser.add_argument(
        "--conversations", type=at_least(1), metavar="N", help="only the first N (default: all)"
    )
    parser.add_argument(
        "--models",
        nargs="+",
        choices=[BUILTIN, MINILM],
        default=[BUILTIN, MINILM],
        help="whose vectors to compare (default: both)",
    )
    parser.add_argument(
        "--endpoint",
        metavar="URL",
        help="also vectors of this server that speaks OpenAI's or Ollama's protocol (default: none)",
    )
    parser.add_argument("--model", metavar="NAME", help="the endpoint's model (default: none)")
    options = parser.parse_args(arguments)
    if options.endpoint and not options.model:
        parser.error("--endpoint needs --model")
    if options.data is None or not (options.data / FILE).is_file():
        why = "no data was given" if options.data is None else f"{options.data} holds no {FILE}"
        print(f"## Quality\n\nSkipped: {why}. {NEEDED}\n")
        return
    turns, questions = read(options.data, options.conversations)
    report = Report("quality", "Quality on LoCoMo", options)
    report.say(
        f"{len(turns):,} turns, questions: "
        + ", ".join(f"{sum(one.fold == fold for one in questions):,} {fold}" for fold in FOLDS)
    )
    with fresh_server(ROOMY) as server:
        bank = Bank(server, turns)
        for model in _models(options, turns, questions):
            with ExitStack() as running:
                peers: dict[str, Peer] = {}
                for version in (PEER, PEER_BEFORE):
                    peer = running.enter_context(
                        peer_of(server, version, model.dim, wanted=not options.no_peer)
                    )
                    if peer is not None:
                        _load_peer(peer, bank, model)
                        peers[version] = peer
                bank.embed(model)
                for layout in LAYOUTS:
                    _compare(report, bank, model, questions, layout, peers)
    report.close()


def _models(
    options: argparse.Namespace, turns: Sequence[Turn], questions: Sequence[Question]
) -> Iterator[Embedded]:
    texts, asked = [turn.text for turn in turns], [question.text for question in questions]
    for name in options.models:
        if name == BUILTIN:
            yield embedded(BuiltinEmbedder(), texts, asked)
            continue
        with minilm() as url:
            if url is not None:
                yield embedded(HttpEmbedder(url, MINILM, protocol="openai"), texts, asked)
    if options.endpoint:
        yield embedded(HttpEmbedder(options.endpoint, options.model), texts, asked)


class Bank:
    """The turns in our database, once for each layout, written as the outbox's drain writes them."""

    def __init__(self, server: EmbeddedServer, turns: Sequence[Turn]) -> None:
        self.server = server
        self.turns = turns
        self.client = Memvec(server.runtime_dsn)
        self.spaces: dict[str, int] = {}
        self._ids: list[int] = []
        self._hashes: list[bytes] = []
        self._turn_of: dict[int, Turn] = {}
        rows = [(theme_of(turn.conversation), turn) for theme_of in LAYOUTS.values() for turn in turns]
        for first in range(0, len(rows), BATCH):
            operations = [_operation(theme, turn) for theme, turn in rows[first : first + BATCH]]
            for done, (_theme, turn) in zip(
                self.client.apply_ops(operations), rows[first : first + BATCH], strict=True
            ):
                assert done.id is not None, done.message
                assert done.content_hash is not None
                self._ids.append(done.id)
                self._hashes.append(done.content_hash)
                self._turn_of.setdefault(done.id, turn)
        self._upkeep()

    def embed(self, model: Embedded) -> None:
        """Store a model's vectors in a space of its own."""
        with psycopg.connect(self.server.admin_dsn, autocommit=True) as admin:
            row = admin.execute(
                "SELECT memvec.add_embedding_space(%s, %s)", [model.model, model.dim]
            ).fetchone()
        assert row is not None
        self.spaces[model.model] = space = row[0]
        vectors = [vector.tolist() for vector in model.documents] * len(LAYOUTS)
        for first in range(0, len(vectors), BATCH):
            part = slice(first, first + BATCH)
            ids = self._ids[part]
            self.client.store_embeddings(space, ["turn"] * len(ids), ids, self._hashes[part], vectors[part])
        self._upkeep()

    def named(self, ids: Sequence[int]) -> list[tuple[str, str]]:
        return [(self._turn_of[row].conversation, self._turn_of[row].name) for row in ids]

    def _upkeep(self) -> None:
        with psycopg.connect(self.server.admin_dsn, autocommit=True) as admin:
            admin.execute("VACUUM ANALYZE")
            admin.execute("SELECT memvec.housekeeping()")


def _operation(theme: str, turn: Turn) -> dict[str, object]:
    return {
        "op_id": str(uuid.uuid4()),
        "op": "append_turn",
        "identity": theme,
        "session_id": turn.session,
        "role": turn.role,
        "content": turn.text,
        "ts": turn.time,
    }


def _load_peer(peer: Peer, bank: Bank, model: Embedded) -> None:
    """The same turns; row numbers count through the layouts."""
    columns = "id, session_id, agent_identity, role, content, ts, embedding"
    numbers = itertools.count(1)
    with (
        _loading(peer) as connection,
        connection.cursor() as cursor,
        cursor.copy(f"COPY conversations ({columns}) FROM STDIN") as copy,
    ):
        for theme_of in LAYOUTS.values():
            for turn, vector in zip(bank.turns, model.documents, strict=True):
                theme, row = theme_of(turn.conversation), next(numbers)
                copy.write_row((row, turn.session, theme, turn.role, turn.text, turn.time, Vector(vector)))


@contextmanager
def _loading(peer: Peer) -> Generator[psycopg.Connection[Any]]:
    with psycopg.connect(peer.dsn, autocommit=True) as connection:
        register_vector(connection)
        with without_indexes(connection, "conversations"):
            yield connection
        connection.execute("VACUUM ANALYZE conversations")


@dataclass(frozen=True)
class _Halves:
    test: Score
    tune: Score


def _compare(
    report: Report,
    bank: Bank,
    model: Embedded,
    questions: Sequence[Question],
    layout: str,
    peers: dict[str, Peer],
) -> None:
    table = report.table(
        f"{model.model}, {layout}",
        ["way", *(f"{figure}, {fold}" for fold in FOLDS for figure in ("R@5", "R@10", "MRR"))],
    )
    themes = [LAYOUTS[layout](question.conversation) for question in questions]
    halves: dict[str, _Halves] = {}
    for name, found in _ways(bank, model, questions, themes, layout, peers):
        test, tune = (scored(questions, found, fold) for fold in FOLDS)
        halves[name] = _Halves(test, tune)
        table.row(
            name, *(figure for one in (test, tune) for figure in (one.recall_5, one.recall_10, one.mrr))
        )
    _bars(report, f"{model.model}, {layout}, test", halves, builtin=model.model == BuiltinEmbedder.model)


def _ways(
    bank: Bank,
    model: Embedded,
    questions: Sequence[Question],
    themes: Sequence[str],
    layout: str,
    peers: dict[str, Peer],
) -> Iterator[tuple[str, list[list[tuple[str, str]]]]]:
    """Each way of asking with what it found for each question."""
    space = bank.spaces[model.model]
    vectors = [vector.tolist() for vector in model.questions]
    asked = list(zip(themes, questions, vectors, strict=True))

    def ours(*, words: bool, meaning: bool) -> list[list[tuple[str, str]]]:
        def recall(one: tuple[str, Question, list[float]]) -> list[tuple[str, str]]:
            theme, question, vector = one
            rows = bank.client.recall_conversation(
                theme,
                question.text if words else None,
                embedding=vector if meaning else None,
                space=space if meaning else None,
                limit=LIMIT,
            )
            return bank.named([row.id for row in rows])

        with ThreadPoolExecutor(AT_ONCE) as clients:
            return list(clients.map(recall, asked))

    yield "words and meaning", ours(words=True, meaning=True)
    yield "words only", ours(words=True, meaning=False)
    yield "meaning only", ours(words=False, meaning=True)
    offset = list(LAYOUTS).index(layout) * len(bank.turns) + 1
    for version, peer in peers.items():
        answers = peer.calls(
            "hybrid_search_turns",
            [
                {
                    "query_text": question.text,
                    "query_embedding": vector,
                    "agent_identity": theme,
                    "limit": LIMIT,
                }
                for theme, question, vector in asked
            ],
        )
        rows = [[bank.turns[row - offset] for row in answer.ids] for answer in answers]
        yield f"peer {version}", [[(turn.conversation, turn.name) for turn in found] for found in rows]
    with psycopg.connect(bank.server.admin_dsn, autocommit=True) as admin:
        yield (
            "all words must match",
            [
                bank.named([row[0] for row in admin.execute(ALL_WORDS, [question.text, theme]).fetchall()])
                for theme, question, _vector in asked
            ],
        )


def _bars(report: Report, where: str, halves: dict[str, _Halves], *, builtin: bool) -> None:
    fused, words, meaning = (
        halves[name].test for name in ("words and meaning", "words only", "meaning only")
    )
    better = max(words.recall_10, meaning.recall_10)
    report.bar(f"{where}: R@10 of both less that of the better one", fused.recall_10 - better, least=-0.01)
    if "each" not in where:
        return
    if builtin:
        report.bar(f"{where}: R@10", fused.recall_10, least=0.66)
        report.bar(f"{where}: R@5", fused.recall_5, least=0.56)
        report.bar(f"{where}: R@10, words only", words.recall_10, least=0.64)
    peer = halves.get(f"peer {PEER}")
    if peer is not None:
        times = fused.recall_10 / peer.test.recall_10
        report.bar(f"{where}: R@10, times the peer's", times, least=1.15 if builtin else 1.25)
