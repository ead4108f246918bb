"""Text to vectors: from an endpoint over HTTP, or from a small built-in model, or not at all.

Everything works without vectors, so nothing here is ever a reason to fail: an embedder that cannot be used
says so once in the log, and recall goes by words. `choose_embedder` picks the one the configuration asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .base import (
    Embedder,
    EmbedderUnavailable,
    Embedding,
    EmbeddingError,
    EmbeddingFailure,
    FailureKind,
    clean_text,
    vector_literal,
)

__all__ = [
    "Embedder",
    "EmbedderChoice",
    "EmbedderUnavailable",
    "Embedding",
    "EmbeddingError",
    "EmbeddingFailure",
    "FailureKind",
    "choose_embedder",
    "clean_text",
    "vector_literal",
]


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """The embedder, or None for recall by words only, and a sentence for the operator that says why."""

    embedder: Embedder | None
    reason: str


def choose_embedder(
    *,
    embed_url: str | None = None,
    embed_model: str = "",
    embed_dim: int | None = None,
    embed_api_key_env: str | None = None,
    embed_protocol: str = "auto",
    embed_query_prefix: str | None = None,
    embed_document_prefix: str | None = None,
    max_chars: int = 8000,
    batch_size: int = 16,
    retries: int = 2,
    backoff: float = 0.1,
    runtime_dir: Path | None = None,
) -> EmbedderChoice:
    """An endpoint when `embed_url` is set, else the built-in model where it can run, else none.

    Contacts nobody. `batch_size`: texts in one request to an endpoint. `runtime_dir` is where the built-in
    model's worker has its socket (default: a private folder of the user).
    """
    if embed_url and embed_url.strip():
        from .http import HttpEmbedder

        if not embed_model.strip():
            return EmbedderChoice(
                None, "embed_url is set but embed_model is not; recall is by words until it is"
            )
        try:
            embedder = HttpEmbedder(
                embed_url,
                embed_model.strip(),
                dim=embed_dim,
                api_key_env=embed_api_key_env,
                protocol=embed_protocol,
                query_prefix=embed_query_prefix,
                document_prefix=embed_document_prefix,
                max_chars=max_chars,
                batch_size=batch_size,
                retries=retries,
                backoff=backoff,
            )
        except EmbeddingError as error:
            return EmbedderChoice(None, f"{error.reason}; recall is by words until then")
        return EmbedderChoice(embedder, f"the endpoint {embedder.endpoint} with the model {embedder.model}")

    from .builtin import BuiltinEmbedder, missing_for_builtin

    missing = missing_for_builtin()
    if missing:
        return EmbedderChoice(None, f"no embed_url, and no built-in model: {missing}; recall is by words")
    return EmbedderChoice(
        BuiltinEmbedder(runtime_dir=runtime_dir),
        "no embed_url, so the built-in model (multilingual-e5-small, MIT licence) in a worker process of this"
        " user",
    )
