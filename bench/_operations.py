"""What a host does with its memory, as calls: ours through `Memvec`, the peer's through its store.

Each operation takes a number, so that no two calls are the same. Both sides get the same questions, texts and
vectors. `race` runs them in turns, so that both meet the machine in the same state.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from bench._corpus import COMMON, Corpus
from bench._processor import timed
from hermes_pgsql.client import Memvec

__all__ = [
    "HUNDRED",
    "REPLACE_LATER",
    "Operation",
    "Race",
    "ours_recalling",
    "race",
    "recalls",
    "their_sinks",
    "writes",
]

#: The theme that is written to.
HUNDRED = "hundred"
REPLACE_LATER = "replace, vector later"
LIMIT = 10


@dataclass(frozen=True)
class Operation:
    """`theirs` gives the arguments of the peer's `method`. Writes are done once each, in their order."""

    name: str
    ours: Callable[[int], object]
    method: str
    theirs: Callable[[int], dict[str, Any]]
    writes: bool = False


@dataclass
class Race:
    """Milliseconds of each call, and those with one always free."""

    ours: list[float] = field(default_factory=list)
    ours_working: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    theirs_working: list[float] = field(default_factory=list)


def race(operation: Operation, corpus: Corpus, calls: int, rounds: int = 4, most_seconds: float = 20) -> Race:
    """Time `calls` calls of each side in `rounds` turns; the peer stops after `most_seconds`."""
    done = Race()
    if not operation.writes:
        for warm_up in range(min(2, calls)):  # connections, plans, the pages of the index
            operation.ours(warm_up)
            if corpus.peer is not None:
                corpus.peer.calls(operation.method, [operation.theirs(warm_up)])
    turn = -(-calls // rounds)
    for first in range(0, calls, turn):
        numbers = range(first, min(first + turn, calls))
        backends = corpus.backends()
        for number in numbers:
            took, working = timed(lambda: operation.ours(number), backends)  # noqa: B023 (called at once)
            done.ours.append(took)
            done.ours_working.append(working)
        if corpus.peer is not None:
            asked = [operation.theirs(number) for number in numbers]
            answers = corpus.peer.calls(operation.method, asked, most_seconds / rounds)
            done.theirs += [answer.milliseconds for answer in answers]
            done.theirs_working += [answer.working for answer in answers]
    return done


def ours_recalling(
    client: Memvec, space: int, query: str | None, vector: array[float], *, identity: str, scope: str
) -> list[int]:
    rows = client.recall_memory(identity, query, embedding=vector, space=space, scope=scope, limit=LIMIT)
    return [row.id for row in rows]


def their_sinks() -> dict[str, Any]:
    """What the peer leaves out of scope=all, when an ordinary theme asks."""
    return {"exclude_identities": ["whatsapp-dm", "external-group", "_bench"]}


def recalls(corpus: Corpus, client: Memvec, theme: str | None, calls: int) -> list[Operation]:
    """The questions put to a theme, or to all ordinary ones; a hit is in what is asked."""
    rows = list(itertools.islice(_rows_of(corpus, theme), calls))
    vectors = corpus.vectors(2**31, calls)
    arrays = [array("f", vector) for vector in vectors]
    identity, scope = (HUNDRED, "all") if theme is None else (theme, "own")
    theirs = their_sinks() if theme is None else {"agent_identity": theme}
    texts = {
        "rare words": [corpus.rare_words(row) for row in rows],
        "one common word": [COMMON] * calls,
        "a question": [corpus.question(row) for row in rows],
    }

    def recall(name: str) -> Operation:
        return Operation(
            name,
            lambda number: ours_recalling(
                client, corpus.space, texts[name][number], arrays[number], identity=identity, scope=scope
            ),
            "hybrid_search",
            lambda number: {
                "query_text": texts[name][number],
                "query_embedding": vectors[number].tolist(),
                "limit": LIMIT,
                **theirs,
            },
        )

    found = [recall(name) for name in texts]
    if theme is not None:
        found.append(
            Operation(
                "prefetch",
                lambda number: client.prefetch(
                    theme, texts["a question"][number], embedding=arrays[number], space=corpus.space
                ),
                "search",
                lambda number: {
                    "query_embedding": vectors[number].tolist(),
                    "limit": 5,
                    "min_similarity": 0.3,
                    **theirs,
                },
            )
        )
    return found


def writes(corpus: Corpus, client: Memvec, calls: int, salt: str) -> list[Operation]:
    """Add notes with their vectors, replace each, remove each, and store a turn; in a theme of 100 notes.

    Each is replaced twice: with its vector at once, as the peer does it, then as a host does it, where the
    drain brings the vector later.
    """
    vectors = corpus.vectors(2**31 + 1, calls)
    arrays = [array("f", vector) for vector in vectors]
    old = [f"{salt} old {number}: {corpus.text(number)}" for number in range(calls)]
    new = [f"{salt} new {number}: {corpus.text(number)}" for number in range(calls)]
    last = [f"{salt} last {number}: {corpus.text(number)}" for number in range(calls)]
    theme = {"agent_identity": HUNDRED}
    entry = {**theme, "target": "memory"}
    turn = {**theme, "session_id": "session-1", "role": "user"}
    space = corpus.space

    def write(
        name: str, ours: Callable[[int], object], method: str, theirs: Callable[[int], dict[str, Any]]
    ) -> Operation:
        return Operation(name, ours, method, theirs, writes=True)

    return [
        write(
            "add",
            lambda at: client.add_memory(HUNDRED, "memory", old[at], embedding=arrays[at], space=space),
            "add",
            lambda at: {**entry, "content": old[at], "embedding": vectors[at].tolist()},
        ),
        write(
            "replace",
            lambda at: client.replace_memory(
                HUNDRED, "memory", old[at], new[at], embedding=arrays[at], space=space
            ),
            "replace",
            lambda at: {
                **entry,
                "old_text": old[at],
                "new_content": new[at],
                "new_embedding": vectors[at].tolist(),
            },
        ),
        write(
            REPLACE_LATER,
            lambda at: client.replace_memory(HUNDRED, "memory", new[at], last[at]),
            "replace",
            lambda at: {
                **entry,
                "old_text": new[at],
                "new_content": last[at],
                "new_embedding": vectors[at].tolist(),
            },
        ),
        write(
            "remove",
            lambda at: client.remove_memory(HUNDRED, "memory", last[at]),
            "remove",
            lambda at: {**entry, "old_text": last[at]},
        ),
        write(
            "turn",
            lambda at: client.append_turn(
                HUNDRED, "session-1", "user", old[at], embedding=arrays[at], space=space
            ),
            "append_turn",
            lambda at: {**turn, "content": old[at], "embedding": vectors[at].tolist()},
        ),
    ]


def _rows_of(corpus: Corpus, theme: str | None) -> Iterable[int]:
    """Numbers of rows of a theme, over and over; every 97th row when it may be any."""
    if theme is None:
        return itertools.cycle(range(0, corpus.rows, max(1, corpus.rows // 97)))
    first = 0
    found: list[int] = []
    while first < corpus.rows and len(found) < 50:
        themes = corpus.themes(first, min(2000, corpus.rows - first))
        found += [first + at for at, name in enumerate(themes) if name == theme]
        first += 2000
    if not found:
        raise SystemExit(f"no row of theme {theme} among {corpus.rows}")
    return itertools.cycle(found)
