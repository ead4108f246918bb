"""Hosts that recall and write all the while a fleet changes its model, and check every answer.

Each question is the text of a stored row, so the row must be found, and every score in an answer must be the
cosine of question and row under the host's own model. The two models have reversed axes: a vector of one that
is compared with a vector of the other gives another number, and is counted.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes_pgsql.provider import PgvectorProvider

_LIMIT = 10
_LETTERS = str.maketrans("0123456789", "ghijklmnop")
_NEAR = 0.01  # half precision, and four digits in the answer


@dataclass(frozen=True)
class Model:
    """``embed`` is the vector of a text as the model makes it, with its prefixes if it has any."""

    name: str
    width: int
    embed: Callable[[str], list[float]]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def cosine(self, one: str, other: str) -> float:
        return sum(a * b for a, b in zip(self.embed(one), self.embed(other), strict=True))


@dataclass
class Seen:
    """What a host's questions came to. ``problems`` are the first wrong answers, for the report."""

    recalls: int = 0
    by_meaning: int = 0
    by_words: int = 0
    failed: int = 0
    wrong_space: int = 0
    written: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def problem(self, text: str) -> None:
        if len(self.problems) < 5:
            self.problems.append(text)


class Host:
    """A home whose agent asks and writes in a thread until stopped; ``use`` restarts it with a model."""

    def __init__(self, home: Path, dsn: str, theme: str, known: Mapping[str, Sequence[str]]) -> None:
        self.home = home
        self.theme = theme
        self.seen = Seen()
        self._dsn = dsn
        self._known = {kind: list(texts) for kind, texts in known.items()}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._number = 0
        self.provider: PgvectorProvider
        self.model: Model

    def use(self, model: Model, url: str) -> None:
        settings = {
            "dsn": self._dsn,
            "embed_url": url,
            "embed_protocol": "openai",
            "embed_model": model.name,
            "embed_dim": model.width,
            **model.settings,
        }
        document = {"memory": {"provider": "pgvector", "pgvector": settings}}
        with self._lock:
            self.home.mkdir(parents=True, exist_ok=True)
            (self.home / "config.yaml").write_text(json.dumps(document), encoding="utf-8")
            self.provider, self.model = PgvectorProvider(), model
            self.provider.initialize(
                f"{self.theme}-{model.name}",
                hermes_home=str(self.home),
                platform="cli",
                agent_context="primary",
                gateway_session_key=self.theme,
            )

    def start(self) -> None:
        self._thread = threading.Thread(target=self._live, name=f"host-{self.theme}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join(120)
        assert not self._thread.is_alive()

    def wait_for(self, more: int, seconds: float = 120) -> None:
        """Until that many more questions were asked."""
        until, ends = self.seen.recalls + more, time.monotonic() + seconds
        while self.seen.recalls < until and self._thread is not None and self._thread.is_alive():
            assert time.monotonic() < ends, "the host asks nothing any more"
            time.sleep(0.02)

    def _live(self) -> None:
        turn = 0
        while not self._stop.is_set():
            with self._lock:
                turn += 1
                kind = "entry" if turn % 2 else "turn"
                try:
                    self.ask(kind, random.choice(self._known[kind]))
                    if turn % 10 < 2:
                        self._write(kind)
                except Exception as error:  # noqa: BLE001 (a hook that raises is a failure to be counted)
                    self.seen.failed += 1
                    self.seen.problem(f"{type(error).__name__}: {error}")
            self._stop.wait(0.002)

    def ask(self, kind: str, text: str) -> None:
        """One question through the model's tool, and what the answer is worth."""
        tool = "recall_memory" if kind == "entry" else "recall_conversation"
        asked = {"query": text, "limit": _LIMIT}
        answer = json.loads(self.provider.handle_tool_call(tool, asked))
        self.seen.recalls += 1
        found = [row for row in answer["results"] if row["content"] == text]
        if "error" in answer or not found:
            self.seen.failed += 1
            self.seen.problem(f"{self.model.name}: {text!r} was not found: {json.dumps(answer)[:300]}")
            return
        for row in answer["results"]:
            expected = None if row["score"] is None else self.model.cosine(text, row["content"])
            if expected is not None and abs(row["score"] - expected) > _NEAR:
                self.seen.wrong_space += 1
                self.seen.problem(f"{self.model.name}: score {row['score']}, not {expected:.4f}")
        if found[0]["score"] is None:
            self.seen.by_words += 1
        else:
            self.seen.by_meaning += 1

    def _write(self, kind: str) -> None:
        self._number += 1
        # Not told apart by a number alone: that may be the day of the month, which is a word of every turn.
        thing = hashlib.blake2b(b"%d" % self._number, digest_size=6).hexdigest().translate(_LETTERS)
        text = f"{self.theme} learns thing {thing} while its model is {self.model.name}, part {kind}"
        if kind == "entry":
            self.provider.on_memory_write("add", "memory", text)
        else:
            answer = f"{text}, answered"
            self.provider.sync_turn(text, answer, session_id="live")
            self.seen.written.append((kind, answer))
        self.seen.written.append((kind, text))


# Four words that no other row has: else a row without a vector is outranked by many like it that have one.
_WORDS = """
    SELECT n, string_agg(
               translate(substr(md5(%s || n), 1 + 8 * part, 8), '0123456789', 'ghijklmnop'), ' ') AS text
      FROM generate_series(1, %s) AS n, generate_series(0, 3) AS part
     GROUP BY n"""


def add_rows(query: Callable[..., object], themes: Sequence[str], entries: int, turns: int) -> None:
    """That many rows of both kinds, spread over the themes."""
    names = list(themes)
    theme = "(%s::text[])[1 + n %% %s]"
    query(
        f"SELECT count(*) FROM (SELECT memvec.add_memory({theme}, 'memory', text) FROM ({_WORDS}) AS w) AS r",
        names,
        len(names),
        "entry",
        entries,
    )
    query(
        f"SELECT count(*) FROM (SELECT memvec.append_turn({theme}, 'before', 'user', text)"
        f" FROM ({_WORDS}) AS w) AS r",
        names,
        len(names),
        "turn",
        turns,
    )


def texts_of(query: Callable[..., Any], theme: str) -> dict[str, list[str]]:
    """The texts of a theme, to ask for."""
    tables = {"entry": "memory_entries", "turn": "conversations"}
    return {
        kind: [
            row[0] for row in query(f"SELECT content FROM memvec.{table} WHERE agent_identity = %s", theme)
        ]
        for kind, table in tables.items()
    }
