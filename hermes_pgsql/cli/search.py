"""``search``: what a theme remembers about a question."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from hermes_pgsql.cli.add import Target
from hermes_pgsql.cli.options import (
    AsJson,
    Dsn,
    Since,
    Theme,
    Until,
    not_blank,
    refuse_empty_range,
    settings_with,
)
from hermes_pgsql.cli.output import age, note, plain, say, show, show_json, table, text_cell
from hermes_pgsql.errors import ConfigError

if TYPE_CHECKING:
    from hermes_pgsql.cli.vectors import TextVector
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.results import Explained, RecalledEntry, RecalledTurn

_LARGEST_ID = 2**63 - 1


def _row_id(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise typer.BadParameter("give the id of a row, as search shows it: --explain 42") from None
    if number > _LARGEST_ID:
        raise typer.BadParameter(f"no row has an id above {_LARGEST_ID}")
    return number


def search(
    theme: Theme,
    query: Annotated[list[str], typer.Argument(metavar="QUERY", show_default=False, help="The question.")],
    scope: Annotated[
        str,
        typer.Option(callback=not_blank, help="own (or current), all (but sinks), or the name of a theme."),
    ] = "own",
    turns: Annotated[bool, typer.Option("--turns", help="Search conversations instead of entries.")] = False,
    target: Annotated[
        Target | None, typer.Option(show_default=False, help="Only entries of this memory.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 10,
    since: Since = None,
    until: Until = None,
    explain: Annotated[
        int | None,
        typer.Option(
            parser=_row_id,
            metavar="ID",
            show_default=False,
            help="Tell why the row of this id is found, or is not.",
        ),
    ] = None,
    half_life: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=36500,
            metavar="DAYS",
            show_default=False,
            help="Age in days at which a row counts half; 0: age is nothing. Default: half_life_days.",
        ),
    ] = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Search a theme's memory by meaning and by words, best first.

    The score is the cosine similarity of the meaning alone; the order is made of meaning and words, so that
    a row of a lower score may stand above.

    \b
    Examples:
      hermes-pgsql search --as ops "who gets the disk alarms?"
      hermes-pgsql search --as ops --scope all --since 30d certificate
      hermes-pgsql search --as ops --turns "what did we decide?"
      hermes-pgsql search --as ops --explain 42 "who gets the disk alarms?"
    """
    from hermes_pgsql.cli.themes import acting_theme
    from hermes_pgsql.cli.vectors import vector_of_question
    from hermes_pgsql.opening import open_memvec

    if turns and target is not None:
        raise typer.BadParameter("--target is for entries; turns (--turns) have none.")
    question = " ".join(query)
    if not question.strip():
        raise typer.BadParameter("the question is empty.")
    if scope.strip().lower() == "session":
        raise typer.BadParameter("--scope session is for agents; here use own, all or a theme.")
    refuse_empty_range(since, until)
    settings = settings_with(dsn=dsn)
    memvec = open_memvec(settings)
    acting_as = acting_theme(memvec, theme, settings)
    decay = settings.half_life if half_life is None else timedelta(days=half_life) if half_life else None
    vector = vector_of_question(question, theme, memvec, settings)
    words = question if settings.hybrid_search or vector.embedding is None else None
    if explain is not None:
        steps = memvec.explain_recall(
            theme,
            explain,
            words,
            embedding=vector.embedding,
            space=vector.space,
            kind="turn" if turns else "entry",
            scope=scope,
            target=None if target is None else str(target),
            limit=limit,
            since=since,
            until=until,
            half_life=decay,
        )
        if not steps:
            raise _no_such_row(explain, acting_as, turns)
        if as_json:
            show_json({"query": question, "id": explain, **_words_only(vector), "steps": steps})
            return
        _show_steps(steps)
        if any(step.step == "theme" and step.outcome == "removed" for step in steps):
            note("the row is of another theme than the scope; --scope all looks into every one.")
            _note_unknown(memvec, theme, scope)
        if vector.why_not:
            note(f"words only: {vector.why_not}")
        return
    rows: Sequence[RecalledEntry] | Sequence[RecalledTurn]
    if turns:
        rows = memvec.recall_conversation(
            theme,
            words,
            embedding=vector.embedding,
            space=vector.space,
            scope=scope,
            limit=limit,
            since=since,
            until=until,
            half_life=decay,
        )
    else:
        rows = memvec.recall_memory(
            theme,
            words,
            embedding=vector.embedding,
            space=vector.space,
            scope=scope,
            target=None if target is None else str(target),
            limit=limit,
            since=since,
            until=until,
            half_life=decay,
        )
    if as_json:
        show_json({"query": question, **_words_only(vector), "rows": rows})
        return
    if rows:
        _show_table(rows)
    else:
        say("Nothing found.")
        if scope.strip().lower() != "all":
            where = "this theme" if scope == "own" else f"the theme {plain(scope)}"
            note(f"looked only into {where}; --scope all looks into every one, stats lists them.")
        _note_unknown(memvec, theme, scope)
    if vector.why_not:
        note(f"words only: {vector.why_not}")


def _words_only(vector: TextVector) -> dict[str, object]:
    return {"words_only": vector.why_not is not None, "why_words_only": vector.why_not}


def _no_such_row(row: int, theme: str, turns: bool) -> ConfigError:
    return ConfigError(
        f"There is no {'turn' if turns else 'entry'} {row} that the theme {theme} may see.",
        hint="search --turns shows the ids of turns; leave --turns away if it is an entry."
        if turns
        else "search shows the ids of entries; give --turns if it is a turn.",
    )


def _note_unknown(memvec: Memvec, theme: str, scope: str) -> None:
    """Say which of the named themes nobody has, as far as stats tells this login."""
    from hermes_pgsql.errors import HermesPgsqlError

    named = [theme] if scope.strip().lower() in {"own", "current", "all", ""} else [theme, scope]
    try:
        known = {row.agent_identity for row in memvec.stats()}
        found = [memvec.canonical_identity(name) for name in named]
    except HermesPgsqlError:
        return  # it counts every row, and nothing was found anyway
    for one in dict.fromkeys(found):
        if one.kind in {"theme", "default"} and one.agent_identity not in known:
            note(f"there is no theme {plain(one.agent_identity)} yet.")


def _show_table(rows: Sequence[RecalledEntry] | Sequence[RecalledTurn]) -> None:
    from rich.text import Text

    shown = table("#", "id", "theme", "from", "score", "age", "text", numbers=("#", "id", "score", "age"))
    shown.columns[-1].ratio = 1
    for rank, row in enumerate(rows, start=1):
        others = len(row.themes) - 1
        shown.add_row(
            str(rank),
            str(row.id),
            Text(plain(row.agent_identity) + (f" (+{others})" if others > 0 else "")),
            Text(plain(_origin(row))),
            "words" if row.score is None else f"{row.score:.2f}",
            age(_moment(row)),
            text_cell(row.content),
        )
    show(shown)


def _show_steps(steps: Sequence[Explained]) -> None:
    from rich.text import Text

    shown = table("step", "outcome", "rank", "of", "score", "words", "why", numbers=("rank", "of", "score"))
    for step in steps:
        shown.add_row(
            step.step,
            step.outcome,
            "" if step.rank is None else str(step.rank),
            "" if step.candidates is None else str(step.candidates),
            "" if step.score is None else f"{step.score:.3f}",
            Text(plain(", ".join(step.terms or []))),
            Text(plain(step.detail or "")),
        )
    show(shown)


def _origin(row: RecalledEntry | RecalledTurn) -> str:
    from hermes_pgsql.results import RecalledTurn

    return row.role if isinstance(row, RecalledTurn) else row.target


def _moment(row: RecalledEntry | RecalledTurn) -> datetime:
    from hermes_pgsql.results import RecalledTurn

    return row.ts if isinstance(row, RecalledTurn) else row.updated_at
