"""``stats``: what each theme holds, and how much of it has vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_pgsql.cli.options import AsJson, Dsn, settings_with
from hermes_pgsql.cli.output import age, plain, say, show, show_json, text_cell

if TYPE_CHECKING:
    from hermes_pgsql.results import Coverage, ThemeStats


def stats(dsn: Dsn = None, as_json: AsJson = False) -> None:
    """Show the themes, their entries and turns, and the state of the embeddings."""
    from hermes_pgsql.opening import open_memvec

    memvec = open_memvec(settings_with(dsn=dsn))
    version = memvec.schema_version()
    themes = memvec.stats()
    coverage = memvec.embedding_coverage()
    if as_json:
        show_json({"schema_version": version, "themes": themes, "embedding_coverage": coverage})
        return
    if themes:
        _show_themes(themes)
    else:
        say("There are no themes yet.")
    if coverage:
        _show_coverage(coverage)
    else:
        say("There is no embedding space yet: recall is by words.")


def _show_themes(themes: Sequence[ThemeStats]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=len(themes) > 1)
    entries, turns = sum(theme.entries for theme in themes), sum(theme.turns for theme in themes)
    table.add_column("theme", footer="all", overflow="fold")
    table.add_column("kind")
    table.add_column("entries", justify="right", footer=f"{entries:,}")
    table.add_column("with vector", justify="right")
    table.add_column("turns", justify="right", footer=f"{turns:,}")
    table.add_column("with vector", justify="right")
    table.add_column("masked", justify="right")
    table.add_column("last write", justify="right")
    for theme in themes:
        table.add_row(
            Text(plain(theme.agent_identity)),
            theme.kind,
            f"{theme.entries:,}",
            _share(theme.entries_embedded, theme.entries),
            f"{theme.turns:,}",
            _share(theme.turns_embedded, theme.turns),
            f"{theme.redacted:,}",
            age(theme.last_write),
        )
    show(table)


def _show_coverage(coverage: Sequence[Coverage]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("space", justify="right")
    table.add_column("model", overflow="fold")
    table.add_column("dim", justify="right")
    table.add_column("kind")
    for name in ("rows", "with vector", "pending", "failed", "oldest"):
        table.add_column(name, justify="right")
    table.add_column("last error", overflow="fold")
    for row in coverage:
        table.add_row(
            str(row.space_id),
            Text(plain(row.model)),
            str(row.dim),
            row.kind,
            f"{row.rows:,}",
            _share(row.embedded, row.rows),
            f"{row.pending:,}",
            f"{row.failed:,}",
            age(row.oldest_pending),
            text_cell(row.last_error or "", 80),
        )
    show(table)


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({100 * part // whole} %)" if whole else "-"
