"""Why a file or folder cannot be used, and what gives the right to: for messages only, decides nothing."""

from __future__ import annotations

import errno
import os
import shlex
from pathlib import Path

__all__ = ["READ", "WRITE", "hint", "mend", "name_of", "obstacle"]

READ, WRITE = os.R_OK, os.W_OK
_RIGHTS = {READ: "r", WRITE: "w"}
_ABOUT_RIGHTS = {errno.EACCES, errno.EPERM, errno.EROFS}


def obstacle(path: Path, right: int) -> Path | None:
    """The nearest file or folder that keeps this process from it: the path or one above; None when none does.

    What does not exist is looked for and made in the folder above.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 (links stay as they are)
    for folder in reversed(path.parents):
        if os.path.lexists(folder) and not _may(folder, os.X_OK):
            return folder
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    wanted = right | os.X_OK if path.is_dir() else right
    return None if _may(path, wanted) else path


def mend(path: Path, right: int) -> str:
    """What a person types so that this process gets the right; '' when it has it."""
    found = obstacle(path, right)
    if found is None:
        return ""
    status = found.stat()
    letters = _RIGHTS[right] + ("X" if found.is_dir() else "")
    here, me = shlex.quote(str(found)), os.geteuid()
    mine = status.st_uid == me
    has = status.st_mode & (right << 6) and (status.st_mode & 0o100 or not found.is_dir())
    if (mine and has) or me == 0:
        return f"its file system takes no changes: name another place than {here}"
    if mine:
        letters = letters.replace("X", "x")
        return f"chmod u+{letters} {here}"
    owner = name_of(status.st_uid)
    if found != Path(os.path.abspath(path)) and right == READ:  # noqa: PTH100
        return (
            f"name another home with HERMES_HOME   ({here} belongs to {owner}, who lets {name_of(me)} not in)"
        )
    return f"sudo chown -R {name_of(me)} {here}   (it belongs to {owner}), or name another place"


def hint(error: OSError, path: Path | str, right: int) -> str:
    """What to do about ``error``, which was about ``path``; '' when nobody knows."""
    place = Path(path)
    command = ""
    if error.errno in _ABOUT_RIGHTS:
        command = mend(place, right)
    elif error.errno == errno.ENOSPC:
        command = f"df {shlex.quote(str(place.parent))}   (then make room)"
    return command and f"To mend it: {command}"


def name_of(uid: int) -> str:
    """The name of a user, or the number of one without."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _may(path: Path, right: int) -> bool:
    return os.access(path, right, effective_ids=os.access in os.supports_effective_ids)
