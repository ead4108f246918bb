"""Vectors of the texts of an evaluation, computed once for each model and kept under build/bench/.

Whatever the model, both sides of a comparison get these same numbers.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench._corpus import Vectors
from bench._report import BUILD
from hermes_pgsql.embedding.base import Embedder

__all__ = ["Embedded", "embedded"]

_BATCH = 256


@dataclass(frozen=True)
class Embedded:
    model: str
    documents: Vectors
    questions: Vectors

    @property
    def dim(self) -> int:
        return int(self.documents.shape[1])


def embedded(embedder: Embedder, documents: Sequence[str], questions: Sequence[str]) -> Embedded:
    """The vectors of documents and questions, rounded as the database keeps them."""
    text = "\0".join(
        [embedder.model, embedder.query_prefix, embedder.document_prefix, *documents, *questions]
    )
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    file = BUILD / "bench" / f"vectors-{embedder.model.rpartition('/')[2]}-{name}.npz"
    if file.exists():
        with np.load(file) as kept:
            return Embedded(embedder.model, kept["documents"], kept["questions"])
    done = Embedded(
        embedder.model,
        _rounded(_documents(embedder, documents)),
        _rounded([array("f", embedder.embed_query(question)) for question in questions]),
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file, documents=done.documents, questions=done.questions)
    return done


def _documents(embedder: Embedder, texts: Sequence[str]) -> list[array[float]]:
    vectors: list[array[float]] = []
    for first in range(0, len(texts), _BATCH):
        for vector in embedder.embed_documents(texts[first : first + _BATCH], 600):
            if not isinstance(vector, array):
                raise SystemExit(f"{embedder.model} cannot embed a text: {vector}")
            vectors.append(vector)
    return vectors


def _rounded(vectors: Sequence[array[float]]) -> Vectors:
    return np.array(vectors, dtype=np.float16).astype(np.float32)
