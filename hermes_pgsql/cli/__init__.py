"""The command ``hermes-pgsql``. One module per command; what a command needs is imported when it runs.

Exit codes: 0 done, 1 error, 2 usage, 3 partly done. Results go to standard output, what a person should know
besides to standard error; errors that can be expected are a sentence and a hint there, never a traceback.
With ``--json``, standard output is one JSON document also after an error, also one of usage:
``{"error": {"message": …, "detail": …, "hint": …}}``, with ``sqlstate`` if it is the database's.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_pgsql.errors import HermesPgsqlError

__all__ = ["main"]

DONE, ERROR, USAGE, PARTLY = 0, 1, 2, 3
INTERRUPTED = 130
_TAKE_TEXT = {"add", "search"}
_NO_RIGHT = "42501"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    _mend_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        from hermes_pgsql import __version__

        sys.stdout.write(f"hermes-pgsql {__version__}\n")
        sys.exit(DONE)
    sys.exit(_run(given))


def _run(arguments: Sequence[str]) -> int:
    try:
        code = _run_or_explain(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone (head, less): nobody to tell.
        _forget_output()
        return ERROR
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        sys.stderr.write(f"error: {error.strerror or error}{where}\n")
        _forget_output()
        return ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _run_or_explain(arguments: Sequence[str]) -> int:
    from hermes_pgsql.errors import HermesPgsqlError

    try:
        return _run_command(arguments)
    except HermesPgsqlError as error:
        return _explain(error, arguments)
    except BrokenPipeError:
        raise
    except OSError as error:
        if not error.filename:
            raise  # of a stream: there is nothing to be said on it any more
        from hermes_pgsql.rights import READ, WRITE, hint

        told = HermesPgsqlError(
            f"{error.strerror or error} ({error.filename})",
            hint=hint(error, error.filename, READ) or hint(error, error.filename, WRITE),
        )
        return _explain(told, arguments)


def _explain(error: HermesPgsqlError, arguments: Sequence[str]) -> int:
    from hermes_pgsql.cli.app import needs_administrator
    from hermes_pgsql.cli.output import show_error, show_json_error

    if getattr(error, "sqlstate", None) == _NO_RIGHT and needs_administrator(arguments):
        error.hint = (
            "This needs an administrator (the owner of the schema, or a member of memvec_admin): give such a"
            " login's connection string with --admin-dsn."
        )
    show_error(error)
    if _wants_json(arguments):
        show_json_error(error)
    return ERROR


def _run_command(arguments: Sequence[str]) -> int:
    import logging

    from hermes_pgsql.cli.app import app
    from hermes_pgsql.cli.completion import VARIABLE
    from hermes_pgsql.cli.output import say_misuse

    # What a library logs, the command says itself, and once.
    for name in ("hermes_pgsql", "psycopg"):
        logging.getLogger(name).addHandler(logging.NullHandler())
    if _has_misplaced_dsn(arguments):
        # Not left to the parser: it would repeat the password.
        say_misuse("A connection string goes behind --dsn or --admin-dsn.", as_json=_wants_json(arguments))
        return USAGE
    if arguments[:1] == ["--json"]:
        right = f"hermes-pgsql {' '.join(arguments[1:2]) or 'stats'} --json"
        say_misuse(f"--json goes behind the command: {right}", as_json=True)
        return USAGE
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # pyright: ignore[reportPrivateImportUsage]

        completion_init()  # a shell asks for words: let typer know the shells
    try:
        app(args=list(arguments), prog_name="hermes-pgsql")
    except SystemExit as stop:
        _complete_misuse(stop.__context__, arguments)
        return stop.code if isinstance(stop.code, int) else ERROR
    return DONE


def _complete_misuse(misuse: BaseException | None, arguments: Sequence[str]) -> None:
    """What is left to be said of an error of usage that the parser has told of; of anything else nothing."""
    say_what = getattr(misuse, "format_message", None)
    if say_what is None:
        return
    from hermes_pgsql.cli.output import note, show_json_error
    from hermes_pgsql.errors import HermesPgsqlError

    hint = ""
    if type(misuse).__name__ == "NoSuchOption" and arguments[0] in _TAKE_TEXT:
        hint = f"Text that begins with a dash goes behind two: hermes-pgsql {arguments[0]} --as THEME -- TEXT"
        note(hint)
    if _wants_json(arguments):
        context = getattr(misuse, "ctx", None)
        command = getattr(context, "command_path", "hermes-pgsql")
        show_json_error(HermesPgsqlError(say_what(), hint=hint or f"See: {command} --help"))


def _wants_json(arguments: Sequence[str]) -> bool:
    return "--json" in takewhile(lambda word: word != "--", arguments)


def _has_misplaced_dsn(arguments: Sequence[str]) -> bool:
    takes_text = bool(arguments) and arguments[0] in _TAKE_TEXT
    pairs = zip(["", *arguments], arguments, strict=False)
    return not takes_text and any(
        word.startswith(("postgresql://", "postgres://")) and not before.endswith(("dsn", "--from"))
        for before, word in pairs
    )


def _mend_streams() -> None:
    """Let the standard streams take any text: also ASCII ones, and those that the caller closed (``>&-``)."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _forget_output() -> None:
    """Throw away what could not be written, or Python would complain about it again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
