"""Reads the reply of an embedding endpoint into vectors, and trusts nothing in it.

Servers answer out of order, leave items out, send base64 where floats were asked for, or send null, NaN and
errors with status 200. A vector is taken only when it certainly belongs to its text and can be stored.
"""

from __future__ import annotations

import base64
import binascii
import math
import sys
from array import array
from collections.abc import Sequence
from typing import cast

from .base import Embedding, EmbeddingError, EmbeddingFailure

_FLOAT32_MAX = 3.4028234663852886e38
# Outside these bounds the largest component would overflow or vanish as a half-precision number.
_HALF_SAFE = (1e-3, 6e4)


def vectors_of(reply: object, count: int, dim: int | None) -> list[Embedding | EmbeddingFailure]:
    """The vectors of `count` texts, in the order of the texts.

    A bad vector fails alone. Raises EmbeddingError of kind `reply` when it is not certain which vector
    belongs to which text, so that the caller can ask again with fewer texts. `dim` None takes the first width
    seen.
    """
    results: list[Embedding | EmbeddingFailure] = []
    for raw in _raw_vectors(reply, count):
        result = _checked(raw, dim)
        if isinstance(result, array):
            dim = len(result)
        results.append(result)
    return results


def error_text(reply: object) -> str | None:
    """The message of an error body, in any of the usual shapes, or None."""
    for key in ("error", "message", "detail", "error_msg"):
        value = _field(reply, key)
        if isinstance(value, str) and value.strip():
            return value
        nested = _field(value, "message")
        if isinstance(nested, str) and nested.strip():
            return nested
    return None


def _field(value: object, key: str) -> object:
    return cast(dict[str, object], value).get(key) if isinstance(value, dict) else None


def _raw_vectors(reply: object, count: int) -> Sequence[object]:
    """What stands in the place of each text's vector, unchecked."""
    data = _field(reply, "data")
    if isinstance(data, list):
        return _by_index(cast(list[object], data), count)
    rows = _field(reply, "embeddings")
    if isinstance(rows, list):
        return _counted(cast(list[object], rows), count)
    single = _field(reply, "embedding")
    if single is not None:
        return _counted([single], count)
    message = error_text(reply)
    raise EmbeddingError(
        "reply", f"an error with status 200: {message}" if message else "a reply without vectors"
    )


def _counted(rows: list[object], count: int) -> list[object]:
    if len(rows) != count:
        raise EmbeddingError("reply", f"{len(rows)} vectors for {count} texts")
    return rows


def _by_index(items: list[object], count: int) -> list[object]:
    _counted(items, count)
    vectors = [_field(item, "embedding") for item in items]
    indexes = [_field(item, "index") for item in items]
    if all(index is None for index in indexes):
        return vectors
    placed: dict[int, object] = {}
    for index, vector in zip(indexes, vectors, strict=True):
        if type(index) is not int:
            raise EmbeddingError("reply", f"an index that is no whole number: {index!r:.40}")
        placed[index] = vector
    if sorted(placed) != list(range(count)):
        raise EmbeddingError("reply", f"indexes {sorted(placed)[:8]} for {count} texts")
    return [placed[index] for index in range(count)]


def _checked(raw: object, dim: int | None) -> Embedding | EmbeddingFailure:
    vector = _from_base64(raw) if isinstance(raw, str) else _from_numbers(raw)
    if isinstance(vector, EmbeddingFailure):
        return vector
    if not vector:
        return EmbeddingFailure("an empty vector")
    if dim is not None and len(vector) != dim:
        return EmbeddingFailure(_width_message(dim, len(vector)), kind="width")
    if not all(map(math.isfinite, vector)):
        return EmbeddingFailure("a vector with NaN or infinite numbers")
    largest = max(map(abs, vector))
    if largest == 0:
        return EmbeddingFailure("a vector of zeros only")
    if not _HALF_SAFE[0] <= largest <= _HALF_SAFE[1]:
        # Only the direction of a vector counts, so an odd scale can be mended.
        return array("f", [number / largest for number in vector])
    return vector


def _width_message(expected: int, got: int) -> str:
    if got * 4 == expected:
        hint = "the endpoint mixes up base64 and float replies"
    else:
        hint = f"set embed_dim to {got} if that is the model you want (it is a new embedding space)"
    return f"a vector of another width (expected {expected} dims, got {got}): {hint}, or correct embed_model"


def _from_base64(text: str) -> Embedding | EmbeddingFailure:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return EmbeddingFailure("a vector that is neither numbers nor base64")
    if len(raw) % 4:
        return EmbeddingFailure(f"{len(raw)} bytes of base64, which are no float32 numbers")
    vector = array("f")
    vector.frombytes(raw)
    if sys.byteorder == "big":
        vector.byteswap()
    return vector


def _from_numbers(raw: object) -> Embedding | EmbeddingFailure:
    if not isinstance(raw, list):
        return EmbeddingFailure("a text without a vector")
    numbers = cast(list[object], raw)
    if not all(type(number) is float or type(number) is int for number in numbers):
        return EmbeddingFailure("a vector with something that is no number (null, true or text)")
    values = cast(list[float], numbers)
    # `abs` first: a whole number with hundreds of digits cannot be converted to a float at all.
    if any(abs(value) > _FLOAT32_MAX for value in values):
        return EmbeddingFailure("a vector with a number too large for float32")
    return array("f", values)
