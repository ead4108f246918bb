"""What the tests of outbox and drain share: an embedder, waiting, and looking into the database."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from conftest import Database

from hermes_pgsql.embedding import Embedding, EmbeddingFailure
from hermes_pgsql.outbox import Outbox


class LocalEmbedder:
    """Embeds in this process: four numbers made from the text. ``fails`` says which texts fail and how."""

    def __init__(self, model: str = "test-model", endpoint: str = "in this process") -> None:
        self.model = model
        self.endpoint = endpoint
        self.dim: int | None = None
        self.query_prefix = ""
        self.document_prefix = ""
        self.min_similarity: float | None = None
        self.texts: list[str] = []
        self.fails: Callable[[str], EmbeddingFailure | None] = lambda _text: None
        self.gate = threading.Event()
        self.gate.set()

    def embed_documents(
        self, texts: Sequence[str], deadline_seconds: float | None = None
    ) -> list[Embedding | EmbeddingFailure]:
        if not self.gate.wait(deadline_seconds):
            return [EmbeddingFailure("no answer", kind="timeout", unavailable=True) for _text in texts]
        self.texts += texts
        results: list[Embedding | EmbeddingFailure] = []
        for text in texts:
            failure = self.fails(text)
            results.append(vector_of(text) if failure is None else failure)
        if any(not isinstance(result, EmbeddingFailure) for result in results):
            self.dim = 4
        return results

    def embed_query(self, text: str, deadline_seconds: float | None = None) -> Embedding:  # noqa: ARG002
        return vector_of(text)

    def close(self) -> None:
        pass


def vector_of(text: str) -> Embedding:
    digest = hashlib.sha256(text.encode()).digest()
    return array("f", [1.0 + digest[0], digest[1], digest[2], digest[3]])


def put_turn(outbox: Outbox, identity: str, session: str, content: str, **more: Any) -> Any:
    arguments = {"session_id": session, "role": "user", "content": content, **more}
    return outbox.put("append_turn", identity, arguments)


def turns(database: Database, identity: str) -> list[str]:
    """The turns of a theme in the order in which they were stored."""
    return column(
        database, "SELECT content FROM memvec.conversations WHERE agent_identity = %s ORDER BY id", identity
    )


def entries(database: Database, identity: str) -> list[str]:
    return column(
        database,
        "SELECT content FROM memvec.memory_entries WHERE agent_identity = %s ORDER BY id",
        identity,
    )


def embedded_texts(database: Database, kind: str, identity: str) -> set[str]:
    """The texts of a theme that have a vector in some space."""
    table = {"turn": "conversations", "entry": "memory_entries"}[kind]
    spaces = column(database, f"SELECT {kind}_table::text FROM memvec.embedding_spaces")
    return {
        content
        for space in spaces
        for content in column(
            database,
            f"SELECT t.content FROM memvec.{table} AS t JOIN memvec.{space} AS e USING (id)"
            " WHERE t.agent_identity = %s",
            identity,
        )
    }


def column(database: Database, query: str, *arguments: object) -> list[Any]:
    with database.admin() as connection:
        return [row[0] for row in connection.execute(query.encode(), arguments).fetchall()]


def wait_until(condition: Callable[[], bool], seconds: float = 90) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def python(script: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    """A process that runs ``script`` and can import what the tests can."""
    path = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    command = [sys.executable, "-c", path + script, *map(str, arguments)]
    return subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)


def finish(process: subprocess.Popen[str], seconds: float = 120) -> str:
    """What the process printed; fails unless it ended well."""
    out, _err = process.communicate(timeout=seconds)
    assert process.returncode == 0, f"exit code {process.returncode}"
    return out
