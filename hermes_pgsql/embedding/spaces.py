"""What an operator is told whose model has no embedding space in the database: what there is, what to do.

``memvec.hello`` tells agents the same; this is for commands that know the spaces and change nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import NamedTuple

from .prefixes import prefixes_for

__all__ = ["SpaceKey", "missing_space"]

_CONFIGURE = "hermes config set memory.pgvector."


class SpaceKey(NamedTuple):
    """What makes a space: vectors are compared when all four are the same."""

    model: str
    dim: int | None
    query_prefix: str
    document_prefix: str


def missing_space(
    wanted: SpaceKey, there: Iterable[SpaceKey], *, prefixes_are_free: bool
) -> tuple[str, list[str]]:
    """A sentence without its end that says what is missing, and the commands of each way out, best first.

    ``prefixes_are_free``: whether the host's configuration can choose them, as it can for an endpoint.
    """
    spaces = list(dict.fromkeys(there))
    others = [space for space in spaces if space.model == wanted.model and wanted.dim in (None, space.dim)]
    add = add_command(wanted)
    if not others:
        listed = ", ".join(dict.fromkeys(_named(space) for space in spaces))
        return f"the database has no space for {_named(wanted)}, only for {listed or 'none'}", [add]
    shown = " or ".join(f"{space.query_prefix!r} and {space.document_prefix!r}" for space in others)
    said = (
        f"the vectors of {_named(wanted)} here were made with other task prefixes ({shown}) than this host"
        f" uses ({wanted.query_prefix!r} and {wanted.document_prefix!r})"
    )
    if not prefixes_are_free:
        return said, [add]
    use = (
        f"{_CONFIGURE}embed_query_prefix {_value(others[0].query_prefix)};"
        f" {_CONFIGURE}embed_document_prefix {_value(others[0].document_prefix)}"
    )
    return said, [use, add]


def add_command(wanted: SpaceKey) -> str:
    """The command that adds the space, with the prefixes where they are not those the model is known for."""
    prefixes = ""
    if (wanted.query_prefix, wanted.document_prefix) != prefixes_for(wanted.model):
        prefixes = (
            f" --query-prefix {_value(wanted.query_prefix)}"
            f" --document-prefix {_value(wanted.document_prefix)}"
        )
    width = "WIDTH" if wanted.dim is None else wanted.dim
    return f"hermes-pgsql model add {shlex.quote(wanted.model)} --dim {width}{prefixes}"


def _named(space: SpaceKey) -> str:
    return space.model if space.dim is None else f"{space.model} ({space.dim} dimensions)"


def _value(prefix: str) -> str:
    return shlex.quote(prefix) if prefix else "none"
