"""Answers the questions of `hermes memory setup pgvector` on a terminal of its own, each with Enter.

    python wizard.py PROGRAM [ARGUMENT ...]

Prints what was on the screen, and exits with the program's exit code. An answer is given when its question is
there.
"""

from __future__ import annotations

import os
import sys

import pexpect

QUESTIONS = ("Database[^\n]*: ", "Embedding service[^\n]*: ")


def main() -> int:
    program, *arguments = sys.argv[1:]
    child = pexpect.spawn(
        program, arguments, env=dict(os.environ), encoding="utf-8", timeout=300, dimensions=(50, 160)
    )
    child.logfile_read = sys.stdout
    for question in QUESTIONS:
        child.expect(question)
        child.sendline("")
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus if child.exitstatus is not None else 1


if __name__ == "__main__":
    sys.exit(main())
