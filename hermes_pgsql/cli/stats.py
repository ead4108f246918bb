"""``stats``: what each theme holds, and how much of it has vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from hermes_pgsql.cli.options import AsJson, Dsn, settings_with
from hermes_pgsql.cli.output import age, counted, note, plain, say, share, show, show_json, table, text_cell

if TYPE_CHECKING:
    from datetime import datetime

    from hermes_pgsql.client import Memvec
    from hermes_pgsql.config import Settings
    from hermes_pgsql.results import Coverage, ThemeStats


def stats(dsn: Dsn = None, as_json: AsJson = False) -> None:
    """Show the themes, their entries and turns, and the state of the embeddings.

    \b
    Examples:
      hermes-pgsql stats
      hermes-pgsql stats --json
    """
    from hermes_pgsql.opening import open_memvec

    settings = settings_with(dsn=dsn)
    memvec = open_memvec(settings)
    version = memvec.schema_version()
    themes = memvec.stats()
    coverage = memvec.embedding_coverage()
    # Without a space every row waits; with one, what has nothing to embed has nothing pending.
    has_space = bool(coverage or memvec.describe_spaces())
    waiting = _waiting_here(_pending(coverage) if has_space else None)
    if as_json:
        shown = {"schema_version": version, "themes": themes, "embedding_coverage": coverage}
        show_json(shown | {"this_home": None if waiting is None else waiting._asdict()})
        return
    if themes:
        _show_themes(themes)
    else:
        say("There are no themes yet.")
    if coverage:
        _show_coverage(coverage)
    elif has_space:
        say("There is nothing to embed yet.")
    else:
        say("There is no embedding space yet: recall is by words.")
    _note_another_model(settings, memvec, coverage)
    if waiting is not None and waiting.vectors:
        why = "" if waiting.last_error is None else f"; {age(waiting.failed_at)} ago: {waiting.last_error}"
        rows = counted(waiting.vectors, "row", "rows")
        verb = "waits" if waiting.vectors == 1 else "wait"
        note(f"{rows} of this home's agents {verb} for a vector{why}")


class _Waiting(NamedTuple):
    """Rows whose vector the agents of this home have yet to make, and why the last attempt failed."""

    vectors: int
    last_error: str | None
    failed_at: datetime | None


def _pending(coverage: Sequence[Coverage]) -> int:
    """How many rows lack a vector in the space that lacks most."""
    pending = Counter[int]()
    for row in coverage:
        pending[row.space_id] += row.pending
    return max(pending.values(), default=0)


def _waiting_here(pending: int | None) -> _Waiting | None:
    from hermes_pgsql.config import hermes_home
    from hermes_pgsql.outbox import Outbox

    outbox = Outbox.open(hermes_home())
    if not outbox.path.exists():
        return None
    outstanding = outbox.counts().sent
    if pending is not None:
        # The home looks only in its next session whether somebody else made them; the database knows now.
        outstanding = min(outstanding, pending)
    trouble = outbox.vector_trouble() if outstanding else None
    return _Waiting(outstanding, trouble and trouble.message, trouble and trouble.at)


def _note_another_model(settings: Settings, memvec: Memvec, coverage: Sequence[Coverage]) -> None:
    """Say that what is stored has vectors, but none that this host's questions can be compared with."""
    from hermes_pgsql.embedding.spaces import SpaceKey, missing_space
    from hermes_pgsql.opening import open_embedder

    embedder = open_embedder(settings).embedder
    if embedder is None or not coverage:
        return
    spaces = memvec.describe_spaces()
    identity = (embedder.model, embedder.query_prefix, embedder.document_prefix)
    if any(
        (space.model, space.query_prefix, space.document_prefix) == identity
        and embedder.dim in (None, space.dim)
        for space in spaces
    ):
        return
    rows = max(sum(row.embedded for row in coverage if row.space_id == space.space_id) for space in spaces)
    said, (*use, add) = missing_space(
        SpaceKey(embedder.model, embedder.dim, embedder.query_prefix, embedder.document_prefix),
        [SpaceKey(s.model, s.dim, s.query_prefix, s.document_prefix) for s in spaces],
        prefixes_are_free=settings.embed_url is not None,
    )
    ways = [*use, f"{add}; hermes-pgsql backfill   (an administrator)"]
    have = counted(rows, "row has a vector", "rows have vectors")
    note(
        f"{have} that this host cannot use, and it finds by words only: {said}.\n"
        + "\nor\n".join(f"  {way}" for way in ways)
    )


def _show_themes(themes: Sequence[ThemeStats]) -> None:
    from rich.text import Text

    counted = ("entries", "with vector", "turns", "masked", "last write")
    shown = table(
        "theme",
        "kind",
        "entries",
        "with vector",
        "turns",
        "with vector",
        "masked",
        "last write",
        numbers=counted,
    )
    if len(themes) > 1:
        shown.show_footer = True
        shown.columns[0].footer = "all"
        shown.columns[2].footer = f"{sum(theme.entries for theme in themes):,}"
        shown.columns[4].footer = f"{sum(theme.turns for theme in themes):,}"
    for theme in themes:
        shown.add_row(
            Text(plain(theme.agent_identity)),
            theme.kind,
            f"{theme.entries:,}",
            share(theme.entries_embedded, theme.entries),
            f"{theme.turns:,}",
            share(theme.turns_embedded, theme.turns),
            f"{theme.redacted:,}",
            age(theme.last_write),
        )
    show(shown)


def _show_coverage(coverage: Sequence[Coverage]) -> None:
    from rich.text import Text

    counted = ("space", "dim", "rows", "with vector", "pending", "failed", "oldest")
    shown = table("space", "model", "dim", "kind", *counted[2:], "last error", numbers=counted)
    for row in coverage:
        shown.add_row(
            str(row.space_id),
            Text(plain(row.model)),
            str(row.dim),
            row.kind,
            f"{row.rows:,}",
            share(row.embedded, row.rows),
            f"{row.pending:,}",
            f"{row.failed:,}",
            age(row.oldest_pending),
            text_cell(row.last_error or "", 80),
        )
    show(shown)
