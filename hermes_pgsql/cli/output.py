"""What commands print: tables for people, JSON for programs, notes and errors on standard error."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TextIO, cast
from uuid import UUID

from hermes_pgsql.errors import HermesPgsqlError, redact_dsn

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Task
    from rich.table import Table
    from rich.text import Text

WIDTH_OF_FILES: Final = 120
# Stored text is other people's: control characters could move the cursor or rewrite what is on the screen.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """``text`` without control characters and direction overrides, fit for a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def console(stream: TextIO) -> Console:
    """A console that colours only on terminals, and is wide enough to be read where there is none."""
    from rich.console import Console

    width = None if stream.isatty() or os.environ.get("COLUMNS") else WIDTH_OF_FILES
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def show(renderable: RenderableType) -> None:
    """Print a table."""
    console(sys.stdout).print(renderable)


def table(*columns: str, numbers: Collection[str] = (), whole: Collection[str] = ()) -> Table:
    """An empty table as all commands show them. ``numbers`` are right-aligned, ``whole`` never broken."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        made.add_column(
            name,
            justify="right" if name in numbers else "left",
            no_wrap=name in whole or name in numbers,
            overflow="fold",
        )
    return made


def say(text: str) -> None:
    """Print a line, unbroken, so that it can be copied."""
    sys.stdout.write(f"{plain(text)}\n")


def show_json(value: object) -> None:
    """Print a result for programs: one JSON document, text as UTF-8 where the terminal can."""
    text = json.dumps(value, default=_as_json, ensure_ascii=False, indent=2)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, default=_as_json, indent=2)
    sys.stdout.write(f"{text}\n")


def note(text: str) -> None:
    """Print something a person should know besides the result."""
    _complain(text, "note: ")


def warn(text: str) -> None:
    _complain(text, "warning: ")


def show_error(error: HermesPgsqlError) -> None:
    """Print what went wrong and what to do next."""
    _complain(error.message, "error: ")
    if error.detail and error.detail != error.message:
        _complain(error.detail, "  ")
    if error.hint:
        _complain(error.hint, "  ")


def show_json_error(error: HermesPgsqlError) -> None:
    """Print the same for programs."""
    parts = {"message": error.message, "detail": error.detail, "hint": error.hint}
    sqlstate = getattr(error, "sqlstate", None)
    if sqlstate is not None:
        parts["sqlstate"] = sqlstate
    show_json({"error": {name: redact_dsn(text) for name, text in parts.items()}})


def say_misuse(text: str, *, as_json: bool) -> None:
    """Print what is wrong with the command line."""
    error = HermesPgsqlError(text)
    show_error(error)
    if as_json:
        show_json_error(error)


def _complain(text: str, prefix: str) -> None:
    sys.stderr.write(f"{prefix}{plain(redact_dsn(text))}\n")


@contextmanager
def progress_bar() -> Generator[Callable[[str, float], None]]:
    """A function that shows how far a named piece of work is, from 0 to 1, if there is a terminal."""
    from rich.progress import Progress, TaskID

    tasks: dict[str, TaskID] = {}
    with Progress(console=console(sys.stderr), transient=True, disable=not sys.stderr.isatty()) as progress:

        def move(name: str, share: float) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=1.0)
            progress.update(tasks[name], completed=share)

        yield move


@contextmanager
def working(on: str) -> Generator[None]:
    """Show on a terminal that something is being done whose length nobody knows."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.text import Text

    with console(sys.stderr).status(Text(f"{on} …")):
        yield


@contextmanager
def row_counter() -> Generator[Callable[[int], None]]:
    """A function that shows how many rows are done, of nobody knows how many, if there is a terminal."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,} rows"), TimeElapsedColumn())
    with Progress(
        *columns, console=console(sys.stderr), transient=True, disable=not sys.stderr.isatty()
    ) as progress:
        task = progress.add_task("rows", total=None)
        yield lambda rows: progress.update(task, completed=rows)


@contextmanager
def row_progress(what: str) -> Generator[Callable[[int, int], None]]:
    """A function that shows how many rows are done of how many, how fast and for how long yet."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.0f} rows/s" if task.speed else "")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate())
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console(sys.stderr),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task(what, total=None)

        def move(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield move


def size(count: int | None) -> str:
    """A number of bytes in one unit: 12 kB, 3.4 MB."""
    if count is None:
        return "-"
    number = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if number >= 10 or unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TB"


def counted(number: int, one: str, many: str) -> str:
    """A count with its words: 1 row has, 2,000 rows have."""
    return f"{number:,} {one if number == 1 else many}"


def share(part: int, whole: int) -> str:
    """A count and its percentage."""
    return f"{part:,} ({100 * part // whole} %)" if whole else "-"


def text_cell(text: str, limit: int = 300) -> Text:
    """A cell with stored text: on one line, cut at ``limit`` characters, never read as markup."""
    from rich.text import Text

    line = " ".join(plain(text).split())
    return Text(line if len(line) <= limit else f"{line[: limit - 1]}…")


def age(moment: datetime | None) -> str:
    """How long ago, in one unit: 5 min, 3 h, 12 d."""
    if moment is None:
        return "-"
    seconds = max(0.0, (datetime.now(UTC) - moment).total_seconds())
    for unit, size in (("y", 365.25 * 86400), ("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def _as_json(value: Any) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))
    return str(value)
