"""``export``: the rows of a theme, or of all, as lines of JSON that ``import jsonl`` takes."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Annotated

import typer

from hermes_pgsql.cli.options import AdminDsn, AsJson, Dsn, settings_with
from hermes_pgsql.cli.output import counted, note, row_counter, say, show_json
from hermes_pgsql.errors import ConfigError
from hermes_pgsql.rights import WRITE, hint


def export(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            show_default=False,
            help="Where to; - (default) prints it. A file that is there is replaced.",
        ),
    ] = "-",
    identity: Annotated[
        str | None,
        typer.Option(
            metavar="THEME",
            show_default=False,
            help="Only this theme's rows; a chat's session key: that contact's; a sink's name: all of it.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The rows of all themes.")] = False,
    vectors: Annotated[bool, typer.Option("--vectors", help="With the vectors: some 10 kB a row.")] = False,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Write entries, turns, delegations and themes as lines of JSON (as of one moment).

    hermes-pgsql import jsonl brings them back. Settings, aliases, role bindings and history are not in it,
    nor the secret by which chat contacts are known; pg_dump moves those too.

    \b
    Examples:
      hermes-pgsql export --all memory.jsonl
      hermes-pgsql export --identity marketing --vectors marketing.jsonl
    """
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.opening import admin_dsn as find_admin_dsn

    if everything == (identity is not None):
        raise typer.BadParameter("give either --identity THEME or --all.")
    if as_json and file == "-":
        raise typer.BadParameter("--json reports about a FILE; the lines themselves are JSON already.")
    memvec = Memvec(find_admin_dsn(settings_with(dsn=dsn, admin_dsn=admin_dsn)))
    rows = 0
    with row_counter() as counter:
        lines = memvec.export_lines(identity, vectors=vectors)
        first = next(lines)  # before the file is made: a database that is not there leaves none
        with _opened(file) as output:
            output.write(f"{first}\n".encode())
            for written, line in enumerate(lines):  # the last one is none
                output.write(f"{line}\n".encode())
                rows = written
                counter(rows)
    if as_json:
        show_json({"file": file, "rows": rows, "vectors": vectors})
    elif file == "-":
        note(f"{counted(rows, 'row was', 'rows were')} exported.")
    else:
        say(f"Exported {counted(rows, 'row', 'rows')} to {file}.")


@contextmanager
def _opened(file: str) -> Generator[IO[bytes]]:
    """The file, readable by its owner only, in place once it is whole; or standard output."""
    if file == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(file)
    if path.exists() and not path.is_file():  # a pipe or a device: nothing to be moved into its place
        with path.open("wb") as output:
            yield output
        return
    part = path.with_name(f".{path.name}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            yield output
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, BrokenPipeError) or error.filename not in (None, str(part)):
            raise
        advice = hint(error, path.parent, WRITE) if path.parent.exists() else f"Run: mkdir -p {path.parent}"
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}.", hint=advice) from None
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
