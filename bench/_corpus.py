"""Made-up memory of any size: notes and turns with texts and vectors, loaded the same into us and the peer.

Row i is the same in every run. Its vector (768 numbers) lies in one of 200 clusters, which have nothing to do
with themes. Its text is twelve words from a vocabulary as unequally common as that of a language (Zipf and
Mandelbrot), and in one row of five the word COMMON. Every tenth row is a chat turn too. Rows are copied
straight into the tables as their owner would, indexes are made afterwards.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector, Vector
from pgvector.psycopg import register_vector
from psycopg.conninfo import conninfo_to_dict

from bench._peer import Peer
from bench._processor import BACKENDS
from hermes_pgsql.embedded import EmbeddedServer

__all__ = ["COMMON", "DIM", "SHARES", "Corpus", "Vectors", "shared_out", "vocabulary", "without_indexes"]

DIM = 768
CLUSTERS = 200
COMMON = "deployment"
COMMON_SHARE = 0.2
WORDS = 12
CHUNK = 5_000
TURN_EVERY = 10
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
#: Themes by the part of all rows that they hold.
SHARES = {"0.2 %": 0.002, "1 %": 0.01, "2 %": 0.02, "5 %": 0.05, "10 %": 0.1, "20 %": 0.2}
OTHERS = 40
STOP_WORDS = ["what", "do", "we", "about", "the", "when"]

Vectors: TypeAlias = NDArray[np.float32]
Observer: TypeAlias = Callable[[int, list[str], Vectors], None]
Connection: TypeAlias = psycopg.Connection[Any]


def vocabulary(size: int = 20_000) -> list[str]:
    """Words of one to five syllables, each once."""
    numbers = random.Random(11)
    words: dict[str, None] = {}
    while len(words) < size:
        words["".join(numbers.choices(SYLLABLES, k=numbers.randint(2, 5)))] = None
    return list(words)


def shared_out(row: int, number: float) -> str:
    """A theme of each share, the rest in many small ones; the first hundred rows are a theme of their own."""
    if row < 100:
        return "hundred"
    for name, share in SHARES.items():
        if number < share:
            return name
        number -= share
    return f"other-{int(number * 1e6) % OTHERS}"


class Corpus:
    """The rows in one database, and the peer's where there is one.

    `theme_of(row number, random number from 0 to 1)` says to which theme a row belongs. `observe` is shown
    the rows as they are loaded: number of the first, themes, vectors.
    """

    def __init__(
        self,
        server: EmbeddedServer,
        peer: Peer | None,
        theme_of: Callable[[int, float], str],
        observe: Observer | None = None,
        *,
        spread: float = 0.7,
    ) -> None:
        self.server = server
        self.peer = peer
        self.rows = 0
        self._theme_of = theme_of
        self._observe = observe
        self._spread = spread
        self._words = vocabulary()
        self._weights = list(itertools.accumulate(1 / (rank + 20) for rank in range(len(self._words))))
        self._centres = _unit(np.random.default_rng(1).standard_normal((CLUSTERS, DIM)).astype(np.float32))
        with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
            self.space: int = _one(admin, f"SELECT memvec.add_embedding_space('bench', {DIM})")

    # -- what the rows are --

    def vectors(self, seed: int, count: int) -> Vectors:
        """Unit vectors, rounded as the database keeps them."""
        numbers = np.random.default_rng((2, seed))
        chosen = self._centres[numbers.integers(0, CLUSTERS, count)]
        noise = numbers.standard_normal((count, DIM), dtype=np.float32) * (self._spread / DIM**0.5)
        return _unit(chosen + noise).astype(np.float16).astype(np.float32)

    def text(self, row: int) -> str:
        return " ".join(self._drawn(row))

    def rare_words(self, row: int) -> str:
        """Two words of a row that few others hold."""
        return " ".join(sorted(set(self._drawn(row)) - {COMMON}, key=self._rank)[-2:])

    def question(self, row: int) -> str:
        """Five of a row's words and one that it does not hold, among words that mean nothing."""
        own = [word for word in self._drawn(row) if word != COMMON][:5]
        (other,) = random.Random(-1 - row).choices(self._words, cum_weights=self._weights)
        return " ".join(itertools.chain.from_iterable(zip(STOP_WORDS, [*own, other], strict=False)))

    def _rank(self, word: str) -> int:
        return self._ranks[word]

    @property
    def _ranks(self) -> dict[str, int]:
        if not hasattr(self, "_rank_of"):
            self._rank_of: dict[str, int] = {word: rank for rank, word in enumerate(self._words)}
        return self._rank_of

    def _drawn(self, row: int) -> list[str]:
        numbers = random.Random(row)
        words = numbers.choices(self._words, cum_weights=self._weights, k=WORDS)
        if numbers.random() < COMMON_SHARE:
            words.insert(numbers.randrange(WORDS), COMMON)
        return words

    def themes(self, first: int, count: int) -> list[str]:
        return [self._theme_of(row, random.Random(row + 0.5).random()) for row in range(first, first + count)]

    def backends(self) -> list[int]:
        """The processes that serve our clients."""
        with psycopg.connect(self.server.admin_dsn, autocommit=True) as admin:
            return _one(admin, BACKENDS, conninfo_to_dict(self.server.runtime_dsn)["user"]) or []

    # -- putting them into the database --

    def grow(self, rows: int) -> None:
        """Load as many rows as are missing to that number, index them, and do the upkeep."""
        with (
            psycopg.connect(self.server.admin_dsn, autocommit=True) as ours,
            _maybe(self.peer) as theirs,
        ):
            with (
                without_indexes(ours, *self._our_tables),
                without_indexes(theirs, "memory_entries", "conversations"),
            ):
                for first in range(self.rows, rows, CHUNK):
                    self._load(ours, theirs, first, min(CHUNK, rows - first))
            self.rows = rows
            self._finish_ours(ours)
            if theirs is not None:
                _finish(theirs, ["memory_entries", "conversations"])

    @property
    def _our_tables(self) -> list[str]:
        tables = ["memory_entries", "conversations"]
        tables += [f"{kind}_embeddings_{self.space}" for kind in ("entry", "turn")]
        return [f"memvec.{table}" for table in tables]

    def _load(self, ours: Connection, theirs: Connection | None, first: int, count: int) -> None:
        themes = self.themes(first, count)
        texts = [self.text(row) for row in range(first, first + count)]
        vectors = self.vectors(first, count)
        if self._observe is not None:
            self._observe(first, themes, vectors)
        rows = list(zip(range(first + 1, first + count + 1), themes, texts, vectors, strict=True))
        register_vector(ours)
        ours.execute(
            "CREATE TEMP TABLE IF NOT EXISTS given (id bigint, theme text, content text, hash bytea)"
        )
        with ours.cursor() as cursor:
            with cursor.copy("COPY given FROM STDIN") as copy:
                for row, theme, text, _vector in rows:
                    copy.write_row((row, theme, text, hashlib.sha256(text.encode()).digest()))
            cursor.execute(_ENTRIES)
            cursor.execute(_TURNS)
            with cursor.copy(
                f"COPY memvec.entry_embeddings_{self.space} (id, agent_identity, target, embedding)"
                " FROM STDIN (FORMAT binary)"
            ) as copy:
                copy.set_types(["int8", "text", "text", "halfvec"])
                for row, theme, _text, vector in rows:
                    copy.write_row((row, theme, "memory", HalfVector(vector)))
            with cursor.copy(
                f"COPY memvec.turn_embeddings_{self.space} (id, agent_identity, session_id, ts, embedding)"
                " FROM STDIN"
            ) as copy:
                for row, theme, _text, vector in rows:
                    if row % TURN_EVERY == 0:
                        copy.write_row((row, theme, session_of(row), "now", HalfVector(vector)))
            cursor.execute("TRUNCATE given")
        if theirs is not None:
            _load_peer(theirs, rows)

    def _finish_ours(self, ours: Connection) -> None:
        for table in ("memory_entries", "conversations"):
            ours.execute(NUMBER_ON.format(table=f"memvec.{table}"))
        _finish(ours, self._our_tables)
        ours.execute("SELECT memvec.housekeeping()")
        # As `hermes-pgsql index` does, but nobody else is here, so there is no need for CONCURRENTLY.
        for (command,) in ours.execute(
            "SELECT command FROM memvec.vector_indexes() WHERE state = 'missing'"
        ).fetchall():
            ours.execute(command.replace("CONCURRENTLY ", ""))


#: What is written beside the corpus is numbered far above it, so that the corpus can still grow.
NUMBER_ON = (
    "SELECT setval(pg_get_serial_sequence('{table}', 'id'), greatest(1000000000, max(id))) FROM {table}"
)
_ENTRIES = """
    INSERT INTO memvec.memory_entries
           (id, agent_identity, target, content, content_hash, search, search_version)
    OVERRIDING SYSTEM VALUE
    SELECT g.id, g.theme, 'memory', g.content, g.hash, memvec.search_vector(g.content),
           memvec.setting('search_version')::integer
      FROM given AS g"""
_TURNS = f"""
    INSERT INTO memvec.conversations
           (id, agent_identity, session_id, role, content, content_hash, search, search_version)
    OVERRIDING SYSTEM VALUE
    SELECT m.id, m.agent_identity, 'session-' || m.id % 500, 'user', m.content, m.content_hash, m.search,
           m.search_version
      FROM memvec.memory_entries AS m
      JOIN given AS g ON g.id = m.id
     WHERE m.id % {TURN_EVERY} = 0"""


def session_of(row: int) -> str:
    return f"session-{row % 500}"


def _load_peer(theirs: Connection, rows: list[tuple[int, str, str, Vectors]]) -> None:
    register_vector(theirs)
    with theirs.cursor() as cursor:
        with cursor.copy(
            "COPY memory_entries (id, agent_identity, target, content, embedding) FROM STDIN (FORMAT binary)"
        ) as copy:
            copy.set_types(["int8", "text", "text", "text", "vector"])
            for row, theme, text, vector in rows:
                copy.write_row((row, theme, "memory", text, Vector(vector)))
        with cursor.copy(
            "COPY conversations (id, session_id, agent_identity, role, content, embedding)"
            " FROM STDIN (FORMAT binary)"
        ) as copy:
            copy.set_types(["int8", "text", "text", "text", "text", "vector"])
            for row, theme, text, vector in rows:
                if row % TURN_EVERY == 0:
                    copy.write_row((row, session_of(row), theme, "user", text, Vector(vector)))
        for table in ("memory_entries", "conversations"):
            cursor.execute(NUMBER_ON.format(table=table))


@contextmanager
def without_indexes(connection: Connection | None, *tables: str) -> Generator[None]:
    """Take away the indexes that keep nothing unique and make them anew at the end, which is faster."""
    if connection is None:
        yield
        return
    found = connection.execute(
        """
        SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
          FROM pg_index AS i
         WHERE i.indrelid = ANY (%s::regclass[]) AND NOT i.indisunique
        """,
        [list(tables)],
    ).fetchall()
    for name, _definition in found:
        connection.execute(f"DROP INDEX {name}")
    yield
    for _name, definition in found:
        connection.execute(definition)


def _finish(connection: Connection, tables: list[str]) -> None:
    for table in tables:
        connection.execute(f"VACUUM (ANALYZE) {table}")
    connection.execute("CHECKPOINT")


@contextmanager
def _maybe(peer: Peer | None) -> Generator[Connection | None]:
    if peer is None:
        yield None
        return
    with psycopg.connect(peer.dsn, autocommit=True) as connection:
        yield connection


def _unit(vectors: NDArray[Any]) -> Vectors:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _one(connection: Connection, query: str, *parameters: Any) -> Any:
    row = connection.execute(query, parameters or None).fetchone()
    assert row is not None
    return row[0]
