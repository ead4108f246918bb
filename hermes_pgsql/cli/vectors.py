"""Vectors for the commands that store or search one text, and a sentence why when there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes_pgsql.client import Memvec
from hermes_pgsql.config import Settings
from hermes_pgsql.errors import DatabaseFailure

if TYPE_CHECKING:
    from hermes_pgsql.embedding import Embedder, Embedding
    from hermes_pgsql.results import SpaceTable


@dataclass(frozen=True, slots=True)
class TextVector:
    """A text's vector and the space it belongs to; or neither, and ``why_not`` if a person should know."""

    embedding: Embedding | None
    space: int | None
    why_not: str | None


def vector_of_document(text: str, identity: str, memvec: Memvec, settings: Settings) -> TextVector:
    """The vector to store with ``text``."""
    from hermes_pgsql.embedding import EmbeddingFailure
    from hermes_pgsql.opening import open_embedder

    if not settings.embed_on_write:
        return TextVector(None, None, "embed_on_write is off")
    choice = open_embedder(settings)
    if choice.embedder is None:
        return TextVector(None, None, choice.reason)
    try:
        made = choice.embedder.embed_documents([text], settings.embed_write_timeout)[0]
        if isinstance(made, EmbeddingFailure):
            return TextVector(None, None, made.reason)
        space = _matching(memvec.describe_spaces(), made, choice.embedder)
        return (
            TextVector(made, space, None) if space else _in_its_space(made, choice.embedder, identity, memvec)
        )
    finally:
        choice.embedder.close()


def vector_of_question(text: str, identity: str, memvec: Memvec, settings: Settings) -> TextVector:
    """The vector to search with."""
    from hermes_pgsql.embedding import EmbeddingError
    from hermes_pgsql.opening import open_embedder

    choice = open_embedder(settings)
    if choice.embedder is None:
        return TextVector(None, None, choice.reason)
    try:
        made = choice.embedder.embed_query(text, settings.embed_timeout)
        spaces = memvec.describe_spaces()
        if not spaces:
            return TextVector(None, None, None)  # nothing has a vector that this one could be compared with
        # A greeting would put a misspelt theme into the registry: only when it has to say what is missing.
        space = _matching(spaces, made, choice.embedder)
        return (
            TextVector(made, space, None) if space else _in_its_space(made, choice.embedder, identity, memvec)
        )
    except EmbeddingError as error:
        return TextVector(None, None, str(error))
    finally:
        choice.embedder.close()


def _in_its_space(embedding: Embedding, embedder: Embedder, identity: str, memvec: Memvec) -> TextVector:
    try:
        return _greeted(embedding, embedder, identity, memvec)
    except DatabaseFailure as error:
        if error.sqlstate != "42501":
            raise
    # A login that may only read cannot say hello; the list of spaces is open to it.
    space = _matching(memvec.describe_spaces(), embedding, embedder)
    if space is None:
        return TextVector(None, None, f"the database has no space for the model {embedder.model}")
    return TextVector(embedding, space, None)


def _matching(spaces: Sequence[SpaceTable], embedding: Embedding, embedder: Embedder) -> int | None:
    wanted = (embedder.model, len(embedding), embedder.query_prefix, embedder.document_prefix)
    for row in spaces:
        if (row.model, row.dim, row.query_prefix, row.document_prefix) == wanted:
            return row.space_id
    return None


def _greeted(embedding: Embedding, embedder: Embedder, identity: str, memvec: Memvec) -> TextVector:
    greeting = memvec.hello(
        identity,
        embedder.model,
        len(embedding),
        embedder.query_prefix,
        embedder.document_prefix,
        embedder.min_similarity,
    )
    if greeting.space_id is None:
        return TextVector(
            None, None, " ".join(greeting.warnings) or "the database has no space for the model"
        )
    return TextVector(embedding, greeting.space_id, None)
