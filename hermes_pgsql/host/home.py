"""What one HERMES_HOME is to the database: the id of its files as a source, and whether the files changed.

The id is random and kept in ``<home>/hermes-pgsql/source.json``. A home that was copied gets one of its own,
because two homes under one id would take each other's entries away; one that was moved, restored or mounted
into another container keeps it.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final, cast
from uuid import UUID, uuid4

__all__ = ["MEMORY_FILES", "changed_files", "expect_change", "forget_changes", "memory_file", "source_of"]

MEMORY_FILES: Final = {"memory": "MEMORY.md", "user": "USER.md"}
FOLDER: Final = "hermes-pgsql"
_SOURCE: Final = "source.json"

log = logging.getLogger(__name__)


def memory_file(home: Path, target: str) -> Path:
    """Where the host keeps the entries of ``target`` (memory or user)."""
    return home / "memories" / MEMORY_FILES[target]


# Sources ------------------------------------------------------------

_sources: dict[Path, UUID] = {}
_lock = threading.Lock()


def source_of(home: Path) -> UUID:
    """The id under which this home's files are known. Made at the first call; kept for the process.

    A home whose folder cannot be written to gets the same id each time, made of its path and machine.
    """
    with _lock:
        known = _sources.get(home)
        if known is None:
            known = _sources[home] = _read_or_make(home)
        return known


def _read_or_make(home: Path) -> UUID:
    path = home / FOLDER / _SOURCE
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        source = _read(path, home)
        if source is not None:
            return source
        return _make(path, home)
    except OSError as error:
        from uuid import NAMESPACE_URL, uuid5

        log.warning("The id of this home cannot be kept in %s: %s.", path, error.strerror or error)
        return uuid5(NAMESPACE_URL, f"{platform.node()}:{home}")


def _read(path: Path, home: Path) -> UUID | None:
    """The kept id, or None when there is none or it belongs to the home this one was copied from."""
    try:
        raw = cast("object", json.loads(path.read_text(encoding="utf-8")))
        number = path.stat().st_ino
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(raw, dict):
        return None
    kept = cast("dict[str, object]", raw)
    try:
        source = UUID(str(kept.get("source")))
    except ValueError:
        return None
    here = {"path": str(home), "host": platform.node()}
    moved = [name for name, value in here.items() if kept.get(name) != value]
    if kept.get("inode") != number and moved:
        log.info("%s is a copy of another home: its files get an id of their own.", home)
        return None
    if kept.get("inode") != number or moved:
        with suppress(OSError):  # a folder that is read-only now keeps its id all the same
            _write(path, home, source)
    return source


def _make(path: Path, home: Path) -> UUID:
    # Two processes that start together must end with one id: the first to link its file wins.
    fresh = path.with_name(f".{_SOURCE}.{os.getpid()}")
    source = uuid4()
    existed = path.exists()
    _write(fresh, home, source)
    try:
        if existed:
            fresh.replace(path)
        else:
            with suppress(FileExistsError):
                os.link(fresh, path)
        return _read(path, home) or source
    finally:
        with suppress(OSError):
            fresh.unlink()


def _write(path: Path, home: Path, source: UUID) -> None:
    """Write the id with the marks of this place. In place, because the file's inode is one of the marks."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        text = json.dumps(
            {
                "source": str(source),
                "path": str(home),
                "host": platform.node(),
                "inode": os.fstat(descriptor).st_ino,
            }
        )
        file.write(f"{text}\n")
        file.truncate()


# Changes ------------------------------------------------------------

_Mark = tuple[int, int, int] | None
_OUTDATED: Final = (0, 0, 0)
_seen: dict[tuple[Path, str], _Mark] = {}


def changed_files(home: Path) -> list[tuple[str, bool]]:
    """The targets whose file changed (or went away) since the last call for this home; all, at the first.

    With each, whether it was looked at for the first time in this process. What is reported counts as seen.
    A home without a folder for them has no files.
    """
    changed: list[tuple[str, bool]] = []
    if not (home / "memories").is_dir():
        return changed
    for target in MEMORY_FILES:
        mark = _mark(memory_file(home, target))
        with _lock:
            first = (home, target) not in _seen
            if not first and _seen[home, target] == mark:
                continue
            _seen[home, target] = mark
        changed.append((target, first))
    return changed


def expect_change(home: Path, target: str) -> None:
    """Have ``changed_files`` report this file at its next call, whatever it has seen of it."""
    with _lock:
        _seen[home, target] = _OUTDATED


def forget_changes(home: Path) -> None:
    """Have ``changed_files`` report all files of this home again."""
    with _lock:
        for target in MEMORY_FILES:
            _seen.pop((home, target), None)


def _mark(path: Path) -> _Mark:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
