"""The database functions as methods: one each, with the same names and meanings as in SQL.

A ``Memvec`` is a light handle (a DSN and this host's rules); connections come from the process's pool for
each call. Nothing is decided here: text is cleaned, vectors are packed, a function is called, its rows come
back as frozen records. ``identity`` is always the raw session key. Every method raises the errors of
``hermes_pgsql.errors`` and nothing of the driver's.

A call whose connection breaks is repeated once if doing it twice does no more than doing it once; else
``DeliveryUnknown`` says that nobody knows whether it was done.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Final, LiteralString, TypeVar, cast
from uuid import UUID

import psycopg
from pgvector import HalfVector

from hermes_pgsql import pool
from hermes_pgsql.errors import (
    DatabaseUnavailable,
    DeliveryUnknown,
    HermesPgsqlError,
    NotMigrated,
    is_connection_error,
    redact_dsn,
    translate,
)
from hermes_pgsql.results import (
    Agent,
    Change,
    Chore,
    Coverage,
    Edge,
    Explained,
    Health,
    Hello,
    Identity,
    Imported,
    Metric,
    OpResult,
    Pending,
    PendingCount,
    PiiFound,
    Prefetched,
    RecalledEntry,
    RecalledTurn,
    Removed,
    Replaced,
    Restored,
    RowFailure,
    SpaceTable,
    Stored,
    Synced,
    TakenAway,
    ThemeStats,
    Written,
    record_row,
)
from hermes_pgsql.values import VectorLike, clean_text, half_vector, int4, jsonb, moment, optional_text

__all__ = ["Memvec"]

Record = TypeVar("Record")
Json = Mapping[str, object]
Arguments = Mapping[str, object]

_CANCEL_WAIT: Final = 1.0


class Memvec:
    """Calls the functions of schema ``memvec`` in the database of ``dsn``. Safe to share between threads.

    ``governance`` are this host's own rules (``Settings.governance()``); they may only narrow the database's.
    ``timeout`` is the longest time in seconds a call may take, waiting for a connection included (up to two
    seconds more when the server does not even answer a request to stop); without one the server's own limits
    hold. Opens nothing: the first call connects.
    """

    def __init__(self, dsn: str, governance: Json | None = None, *, timeout: float | None = None) -> None:
        self._dsn: str = dsn
        self._governance: Json | None = dict(governance) if governance else None
        self._timeout: float | None = timeout

    def __repr__(self) -> str:
        return f"Memvec({redact_dsn(self._dsn)!r})"

    @property
    def dsn(self) -> str:
        """The connection string, password included: not for logs."""
        return self._dsn

    def with_timeout(self, seconds: float | None) -> Memvec:
        """A handle like this one whose calls end after ``seconds``."""
        return Memvec(self._dsn, self._governance, timeout=seconds)

    # Identity ------------------------------------------------------------

    def canonical_identity(
        self,
        raw: str | None,
        aliases: Mapping[str, str] | None = None,
        allowed: Sequence[str] | None = None,
        bench_mode: str | None = None,
    ) -> Identity:
        """Which theme a session key stands for. What is None is taken from the database's settings."""
        return self._repeatable(
            Identity,
            """
            SELECT * FROM memvec.canonical_identity(
                p_raw => %(raw)s::text, p_aliases => %(aliases)s::jsonb,
                p_allowed => %(allowed)s::text[], p_bench_mode => %(bench_mode)s::text)
            """,
            {
                "raw": optional_text(raw),
                "aliases": jsonb(aliases),
                "allowed": None if allowed is None else [clean_text(theme) for theme in allowed],
                "bench_mode": optional_text(bench_mode),
            },
        )[0]

    def hello(
        self,
        identity: str | None,
        model: str | None = None,
        dim: int | None = None,
        query_prefix: str = "",
        document_prefix: str = "",
        min_similarity: float | None = None,
    ) -> Hello:
        """All a client needs at start. Registers the theme, and the model's space if it is the first."""
        return self._repeatable(
            Hello,
            """
            SELECT * FROM memvec.hello(
                p_identity => %(identity)s::text, p_model => %(model)s::text, p_dim => %(dim)s::integer,
                p_query_prefix => %(query_prefix)s::text, p_document_prefix => %(document_prefix)s::text,
                p_min_similarity => %(min_similarity)s::real, p_governance => %(governance)s::jsonb)
            """,
            {
                "identity": optional_text(identity),
                "model": optional_text(model),
                "dim": None if dim is None else int4(dim),
                "query_prefix": clean_text(query_prefix),
                "document_prefix": clean_text(document_prefix),
                "min_similarity": min_similarity,
                "governance": jsonb(self._governance),
            },
        )[0]

    def register_agent(self, identity: str | None, attrs: Json | None = None) -> Agent:
        """Register the identity's theme, with attributes that are merged into those it has."""
        return self._repeatable(
            Agent,
            """
            SELECT * FROM memvec.register_agent(
                p_identity => %(identity)s::text, p_attrs => %(attrs)s::jsonb,
                p_governance => %(governance)s::jsonb)
            """,
            {
                "identity": optional_text(identity),
                "attrs": jsonb(attrs or {}),
                "governance": jsonb(self._governance),
            },
        )[0]

    # Write ------------------------------------------------------------

    def add_memory(
        self,
        identity: str | None,
        target: str,
        content: str,
        *,
        metadata: Json | None = None,
        source: UUID | None = None,
        embedding: VectorLike | None = None,
        space: int | None = None,
        embed: bool = True,
    ) -> Written:
        """Store an entry (``target``: memory or user). One that is there is a duplicate, not an error.

        ``source`` is the home whose file holds it, if one does; ``embed=False`` means it shall never have a
        vector. Raises ``InvalidArgument`` for blank content.
        """
        return self._repeatable(
            Written,
            """
            SELECT * FROM memvec.add_memory(
                p_identity => %(identity)s::text, p_target => %(target)s::text,
                p_content => %(content)s::text, p_metadata => %(metadata)s::jsonb,
                p_source => %(source)s::uuid, p_embedding => %(embedding)s, p_space => %(space)s::integer,
                p_embed => %(embed)s::boolean, p_governance => %(governance)s::jsonb)
            """,
            {
                "identity": optional_text(identity),
                "target": clean_text(target),
                "content": clean_text(content),
                "metadata": jsonb(metadata or {}),
                "source": source,
                "governance": jsonb(self._governance),
                "embed": embed,
                **_vector(embedding, space),
            },
        )[0]

    def replace_memory(
        self,
        identity: str | None,
        target: str,
        old_text: str | None,
        content: str,
        *,
        previous_content: str | None = None,
        metadata: Json | None = None,
        source: UUID | None = None,
        embedding: VectorLike | None = None,
        space: int | None = None,
        embed: bool = True,
    ) -> Replaced:
        """Put ``content`` in the place of the entry that ``previous_content`` or ``old_text`` names.

        When none or several match, the new text is added and nothing is taken away.
        """
        return self._once(
            Replaced,
            """
            SELECT * FROM memvec.replace_memory(
                p_identity => %(identity)s::text, p_target => %(target)s::text,
                p_old_text => %(old_text)s::text, p_content => %(content)s::text,
                p_previous_content => %(previous_content)s::text, p_metadata => %(metadata)s::jsonb,
                p_source => %(source)s::uuid, p_embedding => %(embedding)s, p_space => %(space)s::integer,
                p_embed => %(embed)s::boolean, p_governance => %(governance)s::jsonb)
            """,
            {
                "identity": optional_text(identity),
                "target": clean_text(target),
                "old_text": optional_text(old_text),
                "content": clean_text(content),
                "previous_content": optional_text(previous_content),
                "metadata": jsonb(metadata or {}),
                "source": source,
                "governance": jsonb(self._governance),
                "embed": embed,
                **_vector(embedding, space),
            },
        )[0]

    def remove_memory(
        self,
        identity: str | None,
        target: str,
        old_text: str | None,
        *,
        previous_content: str | None = None,
        source: UUID | None = None,
    ) -> Removed:
        """Remove the one entry that ``previous_content`` or ``old_text`` names; none when several match.

        With ``source`` it is only released when another home's file still holds it.
        """
        return self._once(
            Removed,
            """
            SELECT * FROM memvec.remove_memory(
                p_identity => %(identity)s::text, p_target => %(target)s::text,
                p_old_text => %(old_text)s::text, p_previous_content => %(previous_content)s::text,
                p_source => %(source)s::uuid, p_governance => %(governance)s::jsonb)
            """,
            {
                "identity": optional_text(identity),
                "target": clean_text(target),
                "old_text": optional_text(old_text),
                "previous_content": optional_text(previous_content),
                "source": source,
                "governance": jsonb(self._governance),
            },
        )[0]

    def sync_memories(
        self, identity: str | None, source: UUID, target: str, contents: Sequence[str]
    ) -> Synced:
        """Make the rows of one home's file (``source``, ``target``) equal to ``contents``."""
        return self._repeatable(
            Synced,
            """
            SELECT * FROM memvec.sync_memories(
                p_identity => %(identity)s::text, p_source => %(source)s::uuid, p_target => %(target)s::text,
                p_contents => %(contents)s::text[], p_governance => %(governance)s::jsonb)
            """,
            {
                "identity": optional_text(identity),
                "source": source,
                "target": clean_text(target),
                "contents": [clean_text(content) for content in contents],
                "governance": jsonb(self._governance),
            },
        )[0]

    def append_turn(
        self,
        identity: str | None,
        session_id: str,
        role: str,
        content: str,
        *,
        parent_session_id: str | None = None,
        ts: datetime | None = None,
        metadata: Json | None = None,
        embedding: VectorLike | None = None,
        space: int | None = None,
        embed: bool = True,
    ) -> Written:
        """Store a turn. The same words of the same role in the same session are one row.

        ``embed=False`` means it shall never have a vector. Raises ``InvalidArgument`` for blank content.
        """
        return self._repeatable(
            Written,
            """
            SELECT * FROM memvec.append_turn(
                p_identity => %(identity)s::text, p_session_id => %(session_id)s::text,
                p_role => %(role)s::text, p_content => %(content)s::text,
                p_parent_session_id => %(parent_session_id)s::text, p_ts => %(ts)s::timestamptz,
                p_metadata => %(metadata)s::jsonb, p_embedding => %(embedding)s,
                p_space => %(space)s::integer, p_embed => %(embed)s::boolean,
                p_governance => %(governance)s::jsonb)
            """,
            {
                "identity": optional_text(identity),
                "session_id": clean_text(session_id),
                "role": clean_text(role),
                "content": clean_text(content),
                "parent_session_id": optional_text(parent_session_id),
                "ts": moment(ts),
                "metadata": jsonb(metadata or {}),
                "governance": jsonb(self._governance),
                "embed": embed,
                **_vector(embedding, space),
            },
        )[0]

    def record_delegation(
        self,
        identity: str | None,
        session_id: str,
        child_session_id: str | None,
        child_identity: str | None = None,
        *,
        attrs: Json | None = None,
    ) -> Edge:
        """Record that a session of ``identity`` handed work to another session."""
        return self._repeatable(
            Edge,
            """
            SELECT * FROM memvec.record_delegation(
                p_identity => %(identity)s::text, p_session_id => %(session_id)s::text,
                p_child_session_id => %(child_session_id)s::text,
                p_child_identity => %(child_identity)s::text, p_attrs => %(attrs)s::jsonb,
                p_governance => %(governance)s::jsonb)
            """,
            {
                "identity": optional_text(identity),
                "session_id": clean_text(session_id),
                "child_session_id": optional_text(child_session_id),
                "child_identity": optional_text(child_identity),
                "attrs": jsonb(attrs or {}),
                "governance": jsonb(self._governance),
            },
        )[0]

    def apply_ops(self, ops: Sequence[Json]) -> list[OpResult]:
        """Do many operations in one round trip, each exactly once by its ``op_id``: the outbox's door.

        An operation is ``{"op_id", "op", "identity", "governance", …}`` with the other arguments of the
        function that ``op`` names. A bad one is reported in its result and does not stop the rest.
        """
        return self._repeatable(
            OpResult, "SELECT * FROM memvec.apply_ops(p_ops => %(ops)s::jsonb)", {"ops": jsonb(list(ops))}
        )

    # Embedding ------------------------------------------------------------

    def add_embedding_space(
        self,
        model: str,
        dim: int,
        query_prefix: str = "",
        document_prefix: str = "",
        min_similarity: float | None = None,
    ) -> int:
        """Register a model and its width, and return the id of its space. Administrators only."""
        return cast(
            "int",
            self._scalar_once(
                """
                SELECT memvec.add_embedding_space(
                    p_model => %(model)s::text, p_dim => %(dim)s::integer,
                    p_query_prefix => %(query_prefix)s::text, p_document_prefix => %(document_prefix)s::text,
                    p_min_similarity => %(min_similarity)s::real)
                """,
                {
                    "model": clean_text(model),
                    "dim": int4(dim),
                    "query_prefix": clean_text(query_prefix),
                    "document_prefix": clean_text(document_prefix),
                    "min_similarity": min_similarity,
                },
            ),
        )

    def drop_embedding_space(self, space: int) -> bool:
        """Drop a space with all its vectors; whether there was one. Administrators only."""
        return bool(
            self._scalar_once(
                "SELECT memvec.drop_embedding_space(p_space => %(space)s::integer)", {"space": int4(space)}
            )
        )

    def store_embeddings(
        self,
        space: int,
        kinds: Sequence[str],
        ids: Sequence[int],
        hashes: Sequence[bytes],
        embeddings: Sequence[VectorLike | None],
    ) -> Stored:
        """Store the vectors of rows named by kind (entry or turn), id and content hash, position by position.

        A vector lands only if its row still has that text. Unusable vectors (see ``values.half_vector``)
        are counted as invalid.
        """
        rows = zip(kinds, ids, hashes, map(half_vector, embeddings), strict=True)
        usable = [(kind, row, digest, vector) for kind, row, digest, vector in rows if vector is not None]
        invalid = len(ids) - len(usable)
        if not usable:
            return Stored(0, 0, 0, invalid)
        result = self._repeatable(
            Stored,
            """
            SELECT * FROM memvec.store_embeddings(
                p_space => %(space)s::integer, p_kinds => %(kinds)s::text[], p_ids => %(ids)s::bigint[],
                p_hashes => %(hashes)s::bytea[], p_embeddings => %(embeddings)b)
            """,
            {
                "space": int4(space),
                "kinds": [clean_text(kind) for kind, _, _, _ in usable],
                "ids": [row for _, row, _, _ in usable],
                "hashes": [bytes(digest) for _, _, digest, _ in usable],
                "embeddings": [vector for _, _, _, vector in usable],
            },
        )[0]
        return Stored(result.stored, result.changed, result.gone, result.invalid + invalid)

    def claim_pending(
        self,
        space: int,
        limit: int = 64,
        *,
        after: tuple[str, int] | None = None,
        failed_before: datetime | None = None,
        given_up: bool = False,
        lease_seconds: int | None = None,
    ) -> list[Pending]:
        """Lease rows without a vector in this space to the caller. Embedder role only.

        ``after`` is the kind and id of the last row before those wanted. ``failed_before``: also rows that
        failed before that moment, without the pause they are due; ``given_up``: also those that failed too
        often.
        """
        after_kind, after_id = after or (None, None)
        return self._once(
            Pending,
            """
            SELECT * FROM memvec.claim_pending(
                p_space => %(space)s::integer, p_limit => %(limit)s::integer,
                p_after_kind => %(after_kind)s::text, p_after_id => %(after_id)s::bigint,
                p_failed_before => %(failed_before)s::timestamptz, p_given_up => %(given_up)s::boolean,
                p_lease_seconds => %(lease_seconds)s::integer)
            """,
            {
                "space": int4(space),
                "limit": int4(limit),
                "after_kind": optional_text(after_kind),
                "after_id": after_id,
                "failed_before": moment(failed_before),
                "given_up": given_up,
                "lease_seconds": None if lease_seconds is None else int4(lease_seconds),
            },
        )

    def release_pending(self, space: int, kinds: Sequence[str], ids: Sequence[int]) -> int:
        """Give leased rows back untried; returns how many. Embedder role only."""
        return cast(
            "int",
            self._scalar(
                """
                SELECT memvec.release_pending(
                    p_space => %(space)s::integer, p_kinds => %(kinds)s::text[], p_ids => %(ids)s::bigint[])
                """,
                {
                    "space": int4(space),
                    "kinds": [clean_text(kind) for kind in kinds],
                    "ids": list(ids),
                },
            ),
        )

    def report_embedding_failure(
        self,
        space: int,
        kinds: Sequence[str],
        ids: Sequence[int],
        errors: Sequence[str],
        permanent: Sequence[bool] | None = None,
    ) -> int:
        """Say why leased rows have no vector; returns how many were noted. Embedder role only.

        ``permanent``: which of them would fail again, and are given up.
        """
        return cast(
            "int",
            self._scalar_once(
                """
                SELECT memvec.report_embedding_failure(
                    p_space => %(space)s::integer, p_kinds => %(kinds)s::text[], p_ids => %(ids)s::bigint[],
                    p_errors => %(errors)s::text[], p_permanent => %(permanent)s::boolean[])
                """,
                {
                    "space": int4(space),
                    "kinds": [clean_text(kind) for kind in kinds],
                    "ids": list(ids),
                    "errors": [clean_text(error) for error in errors],
                    "permanent": None if permanent is None else list(permanent),
                },
            ),
        )

    def pending_embeddings(self, space: int) -> PendingCount:
        """How many rows lack a vector in a space, at which moment of the database. Embedder role only."""
        return self._repeatable(
            PendingCount,
            "SELECT * FROM memvec.pending_embeddings(p_space => %(space)s::integer)",
            {"space": int4(space)},
        )[0]

    def embedding_failures(self, space: int, limit: int = 100) -> list[RowFailure]:
        """The rows that could not be embedded in a space, and why, the latest first. Embedder role only."""
        return self._repeatable(
            RowFailure,
            """
            SELECT * FROM memvec.embedding_failures(
                p_space => %(space)s::integer, p_limit => %(limit)s::integer)
            """,
            {"space": int4(space), "limit": int4(limit)},
        )

    def describe_spaces(self) -> list[SpaceTable]:
        """The embedding spaces, one record for each kind of row."""
        return self._repeatable(SpaceTable, "SELECT * FROM memvec.describe_spaces()", {})

    def embedding_coverage(self) -> list[Coverage]:
        """How many rows have a vector, wait for one or failed, per space and kind."""
        return self._repeatable(Coverage, "SELECT * FROM memvec.embedding_coverage()", {})

    # Recall ------------------------------------------------------------

    def recall_memory(
        self,
        identity: str | None,
        query: str | None,
        *,
        embedding: VectorLike | None = None,
        space: int | None = None,
        scope: str = "own",
        target: str | None = None,
        limit: int = 10,
        since: datetime | None = None,
        until: datetime | None = None,
        min_similarity: float | None = None,
        half_life: timedelta | None = None,
    ) -> list[RecalledEntry]:
        """The entries that bear on a question, best first. ``scope`` is own, all, or the name of a theme.

        Raises ``ScopeRefused`` for a sink or a theme the login role may not read.
        """
        return self._repeatable(
            RecalledEntry,
            """
            SELECT * FROM memvec.recall_memory(
                p_identity => %(identity)s::text, p_query => %(query)s::text, p_embedding => %(embedding)s,
                p_space => %(space)s::integer, p_scope => %(scope)s::text, p_target => %(target)s::text,
                p_limit => %(limit)s::integer, p_since => %(since)s::timestamptz,
                p_until => %(until)s::timestamptz, p_min_similarity => %(min_similarity)s::real,
                p_half_life => %(half_life)s::interval, p_governance => %(governance)s::jsonb)
            """,
            {
                "identity": optional_text(identity),
                "query": optional_text(query),
                "scope": clean_text(scope),
                "target": optional_text(target),
                "limit": int4(limit),
                "since": moment(since),
                "until": moment(until),
                "min_similarity": min_similarity,
                "half_life": half_life,
                "governance": jsonb(self._governance),
                **_vector(embedding, space),
            },
        )

    def recall_conversation(
        self,
        identity: str | None,
        query: str | None,
        *,
        embedding: VectorLike | None = None,
        space: int | None = None,
        scope: str = "own",
        limit: int = 10,
        session_id: str | None = None,
        exclude_session: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        min_similarity: float | None = None,
        half_life: timedelta | None = None,
    ) -> list[RecalledTurn]:
        """The turns that bear on a question, best first. ``scope`` may be session, with ``session_id``."""
        return self._repeatable(
            RecalledTurn,
            """
            SELECT * FROM memvec.recall_conversation(
                p_identity => %(identity)s::text, p_query => %(query)s::text, p_embedding => %(embedding)s,
                p_space => %(space)s::integer, p_scope => %(scope)s::text, p_limit => %(limit)s::integer,
                p_session_id => %(session_id)s::text, p_exclude_session => %(exclude_session)s::text,
                p_since => %(since)s::timestamptz, p_until => %(until)s::timestamptz,
                p_min_similarity => %(min_similarity)s::real, p_half_life => %(half_life)s::interval,
                p_governance => %(governance)s::jsonb)
            """,
            {
                "identity": optional_text(identity),
                "query": optional_text(query),
                "scope": clean_text(scope),
                "limit": int4(limit),
                "session_id": optional_text(session_id),
                "exclude_session": optional_text(exclude_session),
                "since": moment(since),
                "until": moment(until),
                "min_similarity": min_similarity,
                "half_life": half_life,
                "governance": jsonb(self._governance),
                **_vector(embedding, space),
            },
        )

    def prefetch(
        self,
        identity: str | None,
        query: str | None,
        *,
        embedding: VectorLike | None = None,
        space: int | None = None,
        limit: int = 5,
        min_similarity: float | None = None,
        exclude_session: str | None = None,
    ) -> list[Prefetched]:
        """What the model should know before it answers: own rows above the relevance floor."""
        return self._repeatable(
            Prefetched,
            """
            SELECT * FROM memvec.prefetch(
                p_identity => %(identity)s::text, p_query => %(query)s::text, p_embedding => %(embedding)s,
                p_space => %(space)s::integer, p_limit => %(limit)s::integer,
                p_min_similarity => %(min_similarity)s::real,
                p_exclude_session => %(exclude_session)s::text, p_governance => %(governance)s::jsonb)
            """,
            {
                "identity": optional_text(identity),
                "query": optional_text(query),
                "limit": int4(limit),
                "min_similarity": min_similarity,
                "exclude_session": optional_text(exclude_session),
                "governance": jsonb(self._governance),
                **_vector(embedding, space),
            },
        )

    def explain_recall(
        self,
        identity: str | None,
        row_id: int,
        query: str | None,
        *,
        embedding: VectorLike | None = None,
        space: int | None = None,
        kind: str = "entry",
        scope: str = "own",
        target: str | None = None,
        limit: int = 10,
        session_id: str | None = None,
        exclude_session: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        min_similarity: float | None = None,
        half_life: timedelta | None = None,
    ) -> list[Explained]:
        """Why a question finds an entry or turn, or does not: one step each for the filters and the legs.

        Empty for an id that does not exist or that the caller may not see.
        """
        return self._repeatable(
            Explained,
            """
            SELECT * FROM memvec.explain_recall(
                p_identity => %(identity)s::text, p_id => %(row_id)s::bigint, p_query => %(query)s::text,
                p_embedding => %(embedding)s, p_space => %(space)s::integer, p_kind => %(kind)s::text,
                p_scope => %(scope)s::text, p_target => %(target)s::text, p_limit => %(limit)s::integer,
                p_session_id => %(session_id)s::text, p_exclude_session => %(exclude_session)s::text,
                p_since => %(since)s::timestamptz, p_until => %(until)s::timestamptz,
                p_min_similarity => %(min_similarity)s::real, p_half_life => %(half_life)s::interval,
                p_governance => %(governance)s::jsonb)
            """,
            {
                "identity": optional_text(identity),
                "row_id": row_id,
                "query": optional_text(query),
                "kind": clean_text(kind),
                "scope": clean_text(scope),
                "target": optional_text(target),
                "limit": int4(limit),
                "session_id": optional_text(session_id),
                "exclude_session": optional_text(exclude_session),
                "since": moment(since),
                "until": moment(until),
                "min_similarity": min_similarity,
                "half_life": half_life,
                "governance": jsonb(self._governance),
                **_vector(embedding, space),
            },
        )

    # Upkeep and administration ------------------------------------------------------------

    def housekeeping(self) -> list[Chore]:
        """Do the upkeep that is due, unless somebody else is at it. Bounded, and safe to call at any time."""
        return self._repeatable(Chore, "SELECT * FROM memvec.housekeeping()", {})

    def reindex_search(self, limit: int = 1000) -> int:
        """Renew up to ``limit`` search vectors of an older version; how many are left. For administrators."""
        return cast(
            "int",
            self._scalar(
                "SELECT memvec.reindex_search(p_limit => %(limit)s::integer)", {"limit": int4(limit)}
            ),
        )

    def stats(self) -> list[ThemeStats]:
        """What each theme holds that the login role may see."""
        return self._repeatable(ThemeStats, "SELECT * FROM memvec.stats()", {})

    def history(
        self,
        identity: str | None = None,
        *,
        target: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> list[TakenAway]:
        """What was taken away from the entries, the latest first. Administrators only.

        ``identity`` narrows it to a theme, to one person of a sink (a chat's key), or to a whole sink (its
        name); ``action`` is replace, remove or reconcile; ``before`` goes on below an id.
        """
        return self._repeatable(
            TakenAway,
            """
            SELECT * FROM memvec.history(
                p_identity => %(identity)s::text, p_target => %(target)s::text, p_action => %(action)s::text,
                p_since => %(since)s::timestamptz, p_until => %(until)s::timestamptz,
                p_limit => %(limit)s::integer, p_before => %(before)s::bigint)
            """,
            {
                "identity": optional_text(identity),
                "target": optional_text(target),
                "action": optional_text(action),
                "since": moment(since),
                "until": moment(until),
                "limit": int4(limit),
                "before": before,
            },
        )

    def restore(self, history_id: int) -> Restored:
        """Bring back the entry of a row of ``history``. Administrators only."""
        return self._once(
            Restored, "SELECT * FROM memvec.restore(p_id => %(id)s::bigint)", {"id": history_id}
        )[0]

    def scan_pii(
        self,
        pattern: str | None = None,
        kinds: Sequence[str] | None = None,
        *,
        table: str | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> list[PiiFound]:
        """Where personal data or secrets seem to be stored. Administrators only.

        With ``limit`` it stops after so many rows; then the last one has ``pii`` None, and its ``table_name``
        and ``id`` are the ``table`` and ``after`` to go on with.
        """
        return self._repeatable(
            PiiFound,
            """
            SELECT * FROM memvec.scan_pii(
                p_pattern => %(pattern)s::text, p_kinds => %(kinds)s::text[], p_table => %(table)s::text,
                p_after => %(after)s::bigint, p_limit => %(limit)s::integer)
            """,
            {
                "pattern": optional_text(pattern),
                "kinds": None if kinds is None else [clean_text(kind) for kind in kinds],
                "table": optional_text(table),
                "after": after,
                "limit": None if limit is None else int4(limit),
            },
        )

    def health(self) -> list[Health]:
        """What is right and wrong with the database, seen with the caller's rights."""
        return self._repeatable(Health, "SELECT * FROM memvec.health()", {})

    def metrics(self, themes: int = 50) -> list[Metric]:
        """Measurements for monitoring; so many of the largest themes are told apart."""
        return self._repeatable(
            Metric, "SELECT * FROM memvec.metrics(p_themes => %(themes)s::integer)", {"themes": int4(themes)}
        )

    def schema_version(self) -> int:
        """The number of the newest migration. Raises ``NotMigrated`` when there is no schema."""
        return cast("int", self._scalar("SELECT memvec.schema_version()", {}))

    def set_setting(self, name: str, value: str | None) -> None:
        """Change a setting of the database. Administrators only. Raises ``BadSetting``."""
        self._scalar(
            "SELECT memvec.set_setting(p_name => %(name)s::text, p_value => %(value)s::text)",
            {"name": clean_text(name), "value": optional_text(value)},
        )

    def bind_role(self, role: str, identity: str, read_all: bool = False) -> None:  # noqa: FBT001, FBT002 (as in SQL)
        """Tie a login role to a theme: it can act as no other. Administrators only."""
        self._scalar(
            """
            SELECT memvec.bind_role(
                p_role => %(role)s::text, p_identity => %(identity)s::text,
                p_read_all => %(read_all)s::boolean)
            """,
            {"role": clean_text(role), "identity": clean_text(identity), "read_all": read_all},
        )

    def unbind_role(self, role: str, identity: str | None = None) -> int:
        """Undo ``bind_role`` for one theme, or for all; how many bindings went. Administrators only."""
        return cast(
            "int",
            self._scalar_once(
                "SELECT memvec.unbind_role(p_role => %(role)s::text, p_identity => %(identity)s::text)",
                {"role": clean_text(role), "identity": optional_text(identity)},
            ),
        )

    # Maintenance: administrators only, and dry runs unless told otherwise ----------------------------------

    def prune(
        self, days: int | None = None, *, dry_run: bool = True, limit: int | None = None
    ) -> list[Change]:
        """Delete turns older than ``days``, or than their theme's own age; entries never.

        ``limit``: so many turns at most. Raises ``Busy`` when a writer holds a theme too long.
        """
        return self._once(
            Change,
            """
            SELECT * FROM memvec.prune(
                p_days => %(days)s::integer, p_dry_run => %(dry_run)s::boolean, p_limit => %(limit)s::integer)
            """,
            {"days": _int4(days), "dry_run": dry_run, "limit": _int4(limit)},
        )

    def set_ttl(self, identity: str, days: int | None) -> None:
        """After how many days ``prune`` deletes a theme's turns: 0 never, None as it is told."""
        self._scalar(
            "SELECT memvec.set_ttl(p_identity => %(identity)s::text, p_days => %(days)s::integer)",
            {"identity": clean_text(identity), "days": _int4(days)},
        )

    def cleanup(
        self, identities: Sequence[str], *, dry_run: bool = True, limit: int | None = None
    ) -> list[Change]:
        """Delete all entries and turns of these themes. ``limit``: so many at most."""
        return self._once(
            Change,
            """
            SELECT * FROM memvec.cleanup(
                p_identities => %(identities)s::text[], p_dry_run => %(dry_run)s::boolean,
                p_limit => %(limit)s::integer)
            """,
            {
                "identities": [clean_text(identity) for identity in identities],
                "dry_run": dry_run,
                "limit": _int4(limit),
            },
        )

    def remap(
        self, old: str, new: str | None = None, *, dry_run: bool = True, force: bool = False
    ) -> list[Change]:
        """Move all of theme ``old`` to theme ``new``; the old name stays as an alias.

        ``new`` is left away for the raw key of a chat. ``force`` is needed for more than 10 duplicates, and
        when a role bound to one of two themes would see both. Raises ``InvalidArgument`` and ``Busy``.
        """
        return self._once(
            Change,
            """
            SELECT * FROM memvec.remap(
                p_old => %(old)s::text, p_new => %(new)s::text, p_dry_run => %(dry_run)s::boolean,
                p_force => %(force)s::boolean)
            """,
            {"old": clean_text(old), "new": optional_text(new), "dry_run": dry_run, "force": force},
        )

    def erase_person(
        self, session_key: str, *, dry_run: bool = True, limit: int | None = None
    ) -> list[Change]:
        """Delete everything of one person, named by their chat's session key. ``limit``: so many rows."""
        return self._once(
            Change,
            """
            SELECT * FROM memvec.erase_person(
                p_session_key => %(session_key)s::text, p_dry_run => %(dry_run)s::boolean,
                p_limit => %(limit)s::integer)
            """,
            {"session_key": clean_text(session_key), "dry_run": dry_run, "limit": _int4(limit)},
        )

    def erase_theme(self, identity: str, *, dry_run: bool = True, limit: int | None = None) -> list[Change]:
        """Delete everything of one theme, history included. ``limit``: so many rows at most."""
        return self._once(
            Change,
            """
            SELECT * FROM memvec.erase_theme(
                p_identity => %(identity)s::text, p_dry_run => %(dry_run)s::boolean,
                p_limit => %(limit)s::integer)
            """,
            {"identity": clean_text(identity), "dry_run": dry_run, "limit": _int4(limit)},
        )

    # Import and export ------------------------------------------------------------

    def begin_import(self, origin: str, *, dry_run: bool = False) -> int:
        """Note in the log that rows from ``origin`` (a word or two) will come; the id for ``import_rows``.

        Administrators only.
        """
        value = self._scalar(
            "SELECT memvec.begin_import(p_from => %(from)s::text, p_dry_run => %(dry_run)s::boolean)",
            {"from": clean_text(origin), "dry_run": dry_run},
        )
        return cast("int", value)

    def import_rows(
        self,
        rows: Sequence[Json],
        *,
        space: int | None = None,
        embeddings: Sequence[VectorLike | HalfVector | None] | None = None,
        dry_run: bool = False,
        run: int | None = None,
    ) -> list[Imported]:
        """Store rows from elsewhere, times kept, each once; what became of each. Administrators only.

        A row is ``{"kind": "entry" | "turn" | "edge" | "agent", "identity": …}`` with the fields that the SQL
        function names. ``embeddings`` are their vectors in ``space``, position by position. ``run`` is what
        ``begin_import`` returned for an import of many calls; without it this call is one of its own.
        """
        vectors = None
        if embeddings is not None and space is not None:
            vectors = [one if isinstance(one, HalfVector) else half_vector(one) for one in embeddings]
            if not any(vectors):
                vectors = None
        return self._repeatable(
            Imported,
            """
            SELECT * FROM memvec.import_rows(
                p_rows => %(rows)s::jsonb, p_space => %(space)s::integer, p_embeddings => %(embeddings)b,
                p_dry_run => %(dry_run)s::boolean, p_import => %(import)s::bigint)
            """,
            {
                "rows": jsonb(list(rows)),
                "space": None if space is None else int4(space),
                "embeddings": vectors,
                "dry_run": dry_run,
                "import": run,
            },
        )

    def persons_mark(self) -> str:
        """Which secret keys the persons of this database. Administrators only."""
        return cast("str", self._scalar("SELECT memvec.persons_mark()", {}))

    def export_lines(
        self, identity: str | None = None, *, vectors: bool = False, page: int = 500
    ) -> Generator[str]:
        """The rows of a theme (None: of all) as lines of JSON between a first and a last, all of one moment.

        Administrators only. Takes a page at a time, so it needs no more memory for many rows than for few.
        """
        from hermes_pgsql.jsonl import last_line

        with self._connected(_Deadline(self._timeout)) as conn, conn.transaction():
            conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            arguments: dict[str, object] = {
                "identity": optional_text(identity),
                "limit": int4(page),
                "vectors": vectors,
            }
            header = conn.execute(
                """
                SELECT export_header::text FROM memvec.export_header(p_identity => %(identity)s::text)
                """,
                arguments,
            )
            for (line,) in header.fetchall():
                yield line
            count = 0
            for kind in ("agent", "entry", "turn", "edge"):
                arguments |= {"kind": kind, "after": 0}
                while rows := conn.execute(
                    """
                    SELECT id, line::text FROM memvec.export_rows(
                        p_kind => %(kind)s::text, p_after => %(after)s::bigint, p_limit => %(limit)s::integer,
                        p_identity => %(identity)s::text, p_vectors => %(vectors)s::boolean)
                    """,
                    arguments,
                ).fetchall():
                    for _, line in rows:
                        yield line
                    count += len(rows)
                    arguments["after"] = rows[-1][0]
            yield last_line(count)

    # Calling ------------------------------------------------------------

    def _repeatable(self, record: type[Record], query: LiteralString, arguments: Arguments) -> list[Record]:
        """The rows of a call that may safely be done twice."""
        deadline = _Deadline(self._timeout)
        try:
            return self._rows(record, query, arguments, deadline)
        except DeliveryUnknown:
            with _dropped_again():
                return self._rows(record, query, arguments, deadline)

    def _once(self, record: type[Record], query: LiteralString, arguments: Arguments) -> list[Record]:
        """The rows of a call that is never repeated."""
        return self._rows(record, query, arguments, _Deadline(self._timeout))

    def _scalar(self, query: LiteralString, arguments: Arguments) -> object:
        deadline = _Deadline(self._timeout)
        try:
            return self._value(query, arguments, deadline)
        except DeliveryUnknown:
            with _dropped_again():
                return self._value(query, arguments, deadline)

    def _scalar_once(self, query: LiteralString, arguments: Arguments) -> object:
        return self._value(query, arguments, _Deadline(self._timeout))

    def _value(self, query: LiteralString, arguments: Arguments, deadline: _Deadline) -> object:
        with self._connected(deadline) as conn:
            row = conn.execute(query, arguments).fetchone()
            return row[0] if row else None

    def _rows(
        self, record: type[Record], query: LiteralString, arguments: Arguments, deadline: _Deadline
    ) -> list[Record]:
        with self._connected(deadline) as conn, conn.cursor(row_factory=record_row(record)) as cursor:
            return cursor.execute(query, arguments).fetchall()

    @contextmanager
    def _connected(self, deadline: _Deadline) -> Generator[psycopg.Connection[tuple[Any, ...]]]:
        """A pooled connection, with the driver's errors turned into ours and the call's time limited."""
        with pool.connection(self._dsn, deadline.wait()) as conn:
            try:
                with deadline.cancels(conn):
                    yield conn
            except psycopg.Error as error:
                raise _ours(error) from None


class _Deadline:
    """How long one call may take, in seconds from now; ``None`` is without limit."""

    def __init__(self, seconds: float | None) -> None:
        self._end: float | None = None if seconds is None else monotonic() + seconds

    def wait(self) -> float:
        """How long to wait for a connection."""
        return pool.WAIT if self._end is None else min(pool.WAIT, max(0.0, self._end - monotonic()))

    @contextmanager
    def cancels(self, conn: psycopg.Connection[Any]) -> Generator[None]:
        """Ends what ``conn`` runs in the block when the time is over: on the server, else from this side."""
        if self._end is None:
            yield
            return
        running = threading.Lock()
        ended = threading.Event()

        def cancel() -> None:
            patience = _CANCEL_WAIT
            # Under the lock, so that the connection is in nobody else's hands before the request is sent.
            with running:
                if ended.is_set():
                    return
                try:
                    conn.cancel_safe(timeout=_CANCEL_WAIT)
                except psycopg.Error:
                    patience = 0.0
            if ended.wait(patience):
                return
            with running:
                if not ended.is_set():
                    pool.hang_up(conn)

        timer = threading.Timer(max(0.0, self._end - monotonic()), cancel)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            with running:
                ended.set()
            timer.cancel()


@contextmanager
def _dropped_again() -> Generator[None]:
    """What a second broken connection means for a call that may be repeated: the database is not there."""
    try:
        yield
    except DeliveryUnknown as error:
        raise DatabaseUnavailable(
            "The database dropped the connection twice.",
            hint="Try again in a moment.",
            sqlstate=error.sqlstate,
        ) from None


def _int4(value: int | None) -> int | None:
    return None if value is None else int4(value)


def _vector(embedding: VectorLike | None, space: int | None) -> dict[str, object]:
    return {"embedding": half_vector(embedding), "space": None if space is None else int4(space)}


def _ours(error: psycopg.Error) -> HermesPgsqlError:
    if is_connection_error(error):
        return DeliveryUnknown(
            "The connection to the database broke during a call.",
            hint="It may or may not have been done: look before doing it again.",
            sqlstate=error.sqlstate,
        )
    if error.sqlstate is None and "HalfVector" in str(error):
        return NotMigrated("The database has no pgvector extension.")
    return translate(error)
