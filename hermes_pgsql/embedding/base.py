"""What every embedder shares: the result types, the errors, one deadline, and the cleaning of text.

An embedder turns text into vectors. There are two: `http.HttpEmbedder` (an endpoint somebody runs) and
`builtin.BuiltinEmbedder` (a small model in a worker process of ours). Callers need only this module.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from hermes_pgsql.errors import HermesPgsqlError

#: float32 numbers; `tobytes()` is what the wire and the tests compare, `vector_literal` is what SQL takes.
Embedding: TypeAlias = "array[float]"

FailureKind = Literal[
    "auth",  # 401 or 403
    "blank",  # nothing to embed
    "config",  # URL, key or protocol cannot be used as configured
    "model",  # the endpoint does not have that model
    "not_found",  # no embedding API at that URL
    "rate_limited",  # 429
    "redirect",  # 3xx, never followed
    "refused",  # another 4xx
    "reply",  # an answer that holds no usable vector
    "server",  # 500 or an unlisted 5xx; also a worker that died on this text
    "timeout",  # the deadline passed
    "too_long",  # longer than the model's context, even when cut
    "unreachable",  # refused, reset, unresolvable, 502 to 504, no worker
    "width",  # a vector of another width than the space
]


@dataclass(frozen=True, slots=True)
class EmbeddingFailure:
    """Why one text has no vector.

    `permanent`: the same text will fail again, so do not retry it. Otherwise retry with a growing pause and
    an upper limit. `unavailable`: the embedder could not be used at all; this says nothing about the text and
    must not count as one of its attempts. `retry_after`: the pause in seconds the endpoint asked for, if any.
    """

    reason: str
    permanent: bool = False
    kind: FailureKind = "reply"
    unavailable: bool = False
    retry_after: float | None = None


class EmbeddingError(HermesPgsqlError):
    """No vector for a text. The message names what was tried and what to do; it never holds a secret."""

    def __init__(self, kind: FailureKind, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.kind: FailureKind = kind
        self.reason = reason
        self.permanent = permanent

    @property
    def failure(self) -> EmbeddingFailure:
        return EmbeddingFailure(self.reason, self.permanent, self.kind)


class EmbedderUnavailable(EmbeddingError):  # noqa: N818 (a state of things rather than a mistake)
    """The embedder cannot be used now, whatever the text: use words, and come back later.

    `retry_after` is the pause in seconds the endpoint asked for, if it did; `transient` says that the same
    call may succeed a moment later.
    """

    def __init__(
        self, kind: FailureKind, reason: str, *, transient: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(kind, reason)
        self.transient = transient
        self.retry_after = retry_after

    @property
    def failure(self) -> EmbeddingFailure:
        return EmbeddingFailure(self.reason, self.permanent, self.kind, True, self.retry_after)  # noqa: FBT003


class Embedder(Protocol):
    """Turns text into vectors of one space. Safe to share between threads and to use after a fork.

    The embedder puts the task prefixes in front of the text itself; `query_prefix` and `document_prefix` are
    there to describe the space. `dim` is None until it was configured or seen. `min_similarity` is the cosine
    under which two texts count as unrelated, or None when nobody measured it. `endpoint` describes where
    vectors come from, without credentials. Each kind of failure is logged once per embedder, so callers need
    not log.
    """

    @property
    def model(self) -> str: ...
    @property
    def dim(self) -> int | None: ...
    @property
    def query_prefix(self) -> str: ...
    @property
    def document_prefix(self) -> str: ...
    @property
    def min_similarity(self) -> float | None: ...
    @property
    def endpoint(self) -> str: ...

    def embed_documents(
        self, texts: Sequence[str], deadline_seconds: float | None = None
    ) -> list[Embedding | EmbeddingFailure]:
        """One entry per text, in order; never raises for a text or an endpoint.

        Vectors that were ready before the deadline (seconds for the whole call) are returned, the rest fail
        with kind `timeout`.
        """
        ...

    def embed_query(self, text: str, deadline_seconds: float | None = None) -> Embedding:
        """The vector of a question, or an EmbeddingError (often EmbedderUnavailable) within the deadline."""
        ...

    def close(self) -> None: ...


class Deadline:
    """A moment on the monotonic clock, `seconds` from now, that every step of one call respects."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._end - time.monotonic())


def clean_text(text: str) -> str:
    """`text` without what UTF-8 or C strings cannot carry: NUL becomes a space, a lone surrogate U+FFFD."""
    if "\0" in text:
        text = text.replace("\0", " ")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Through UTF-16, so that two halves of one character that were split become that character again.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def vector_literal(embedding: Embedding) -> str:
    """The text form pgvector reads. Six digits are more than a half-precision number keeps."""
    return "[" + ",".join(f"{number:.6g}" for number in embedding) + "]"
