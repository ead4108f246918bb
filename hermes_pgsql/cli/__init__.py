"""The command ``hermes-pgsql``. One module per command; what a command needs is imported when it runs.

Exit codes: 0 done, 1 error, 2 usage, 3 partly done. Results go to standard output, what a person should know
besides to standard error; errors that can be expected are a sentence and a hint there, never a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]

DONE, ERROR, USAGE, PARTLY = 0, 1, 2, 3
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        from hermes_pgsql import __version__

        sys.stdout.write(f"hermes-pgsql {__version__}\n")
        sys.exit(DONE)
    sys.exit(_run(given))


def _run(arguments: Sequence[str]) -> int:
    from hermes_pgsql.cli.app import app
    from hermes_pgsql.cli.output import show_error
    from hermes_pgsql.errors import HermesPgsqlError

    try:
        app(args=list(arguments), prog_name="hermes-pgsql")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else ERROR
    except HermesPgsqlError as error:
        show_error(error)
        return ERROR
    except BrokenPipeError:
        # The reader of our output has gone (head, less); Python must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    return DONE
