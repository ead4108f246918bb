"""Types lines into an interactive session of the host on a terminal of its own, each when the one before is
done.

    python interactive.py HERMES HOME LINE [LINE ...]

A line is done when the screen has been quiet for a while in which the program had nothing to do either: on a
busy machine it may be silent for long because others run. A line of one character answers a menu. What was on
the screen is in HOME/screen.log.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pexpect

QUIET = 2.0  # seconds without output
LONGEST = 120.0


def settle(child: pexpect.spawn, quiet: float = QUIET) -> bool:
    """Read until nothing has come for a while, and nothing is on its way; whether the program still runs."""
    ends = time.monotonic() + LONGEST
    last = time.monotonic()
    while time.monotonic() < min(ends, last + quiet):
        try:
            child.read_nonblocking(65536, 0.2)
            last = time.monotonic()
        except pexpect.TIMEOUT:
            if is_busy(child.pid):
                last = time.monotonic()
        except pexpect.EOF:
            return False
    return True


def is_busy(pid: int) -> bool:
    """Whether one of its threads runs, waits for a processor or for the disk. Only Linux can tell."""
    for status in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            state = status.read_text().rpartition(")")[2].split()[0]
        except OSError:  # ended meanwhile
            continue
        if state in "RD":
            return True
    return False


def main() -> int:
    hermes, home, *lines = sys.argv[1:]
    environment = {
        **os.environ,
        "HERMES_HOME": home,
        "TERM": "xterm-256color",
        "COLUMNS": "160",
        "LINES": "50",
        "PROMPT_TOOLKIT_NO_CPR": "1",
    }
    child = pexpect.spawn(
        hermes, ["chat", "--cli"], env=environment, encoding="utf-8", timeout=60, dimensions=(50, 160)
    )
    log = open(os.path.join(home, "screen.log"), "w", encoding="utf-8")  # noqa: SIM115, PTH118, PTH123
    child.logfile_read = log
    alive = settle(child, 4.0)
    for line in lines:
        if not alive:
            break
        if len(line) == 1:
            child.send(line)
        else:
            # First away with what the host put into the line itself (/undo offers the old text again).
            child.send("\x15" + line)
            settle(child, 0.3)
            child.send("\r")
        alive = settle(child)
    if alive:
        child.sendcontrol("d")
        alive = settle(child)
    child.close(force=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
