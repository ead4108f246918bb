"""Files and folders that nobody else may read or replace, and locks that end with their process."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Generator
from pathlib import Path

from hermes_pgsql.errors import HermesPgsqlError


class EmbeddedError(HermesPgsqlError):
    """The embedded server cannot be set up, started, reached or stopped."""


def ensure_folder(path: Path, *, uid: int, gid: int, mode: int) -> None:
    """Make `path` a real folder with exactly this owner, group (-1: any) and mode.

    Errors: EmbeddedError when it exists and is a link, or belongs to somebody else.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    try:
        # Opened without following a link and then changed by descriptor: what is checked is what is changed.
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise EmbeddedError(
                f"{path} is a link or a file where a private folder is needed.",
                hint="Remove it, or set HERMES_PGSQL_EMBEDDED_DIR to another folder.",
            ) from error
        raise
    try:
        found = os.fstat(handle)
        if found.st_uid not in {uid, os.geteuid()}:
            raise EmbeddedError(
                f"{path} belongs to another user (uid {found.st_uid}), so it is not used.",
                hint="Correct its owner with chown, or set HERMES_PGSQL_EMBEDDED_DIR to another folder.",
            )
        if found.st_uid != uid or gid not in {-1, found.st_gid}:
            os.fchown(handle, uid, gid)
        if stat.S_IMODE(found.st_mode) != mode:
            os.fchmod(handle, mode)
    finally:
        os.close(handle)


def write_private(path: Path, text: str, *, gid: int = -1, mode: int = 0o600) -> None:
    """Replace `path` in one step; nobody sees half of it, or sees it with wider permissions first."""
    partial = path.with_name(path.name + ".new")
    partial.unlink(missing_ok=True)
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fchown(handle, -1, gid)
        os.fchmod(handle, mode)
        os.fsync(handle)
    partial.replace(path)
    sync_folder(path.parent)


def read_untrusted(path: Path, limit: int = 65536) -> str | None:
    """The last `limit` bytes of a file that the server's user may have tampered with; None without one."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ELOOP, errno.ENOTDIR}:
            return None
        raise
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return None
        file.seek(max(0, found.st_size - limit))
        return file.read(limit).decode("utf-8", "replace")


def sync_folder(path: Path) -> None:
    """Make renames in `path` survive a power failure."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_tree(path: Path) -> None:
    """Remove what an interrupted step left behind; what cannot be removed only costs space."""
    shutil.rmtree(path, ignore_errors=True)


def try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock on `path`, or None while somebody else has it.

    The lock ends when the last copy of the descriptor is closed, also by the death of its holders: unlike a
    process number in a file it cannot be stale, not after `kill -9`, a reboot or in another container.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError as error:
        os.close(handle)
        raise EmbeddedError(
            f"The file system of {path.parent} does not support file locks.",
            hint="Choose a folder on a local disk with HERMES_PGSQL_EMBEDDED_DIR.",
        ) from error
    return handle


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock on `path`."""
    if not path.exists():
        return False
    handle = try_lock(path)
    if handle is None:
        return True
    os.close(handle)
    return False


@contextlib.contextmanager
def held_lock(path: Path, seconds: float) -> Generator[int]:
    """Hold the lock on `path`, waiting up to `seconds` for it; yields its descriptor."""
    deadline = time.monotonic() + seconds
    while (handle := try_lock(path)) is None:
        if time.monotonic() > deadline:
            raise EmbeddedError(
                f"Another process has been busy with the embedded server in {path.parent} for"
                f" {seconds:.0f} seconds.",
                hint=f"Look for a stuck hermes-pgsql or initdb process that has {path} open, and end it.",
            )
        time.sleep(0.02)
    try:
        yield handle
    finally:
        os.close(handle)
