"""The command ``hermes-pgsql``. One module per command; what a command needs is imported when it runs.

Exit codes: 0 done, 1 error, 2 usage, 3 partly done. Results go to standard output, what a person should know
besides to standard error; errors that can be expected are a sentence and a hint there, never a traceback.
With ``--json``, standard output is one JSON document also after an error that is not about usage:
``{"error": {"message": …, "detail": …, "hint": …}}``.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]

DONE, ERROR, USAGE, PARTLY = 0, 1, 2, 3
INTERRUPTED = 130


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
        from hermes_pgsql.cli.output import show_error, show_json_error

        show_error(error)
        if "--json" in arguments:
            show_json_error(error)
        return ERROR
    except BrokenPipeError:
        raise
    except OSError as error:
        if not error.filename:
            raise  # of a stream: there is nothing to be said on it any more
        from hermes_pgsql.cli.output import show_error, show_json_error
        from hermes_pgsql.rights import READ, WRITE, hint

        told = HermesPgsqlError(
            f"{error.strerror or error} ({error.filename})",
            hint=hint(error, error.filename, READ) or hint(error, error.filename, WRITE),
        )
        show_error(told)
        if "--json" in arguments:
            show_json_error(told)
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
        say_misuse("A connection string goes behind --dsn or --admin-dsn.")
        return USAGE
    if arguments[:1] == ["--json"]:
        say_misuse(
            f"--json goes behind the command: hermes-pgsql {' '.join(arguments[1:2]) or 'stats'} --json"
        )
        return USAGE
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # pyright: ignore[reportPrivateImportUsage]

        completion_init()  # a shell asks for words: let typer know the shells
    try:
        app(args=list(arguments), prog_name="hermes-pgsql")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else ERROR
    return DONE


def _has_misplaced_dsn(arguments: Sequence[str]) -> bool:
    takes_text = bool(arguments) and arguments[0] in {"add", "search"}
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
