"""Python values in a form that Postgres can take: text, JSON, vectors, numbers and moments.

Text and JSON in Postgres hold neither NUL nor half a surrogate pair, and a cosine needs finite numbers that
are not all zero. What cannot be stored is cleaned or left out here, so that no message is lost over one
character.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, cast

from pgvector import HalfVector
from psycopg.types.json import Jsonb

from hermes_pgsql.embedding.base import clean_text
from hermes_pgsql.errors import InvalidArgument

__all__ = [
    "VectorLike",
    "clean_json",
    "clean_text",
    "half_vector",
    "int4",
    "jsonb",
    "moment",
    "optional_text",
]

#: Numbers, an ``array``, a numpy array, or bytes that hold float32 in this machine's order.
VectorLike: TypeAlias = "Sequence[float] | bytes | bytearray | memoryview"

_MAX_DEPTH: Final = 100
_INT4: Final = 2**31 - 1

log = logging.getLogger(__name__)


def optional_text(text: str | None) -> str | None:
    """``text`` without what Postgres cannot hold; ``None`` stays ``None``."""
    return None if text is None else clean_text(text)


def clean_json(value: object) -> object:
    """``value`` as plain JSON, cleaned down to its keys. What JSON has no form for becomes its text.

    Raises ``InvalidArgument`` when it is nested more than 100 levels deep (or contains itself).
    """
    return _clean(value, 0)


def _clean(value: object, depth: int) -> object:
    if depth > _MAX_DEPTH:
        raise InvalidArgument("MV001", f"The value is nested more than {_MAX_DEPTH} levels deep.")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # Python writes no decimal number longer than some thousand digits, and nobody means one.
        return value if value.bit_length() <= 4096 else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {clean_text(str(key)): _clean(item, depth + 1) for key, item in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(item, depth + 1) for item in cast("Iterable[object]", value)]
    if isinstance(value, datetime):
        return value.isoformat()
    return clean_text(str(value))


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def jsonb(value: object) -> Jsonb | None:
    """``value`` for a ``jsonb`` argument; ``None`` stays ``None`` (SQL's NULL, not JSON's)."""
    return None if value is None else Jsonb(clean_json(value), _dumps)


def half_vector(embedding: VectorLike | None) -> HalfVector | None:
    """The embedding at half precision, or ``None`` for none and for one no cosine can be taken of.

    That is an empty one, one with NaN or infinity or a number beyond ±65504, and one that is all zero (also
    after rounding). Raises ``InvalidArgument`` for what is not a row of numbers.
    """
    if embedding is None:
        return None
    try:
        numbers = _numbers(embedding)
        vector = HalfVector(numbers) if numbers else None
    except OverflowError:
        vector = None
    except (TypeError, ValueError):
        raise InvalidArgument("MV001", "The embedding is not a row of numbers.") from None
    if vector is None or not _usable(vector):
        log.debug("An embedding was left out: it is empty, all zero, or not finite at half precision.")
        return None
    return vector


def _numbers(embedding: VectorLike) -> list[float]:
    if isinstance(embedding, list | tuple):
        return list(cast("Sequence[float]", embedding))
    if isinstance(embedding, str):
        raise TypeError
    try:
        view = memoryview(cast("Any", embedding))
    except TypeError:
        return list(cast("Sequence[float]", embedding))
    if view.format in {"B", "b", "c"}:
        view = view.cast("B").cast("f")
    if view.ndim != 1:
        raise ValueError
    return cast("list[float]", view.tolist())


def _usable(vector: HalfVector) -> bool:
    # The wire form: two bytes of width, two unused, then big-endian half-precision numbers.
    wire = memoryview(vector.to_binary())[4:]
    nonzero = False
    for high, low in zip(wire[::2], wire[1::2], strict=True):
        if high & 0x7C == 0x7C:  # all exponent bits: infinity or NaN
            return False
        nonzero = nonzero or bool(high & 0x7F or low)
    return nonzero


def int4(number: int) -> int:
    """The nearest number that fits SQL's ``integer``: a limit of 10^20 means "all", not an error."""
    return max(-_INT4, min(_INT4, int(number)))


def moment(when: datetime | None) -> datetime | None:
    """``when`` with a time zone: one without is local time, as everywhere in Python."""
    if when is None or when.tzinfo is not None:
        return when
    try:
        return when.astimezone()
    except (OverflowError, OSError, ValueError):
        # The first and last days a datetime can name have no local form.
        return when.replace(tzinfo=UTC)
