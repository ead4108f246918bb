"""``model``: the embedding spaces of the database, one for each model in use."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hermes_pgsql.cli.options import AdminDsn, AsJson, Dsn, settings_with
from hermes_pgsql.cli.output import age, counted, note, plain, say, share, show, show_json, size
from hermes_pgsql.cli.spaces import when_free
from hermes_pgsql.errors import ConfigError

if TYPE_CHECKING:
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.results import Coverage, SpaceTable

_LONGEST_NAME: Final = 44  # characters in a table

commands = typer.Typer(name="model", no_args_is_help=True, help="The embedding models in use: their spaces.")


@commands.command("add")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model.", show_default=False)],
    dim: Annotated[int, typer.Option(min=1, max=16000, show_default=False, help="Width of its vectors.")],
    query_prefix: Annotated[
        str | None,
        typer.Option(
            show_default=False,
            help="Put before questions. Default: what the model is known to need; 'none': nothing.",
        ),
    ] = None,
    document_prefix: Annotated[
        str | None,
        typer.Option(
            show_default=False,
            help="Put before stored text. Default: what the model is known to need; 'none': nothing.",
        ),
    ] = None,
    min_similarity: Annotated[
        float | None,
        typer.Option(
            min=-1,
            max=1,
            show_default=False,
            help="Cosine under which two texts are unrelated. Default: measured once there are vectors.",
        ),
    ] = None,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Add the space of a model, beside those that are there. The same again changes nothing.

    \b
    Examples:
      hermes-pgsql model add nomic-embed-text --dim 768
      hermes-pgsql model add mine --dim 1024 --query-prefix 'Q> ' --document-prefix 'D> '
    """
    from hermes_pgsql.embedding.known import BUILTIN_MODEL, known_floor
    from hermes_pgsql.embedding.prefixes import prefixes_for

    memvec = _open(admin_dsn, dsn)
    prefixes = prefixes_for(name, _prefix(query_prefix), _prefix(document_prefix))
    before = {table.space_id for table in memvec.describe_spaces()}
    floor = known_floor(name) if min_similarity is None else min_similarity
    space = when_free(lambda: memvec.add_embedding_space(name, dim, prefixes.query, prefixes.document, floor))
    added = space not in before
    if as_json:
        show_json(
            {
                "space_id": space,
                "added": added,
                "model": name,
                "dim": dim,
                "query_prefix": prefixes.query,
                "document_prefix": prefixes.document,
            }
        )
        return
    say(f"{'Added' if added else 'Already there:'} space {space}: {name}, {dim} dimensions.")
    say(f"before questions: {prefixes.query!r}, before stored text: {prefixes.document!r}")
    if dim > 4000:
        note("Vectors of more than 4,000 dimensions have no index: recall compares every row.")
    if added:
        where = "" if name == BUILTIN_MODEL else " --embed-url URL"
        note(f"Fill it with: hermes-pgsql backfill --model {shlex.quote(name)}{where}")


@commands.command("list")
def list_models(dsn: Dsn = None, as_json: AsJson = False) -> None:
    """Show the models: coverage of each table, age, size, floor and index.

    \b
    Examples:
      hermes-pgsql model list
    """
    from hermes_pgsql.opening import open_memvec

    memvec = open_memvec(settings_with(dsn=dsn))
    tables = memvec.describe_spaces()
    coverage = {(row.space_id, row.kind): row for row in memvec.embedding_coverage()}
    if as_json:
        show_json(
            [{"table": table, "coverage": coverage.get((table.space_id, table.kind))} for table in tables]
        )
        return
    if not tables:
        say("There is no embedding space yet: recall is by words.")
        return
    _show_tables(tables, coverage)


@commands.command("drop")
def drop(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model.", show_default=False)],
    dim: Annotated[
        int | None, typer.Option(show_default=False, help="Its width, when the model has several spaces.")
    ] = None,
    space: Annotated[
        int | None, typer.Option(show_default=False, help="The space's number, when that is not enough.")
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Do it. Without it, only say what goes.")
    ] = False,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Drop the space of a model and all its vectors. Texts stay.

    \b
    Examples:
      hermes-pgsql model drop nomic-embed-text
      hermes-pgsql model drop nomic-embed-text --execute
    """
    memvec = _open(admin_dsn, dsn)
    tables = memvec.describe_spaces()
    found = _the_one(tables, name, dim, space)
    coverage = memvec.embedding_coverage()
    vectors = sum(row.embedded for row in coverage if row.space_id == found.space_id)
    others = {table.space_id: table.model for table in tables if table.space_id != found.space_id}
    lacking = {
        f"{others[other]} (space {other})": sum(row.pending for row in coverage if row.space_id == other)
        for other in others
    }
    if execute:
        when_free(lambda: memvec.drop_embedding_space(found.space_id))
    if as_json:
        show_json(
            {
                "space_id": found.space_id,
                "model": found.model,
                "dim": found.dim,
                "vectors": vectors,
                "dropped": execute,
                "pending_in_others": lacking,
            }
        )
        return
    held = counted(vectors, "vector", "vectors")
    what = f"space {found.space_id}: {found.model}, {found.dim} dimensions, {held}"
    say(f"{'Dropped' if execute else 'Would drop'} {what}.")
    if not others:
        say("It is the only one: recall is by words alone until a model is added and filled.")
    for other, pending in lacking.items():
        lack = f"{counted(pending, 'row has', 'rows have')} no vector of {other}"
        say(lack + ("; backfill it first." if pending else "."))
    if not execute:
        say(
            "Hosts that still use this model then find by words only. Nothing was changed; --execute does it."
        )


def _open(admin_dsn: str | None, dsn: str | None) -> Memvec:
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.opening import maintenance_dsn

    return Memvec(maintenance_dsn(settings_with(dsn=dsn, admin_dsn=admin_dsn)))


def _prefix(given: str | None) -> str | None:
    return "" if given is not None and given.strip().casefold() in ("", "none") else given


def _the_one(tables: Sequence[SpaceTable], name: str, dim: int | None, space: int | None) -> SpaceTable:
    found = {
        table.space_id: table
        for table in tables
        if table.model == name and dim in (None, table.dim) and space in (None, table.space_id)
    }
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        models = ", ".join(sorted({table.model for table in tables})) or "none"
        raise ConfigError(
            f"There is no such embedding space of the model {name}.", hint=f"Models here: {models}."
        )
    spaces = ", ".join(f"{one.space_id} ({one.dim} dimensions)" for one in found.values())
    raise ConfigError(
        f"The model {name} has several embedding spaces: {spaces}.", hint="Tell which with --space."
    )


def _show_tables(tables: Sequence[SpaceTable], coverage: dict[tuple[int, str], Coverage]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("space", justify="right")
    # A name is copied, so it is broken only where it would leave no room for the rest.
    longest = max(len(table.model) for table in tables)
    grid.add_column("model", no_wrap=longest <= _LONGEST_NAME, overflow="fold", max_width=_LONGEST_NAME)
    grid.add_column("dim", justify="right")
    grid.add_column("kind")
    for title in ("with vector", "pending", "failed", "age", "size", "floor"):
        grid.add_column(title, justify="right")
    grid.add_column("index")
    for table in tables:
        row = coverage.get((table.space_id, table.kind))
        grid.add_row(
            str(table.space_id),
            Text(plain(table.model)),
            str(table.dim),
            table.kind,
            share(row.embedded, row.rows) if row else "-",
            f"{row.pending:,}" if row else "-",
            f"{row.failed:,}" if row else "-",
            age(table.created_at),
            size(table.bytes),
            "-" if table.min_similarity is None else f"{table.min_similarity:.2f}",
            table.index_state or "-",
        )
    show(grid)
    for space, prefixes in {table.space_id: _prefixes(table) for table in tables}.items():
        if prefixes:
            say(f"space {space}: {prefixes}")


def _prefixes(table: SpaceTable) -> str:
    if not table.query_prefix and not table.document_prefix:
        return ""
    return f"before questions {table.query_prefix!r}, before stored text {table.document_prefix!r}"
