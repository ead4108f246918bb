"""What the database functions return: a frozen record per kind of row, with the names of the SQL columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from psycopg import Cursor

from hermes_pgsql.errors import NotMigrated

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Identity:
    """Which theme a session key stands for, whose rows it sees there (sinks only), and why."""

    agent_identity: str
    person_key: UUID | None
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Hello:
    """What a client learns at start. ``space_id`` is None when the database has no space for its model."""

    agent_identity: str
    kind: str
    schema_version: int
    space_id: int | None
    entries: int
    turns: int
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Agent:
    """A theme of the registry."""

    agent_identity: str
    kind: str
    first_seen: datetime
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class Written:
    """A stored row. ``outcome`` is added or duplicate; ``store_embeddings`` asks for ``content_hash``."""

    id: int
    outcome: str
    content_hash: bytes


@dataclass(frozen=True, slots=True)
class Replaced:
    """``outcome`` is replaced, merged, released, added or ambiguous; ``matches`` counts what matched."""

    id: int
    outcome: str
    matches: int
    content_hash: bytes


@dataclass(frozen=True, slots=True)
class Removed:
    """``outcome`` is removed, released, absent or ambiguous; ``id`` is None where nothing was named."""

    id: int | None
    outcome: str
    matches: int


@dataclass(frozen=True, slots=True)
class Synced:
    """How many rows a file's entries added, took away and left as they were."""

    added: int
    retired: int
    kept: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A recorded delegation. ``outcome`` is added or duplicate."""

    id: int | None
    outcome: str


@dataclass(frozen=True, slots=True)
class OpResult:
    """What became of one operation of ``apply_ops``; the last two are set when ``outcome`` is error."""

    op_id: UUID
    outcome: str
    id: int | None
    content_hash: bytes | None
    detail: Mapping[str, Any] | None
    error_code: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one row of ``import_rows``: added, duplicate or refused (then ``message`` says why).

    ``reason`` is why it went to that theme; ``embedded`` whether a vector was stored for it.
    """

    ordinal: int
    kind: str | None
    outcome: str
    agent_identity: str | None
    reason: str | None
    embedded: bool
    message: str | None


@dataclass(frozen=True, slots=True)
class Stored:
    """Vectors stored, and those not: the text changed, the row is gone, the vector was unusable."""

    stored: int
    changed: int
    gone: int
    invalid: int


@dataclass(frozen=True, slots=True)
class Pending:
    """A row leased to this worker for embedding. ``kind`` is entry or turn."""

    kind: str
    id: int
    content: str
    content_hash: bytes
    attempts: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of one kind of row has a vector in one space."""

    space_id: int
    model: str
    dim: int
    kind: str
    rows: int
    embedded: int
    pending: int
    failed: int
    oldest_pending: datetime | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class PendingCount:
    """How many rows lack a vector in a space: a worker has them, they failed before, or were given up."""

    counted_at: datetime
    pending: int
    leased: int
    failed: int
    given_up: int


@dataclass(frozen=True, slots=True)
class RowFailure:
    """A row that could not be embedded. ``given_up``: it failed too often, or always will."""

    kind: str
    id: int
    agent_identity: str
    attempts: int
    given_up: bool
    failed_at: datetime
    last_error: str


@dataclass(frozen=True, slots=True)
class SpaceTable:
    """An embedding space and its table for one kind of row.

    ``bytes`` and ``index_state`` are None for a login that may not read every theme.
    """

    space_id: int
    model: str
    dim: int
    query_prefix: str
    document_prefix: str
    min_similarity: float | None
    created_at: datetime
    kind: str
    bytes: int | None
    index_state: str | None


@dataclass(frozen=True, slots=True)
class RecalledEntry:
    """A memory entry that was found. ``score`` is the cosine similarity, None when no vector was compared."""

    id: int
    agent_identity: str
    target: str
    content: str
    created_at: datetime
    updated_at: datetime
    metadata: Mapping[str, Any]
    score: float | None
    rrf_score: float
    vector_rank: int | None
    text_rank: int | None
    themes: list[str]


@dataclass(frozen=True, slots=True)
class Explained:
    """One step of a recall as it went for one row.

    ``outcome`` of a filter is passed or removed; of a leg found, missed, removed, no vector, copy found or
    not asked. ``candidates``: how many rows the step had.
    """

    step: str
    outcome: str
    rank: int | None
    score: float | None
    candidates: int | None
    terms: list[str] | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class RecalledTurn:
    """A turn that was found. ``score`` is the cosine similarity, None when no vector was compared."""

    id: int
    agent_identity: str
    session_id: str
    role: str
    content: str
    ts: datetime
    metadata: Mapping[str, Any]
    score: float | None
    rrf_score: float
    vector_rank: int | None
    text_rank: int | None
    themes: list[str]


@dataclass(frozen=True, slots=True)
class Prefetched:
    """An entry or a turn (``kind``) that bears on the question; the fields of the other kind are None."""

    kind: str
    id: int
    agent_identity: str
    target: str | None
    session_id: str | None
    role: str | None
    content: str
    ts: datetime
    score: float | None
    rrf_score: float
    vector_rank: int | None
    text_rank: int | None


@dataclass(frozen=True, slots=True)
class Chore:
    """What housekeeping did, and to how many rows."""

    task: str
    rows: int


@dataclass(frozen=True, slots=True)
class Change:
    """What a maintenance function did to one table, or would do.

    ``action`` is deleted, emptied, moved, merged or added; ``remaining``, where it is known, how many such
    rows there are still.
    """

    table_name: str
    action: str
    rows: int
    remaining: int | None


@dataclass(frozen=True, slots=True)
class ThemeStats:
    """What one theme holds."""

    agent_identity: str
    kind: str
    entries: int
    turns: int
    entries_embedded: int
    turns_embedded: int
    redacted: int
    last_write: datetime | None


@dataclass(frozen=True, slots=True)
class TakenAway:
    """An entry as it was before replace, remove or reconcile took it away, and who brought it back since."""

    id: int
    entry_id: int
    agent_identity: str
    target: str
    action: str
    content: str
    acted_at: datetime
    acted_by: str
    created_at: datetime
    updated_at: datetime
    metadata: Mapping[str, Any]
    restored_at: datetime | None
    restored_by: str | None


@dataclass(frozen=True, slots=True)
class Restored:
    """``outcome`` is restored, present or "restored before"; ``id`` is the entry's, None in the last case."""

    id: int | None
    outcome: str
    agent_identity: str
    target: str


@dataclass(frozen=True, slots=True)
class PiiFound:
    """A place that holds what looks like personal data: phone, email, card, key, or what a pattern names.

    ``sample`` has the value masked. ``id`` is None for a theme's name. With ``pii`` None it says where to go
    on (see ``Memvec.scan_pii``).
    """

    table_name: str
    id: int | None
    agent_identity: str | None
    place: str | None
    pii: str | None
    sample: str | None
    matches: int | None


@dataclass(frozen=True, slots=True)
class Health:
    """What one check of the database found. ``state`` is ok, warning, failure or unknown."""

    area: str
    name: str
    state: str
    message: str
    fix: str | None
    value: Any


@dataclass(frozen=True, slots=True)
class Metric:
    """One measurement, named and typed (gauge, counter) as Prometheus wants them."""

    name: str
    labels: Mapping[str, str]
    value: float
    type: str
    help: str


def record_row(record: type[Record]) -> Callable[[Cursor[Any]], Callable[[Sequence[Any]], Record]]:
    """A psycopg row factory for ``record``, by column name.

    Columns that this version does not know are left out, so that an older client works with a newer
    schema; one that is missing raises ``NotMigrated``.
    """
    wanted = [item.name for item in fields(record)]  # pyright: ignore[reportArgumentType]

    def factory(cursor: Cursor[Any]) -> Callable[[Sequence[Any]], Record]:
        places = {column.name: place for place, column in enumerate(cursor.description or ())}
        missing = [name for name in wanted if name not in places]
        if missing and cursor.description:
            raise NotMigrated(
                f"The database's memvec functions are older than this package: no column {missing[0]}."
            )
        picked = [places.get(name, 0) for name in wanted]

        def make(values: Sequence[Any]) -> Record:
            return record(*(values[place] for place in picked))

        return make

    return factory
