"""Rows as lines of JSON: what ``hermes-pgsql export`` writes and ``import jsonl`` reads.

An export begins with a header line (``"kind": "header"``) that says which embedding spaces its vectors belong
to and whose persons it names, and ends with a line (``"kind": "end"``) that says how many rows there were, so
that one that was cut off is noticed. Every other line is one row as ``memvec.import_rows`` takes it,
optionally with ``vectors``: an object of space number to numbers. Lines of other programs need none of these.
A line that cannot be read is a fault of that line only. Several exports may stand in one file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Final, cast

from hermes_pgsql.errors import HermesPgsqlError
from hermes_pgsql.importing import Incoming
from hermes_pgsql.values import half_vector

if TYPE_CHECKING:
    from pgvector import HalfVector

__all__ = ["FORMAT", "JsonLines", "Space", "last_line", "lines_of"]

FORMAT: Final = "hermes-pgsql"
VERSION: Final = 1
LONGEST_LINE: Final = 64 * 1024 * 1024  # bytes
_CHUNK: Final = 1024 * 1024
# How files begin that are often given in place of lines of JSON, and what to do with them.
_OTHER_FILES: Final = {
    b"\xff\xfe": ("is UTF-16", "Convert it first: iconv -f UTF-16 -t UTF-8 FILE"),
    b"\xfe\xff": ("is UTF-16", "Convert it first: iconv -f UTF-16 -t UTF-8 FILE"),
    b"{\0": ("is UTF-16", "Convert it first: iconv -f UTF-16LE -t UTF-8 FILE"),
    b"\0{": ("is UTF-16", "Convert it first: iconv -f UTF-16BE -t UTF-8 FILE"),
    b"\x1f\x8b": ("is compressed", "Use: gunzip -c FILE | hermes-pgsql import jsonl -"),
    b"PGDMP": ("is a dump by pg_dump", "Restore it with pg_restore; docs/operations.md says how."),
}


def last_line(rows: int) -> str:
    """The line that ends an export of so many rows."""
    return json.dumps({"kind": "end", "rows": rows})


def lines_of(stream: IO[bytes]) -> Iterator[bytes | None]:
    """The lines of a stream; None for one that is too long to be kept in memory."""
    while line := stream.readline(LONGEST_LINE + 1):
        if len(line) <= LONGEST_LINE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(_CHUNK)
        yield None


@dataclass(frozen=True, slots=True)
class Space:
    """An embedding space as a header names it."""

    model: str
    dim: int
    query_prefix: str
    document_prefix: str
    min_similarity: float | None


@dataclass
class JsonLines:
    """Reads lines. ``space_of`` finds or makes a space of this database when a vector first needs it."""

    lines: Iterable[bytes | None]
    space_of: Callable[[Space], int]
    #: The mark of this database's persons, see ``memvec.persons_mark``.
    persons_mark: str
    #: Vectors left out, by reason.
    without_vector: Counter[str] = field(default_factory=Counter[str])
    _header: Mapping[str, object] | None = None
    _spaces: dict[str, Space] = field(default_factory=dict[str, Space])
    _ids: dict[str, int] = field(default_factory=dict[str, int])
    #: Lines since the header whose end has not come yet; None outside of an export.
    _unended: int | None = None

    def rows(self) -> Iterator[Incoming]:
        """The rows in order, each with its line number as place. Raises for a file of another kind."""
        number = 0
        for number, line in enumerate(self.lines, start=1):
            if number == 1:
                _refuse_other_files(line)
            if line is not None and not line.strip():
                continue
            place = f"line {number}"
            row, fault = _parsed(line)
            kind = None if row is None else row.get("kind")
            if row is not None and kind in ("header", "end"):
                fault = self._take_header(row) if kind == "header" else self._take_end(row)
                if fault is None:
                    continue
                row = None
            elif self._unended is not None:
                self._unended += 1
            if row is None:
                yield Incoming(place, {}, fault=fault)
                continue
            vectors = self._vectors(row.pop("vectors", None))
            persons = None if self._header is None else self._header.get("persons")
            yield Incoming(
                place,
                row,
                vectors,
                as_it_is=self._header is not None,
                stranger=row.get("person") is not None and persons != self.persons_mark,
            )

        if self._unended is not None:
            yield Incoming(f"after line {number}", {}, fault="the export has no last line: it was cut off")

    def _take_end(self, end: Mapping[str, object]) -> str | None:
        rows, self._unended = self._unended, None
        if rows is None or end.get("rows") == rows:
            return None
        return f"it ends an export of {end.get('rows')} rows, of which {rows} were there"

    def _take_header(self, header: Mapping[str, object]) -> str | None:
        version = header.get("version")
        if header.get("format") != FORMAT or not isinstance(version, int):
            return "it is the header of another format"
        if version > VERSION:
            return f"it begins an export of version {version}, which needs a newer hermes-pgsql"
        cut_off, self._unended = self._unended is not None, 0
        self._header = header
        self._spaces, self._ids = {}, {}
        spaces = header.get("spaces")
        for space in cast("list[object]", spaces) if isinstance(spaces, list) else []:
            if isinstance(space, Mapping):
                self._take_space(cast("Mapping[str, object]", space))
        return "the export before it has no last line: it was cut off" if cut_off else None

    def _take_space(self, given: Mapping[str, object]) -> None:
        model, dim, floor = given.get("model"), given.get("dim"), given.get("min_similarity")
        if isinstance(model, str) and isinstance(dim, int):
            self._spaces[str(given.get("space"))] = Space(
                model,
                dim,
                str(given.get("query_prefix") or ""),
                str(given.get("document_prefix") or ""),
                float(floor) if isinstance(floor, int | float) else None,
            )

    def _vectors(self, given: object) -> dict[int, HalfVector]:
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            self.without_vector["vectors is not an object of space number to numbers"] += 1
            return {}
        found: dict[int, HalfVector] = {}
        for number, values in cast("Mapping[str, object]", given).items():
            space = self._spaces.get(number)
            vector = _vector(values)
            if space is None:
                self.without_vector["no header says which model made the vector"] += 1
            elif vector is None or vector.dimensions() != space.dim:
                self.without_vector["the vector is not one of its space"] += 1
            else:
                if number not in self._ids:
                    self._ids[number] = self.space_of(space)
                found[self._ids[number]] = vector
        return found


def _refuse_other_files(line: bytes | None) -> None:
    for beginning, (what, hint) in _OTHER_FILES.items():
        if line is not None and line.startswith(beginning):
            raise HermesPgsqlError(f"That is no file of lines of JSON in UTF-8: it {what}.", hint=hint)


def _parsed(line: bytes | None) -> tuple[dict[str, object] | None, str | None]:
    if line is None:
        return None, f"it is longer than {LONGEST_LINE // 1024**2} MB"
    try:
        value: object = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None, "it is not UTF-8"
    except (ValueError, RecursionError):
        return None, "it is not JSON"
    if not isinstance(value, dict):
        return None, "it is not a JSON object"
    return cast("dict[str, object]", value), None


def _vector(values: object) -> HalfVector | None:
    if not isinstance(values, list):
        return None
    try:
        return half_vector(cast("list[float]", values))
    except HermesPgsqlError:
        return None
