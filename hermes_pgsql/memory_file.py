"""The host's memory files (MEMORY.md, USER.md), read the way the host's own ``memory`` tool reads them.

The tool replaces a file by renaming a new one over it, under a lock on ``<file>.lock``; so a reader always
sees a whole file, and takes the lock only in order not to read amid the tool's read-change-write.
"""

from __future__ import annotations

import fcntl
import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

__all__ = ["read_entries"]

DELIMITER: Final = "\n§\n"
LOCK_WAIT: Final = 1.0  # seconds
_LOCK_POLL: Final = 0.01

log = logging.getLogger(__name__)
_warned: set[Path] = set()


def read_entries(path: Path) -> list[str] | None:
    """The entries of a memory file in order, each stripped and once; none when there is no such file.

    None when not even its folder is there: that is a missing mount or a home that was never used, not an
    emptied memory. Raises ``OSError`` when there is a file that cannot be read.
    """
    if not path.parent.is_dir():
        return None
    with _locked(path):
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return []
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "replace")
        if path not in _warned:
            _warned.add(path)
            log.warning("%s is not UTF-8 throughout: the bytes that are not were replaced by U+FFFD.", path)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    stripped = (entry.strip() for entry in text.split(DELIMITER))
    return list(dict.fromkeys(entry for entry in stripped if entry))


@contextmanager
def _locked(path: Path) -> Generator[None]:
    """The host's lock for the block if it can be had soon; a file nobody ever wrote has none."""
    try:
        lock = path.with_name(path.name + ".lock").open("rb+")
    except OSError:
        yield
        return
    with lock:
        _lock_soon(lock)
        yield


def _lock_soon(lock: IO[bytes]) -> None:
    deadline = time.monotonic() + LOCK_WAIT
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= deadline:
                return  # somebody hangs while holding it; the rename protects us well enough
            time.sleep(_LOCK_POLL)
        else:
            return
