"""Making and dropping embedding spaces while others use the database."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import Final, TypeVar

from hermes_pgsql.errors import DatabaseFailure

_PATIENCE: Final = 60.0  # seconds, for those who are at the tables
_GAVE_WAY: Final = {"55P03", "40P01"}

Result = TypeVar("Result")


def when_free(call: Callable[[], Result]) -> Result:
    """The call, when nobody is at the tables for a moment; those who recall or write are not kept waiting."""
    ends = monotonic() + _PATIENCE
    while True:
        try:
            return call()
        except DatabaseFailure as error:
            if error.sqlstate not in _GAVE_WAY or monotonic() > ends:
                raise
        sleep(0.2)
