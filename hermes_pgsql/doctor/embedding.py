"""The embedder: does it answer, with usable vectors, in time, and does the database have a space for them."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from hermes_pgsql.doctor.finding import Finding, failure, fine, unknown, warning
from hermes_pgsql.embedding.spaces import SpaceKey, missing_space
from hermes_pgsql.installing import install_extra

if TYPE_CHECKING:
    from hermes_pgsql.config import Settings
    from hermes_pgsql.embedding import Embedder, Embedding
    from hermes_pgsql.embedding.base import EmbeddingError

AREA: Final = "embedding"
_PROBE: Final = "Which port does the database listen on?"
_PATIENCE: Final = 30.0  # seconds: a model may have to be loaded first
_SHARE: Final = 0.6  # of the prefetch budget that a question's vector may take


@dataclass(frozen=True)
class _Probe:
    embedding: Embedding
    first: float  # seconds
    again: float


def checks(settings: Settings, spaces: Sequence[Mapping[str, Any]] | None) -> Generator[Finding]:
    """``spaces`` are the database's embedding spaces, None when it could not be asked."""
    from hermes_pgsql.embedding import EmbeddingError
    from hermes_pgsql.opening import open_embedder

    choice = open_embedder(settings)
    embedder = choice.embedder
    if embedder is None:
        fix = f"{install_extra('local')}   (or configure embed_url)"
        yield warning(AREA, "embedder", choice.reason, fix)
        return
    try:
        probe = _probe(embedder)
    except EmbeddingError as error:
        yield failure(AREA, "endpoint", error.reason, _fix(error, settings))
        return
    finally:
        embedder.close()
    yield fine(AREA, "endpoint", f"{embedder.model} answers with {len(probe.embedding)} dimensions")
    yield _usable(probe.embedding)
    yield _latency(probe, settings)
    yield _space(embedder, len(probe.embedding), spaces, settings)


def _probe(embedder: Embedder) -> _Probe:
    began = monotonic()
    embedder.embed_query(_PROBE, _PATIENCE)
    loaded = monotonic()
    embedding = embedder.embed_query(f"{_PROBE} Again.", _PATIENCE)
    return _Probe(embedding, loaded - began, monotonic() - loaded)


def _usable(embedding: Embedding) -> Finding:
    if not all(map(math.isfinite, embedding)) or not any(embedding):
        return failure(
            AREA,
            "vectors",
            "its vectors are zero or not finite: rows stay without one",
            "choose another embed_model",
        )
    return fine(AREA, "vectors", "its vectors are finite and not zero")


def _latency(probe: _Probe, settings: Settings) -> Finding:
    said = f"a question takes {1000 * probe.again:,.0f} ms ({1000 * probe.first:,.0f} ms the first time)"
    allowed = min(settings.embed_timeout, settings.prefetch_budget * _SHARE)
    if probe.again <= allowed:
        return fine(AREA, "latency", said)
    return warning(
        AREA,
        "latency",
        f"{said}, and prefetch waits {allowed:.1f} s at most: questions are answered by words",
        "use a smaller or nearer model, or raise it: hermes config set memory.pgvector.prefetch_budget 7",
    )


def _space(
    embedder: Embedder, width: int, spaces: Sequence[Mapping[str, Any]] | None, settings: Settings
) -> Finding:
    if spaces is None:
        return unknown(AREA, "space", "not compared, because the database does not answer", "mend that first")
    if not spaces:
        return fine(AREA, "space", "the database has no space yet; the first write makes it for this model")
    wanted = SpaceKey(embedder.model, width, embedder.query_prefix, embedder.document_prefix)
    known = [SpaceKey(s["model"], s["dim"], s["query_prefix"], s["document_prefix"]) for s in spaces]
    if wanted in known:
        return fine(AREA, "space", f"the database has a space for {embedder.model} ({width})")
    said, (*use, add) = missing_space(wanted, known, prefixes_are_free=settings.embed_url is not None)
    ways = [*use, f"{add} --admin-dsn DSN; hermes-pgsql backfill"]
    return failure(
        AREA, "space", f"{said}: rows stay without vectors and are found by words", "   (or) ".join(ways)
    )


def _fix(error: EmbeddingError, settings: Settings) -> str:
    configure = "hermes config set memory.pgvector"
    model = settings.embed_model
    fixes = {
        "auth": f"export {settings.embed_api_key_env or 'MY_KEY'}=...   (see embed_api_key_env)",
        "model": f"ollama pull {model}   (or: {configure}.embed_model NAME)",
        "not_found": f"{configure}.embed_url URL   (the base address), or embed_protocol openai or ollama",
        "width": f"{configure}.embed_dim N   (the width of {model})",
        "timeout": "start the service again, or use a smaller model",
        "unreachable": f"start the service, or: {configure}.embed_url URL",
        "config": "correct what is said, in config.yaml",
        "reply": f"{configure}.embed_protocol openai   (or ollama), or another embed_model",
    }
    return fixes.get(error.kind, "look at the log of the embedding service")
