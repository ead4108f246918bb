"""Where the embedded server keeps its things, and who may enter which folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_pgsql.embedded.files import EmbeddedError, ensure_folder

if TYPE_CHECKING:
    from hermes_pgsql.embedded.account import Account

PORT: Final = 5432  # only part of the socket's name; no TCP port is opened
SOCKET_PATH_BYTES: Final = 100  # macOS allows 103, Linux 107


def default_root() -> Path:
    """The folder of the current operating-system user.

    Neither HOME nor XDG_DATA_HOME is asked: a shell, a cron job and a service of one user often disagree
    about them, and each would start a server, and a memory, of its own.
    """
    chosen = os.environ.get("HERMES_PGSQL_EMBEDDED_DIR", "").strip()
    if chosen:
        root = Path(chosen).expanduser()
        if not root.is_absolute():
            raise EmbeddedError(
                f"HERMES_PGSQL_EMBEDDED_DIR must be an absolute path, and is {chosen!r}.",
                hint="A relative one would mean another server in every working directory.",
            )
        return root
    if os.geteuid() == 0:
        return Path("/var/lib/hermes-pgsql")
    try:
        home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError as error:
        raise EmbeddedError(
            f"The current user (uid {os.geteuid()}) has no entry in the user database, so it has no home.",
            hint="Run as a user known to the system; PostgreSQL's initdb needs one as well.",
        ) from error
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "hermes-pgsql"
    return home / ".local" / "share" / "hermes-pgsql"


@dataclass(frozen=True)
class Layout:
    """The folders and files below `root`, an absolute path without links."""

    root: Path

    @property
    def data_dir(self) -> Path:
        return self.root / "data"

    @property
    def binaries_dir(self) -> Path:
        return self.root / "binaries"

    @property
    def conf_dir(self) -> Path:
        return self.root / "conf"

    @property
    def secrets_dir(self) -> Path:
        return self.root / "secrets"

    @property
    def log_dir(self) -> Path:
        return self.root / "log"

    @property
    def start_log(self) -> Path:
        """What the server printed before its own logging began."""
        return self.log_dir / "start.log"

    @property
    def lock_file(self) -> Path:
        """Held while somebody starts, repairs or stops the server."""
        return self.root / "lock"

    @property
    def server_lock(self) -> Path:
        """Held by the server's own processes for as long as one of them lives."""
        return self.root / "server.lock"

    @property
    def socket_dir(self) -> Path:
        """`root/run`, unless its name is too long for a socket or means something else to libpq (a comma).

        The same for every process whatever its environment: TMPDIR and XDG_RUNTIME_DIR differ between them,
        and /run/user/UID goes away at logout while the server stays.
        """
        inside = self.root / "run"
        plain = re.fullmatch(r"[\w./@+~-]+", str(inside), re.ASCII) is not None
        if plain and len(os.fsencode(socket_path(inside))) <= SOCKET_PATH_BYTES:
            return inside
        import hashlib  # seldom needed, and not quick to import

        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        # /run can be written by root alone. In /tmp the owner of the folder is checked before it is used, and
        # the DSNs ask libpq to check who answers (requirepeer).
        if os.geteuid() == 0 and Path("/run").is_dir():
            return Path("/run") / f"hermes-pgsql-{name}"
        return Path("/tmp") / f"hermes-pgsql-{os.geteuid()}-{name}"  # noqa: S108

    def create_folders(self, account: Account) -> None:
        """Make the folders below `root`, each with the least that its users need.

        When the server runs as another user (we are root), it may pass through `root`, read `conf`, write
        `data` and `log`, and put its socket into `run`, which root owns. Nobody else gets past `root`.
        """
        us = os.geteuid()
        theirs = account.gid if account.separate else -1
        ensure_folder(self.secrets_dir, uid=us, gid=-1, mode=0o700)
        ensure_folder(self.conf_dir, uid=us, gid=theirs, mode=0o750 if account.separate else 0o700)
        ensure_folder(self.binaries_dir, uid=us, gid=-1, mode=0o755 if account.separate else 0o700)
        ensure_folder(self.socket_dir, uid=us, gid=theirs, mode=0o770 if account.separate else 0o700)
        ensure_folder(self.log_dir, uid=account.uid, gid=theirs, mode=0o700)
        self._close_again(account)

    def _close_again(self, account: Account) -> None:
        """Take back permissions that a chmod -R or a restored backup gave: with them nothing here works.

        PostgreSQL refuses a data folder that others can open, and libpq a password file that they can read.
        """
        if self.data_dir.is_dir() and not self.data_dir.is_symlink():
            ensure_folder(self.data_dir, uid=account.uid, gid=-1, mode=0o700)
        for password in self.secrets_dir.glob("*.pgpass"):
            if stat.S_IMODE(password.lstat().st_mode) != 0o600 and not password.is_symlink():
                password.chmod(0o600)

    def remove_outside_folder(self) -> None:
        """Remove the socket folder when it is not below `root`, where nobody would look for it."""
        if not self.socket_dir.is_relative_to(self.root):
            with contextlib.suppress(OSError):
                self.socket_dir.rmdir()

    def create_root(self, account: Account) -> None:
        """Make `root`, and mark it as ours with the lock file, so that what is interrupted can be taken up.

        Errors: EmbeddedError when it holds other things or belongs to somebody else.
        """
        missing = [parent for parent in self.root.parents if not parent.exists()]
        for parent in reversed(missing):
            parent.mkdir(mode=0o755 if account.separate else 0o700, exist_ok=True)
        mode = 0o710 if account.separate else 0o700
        if self.root.exists():
            self._refuse_foreign_root()
            if not account.separate:
                # The user's own folder may stay as readable as it is, for what is inside is not.
                mode = stat.S_IMODE(self.root.stat().st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH)
        ensure_folder(self.root, uid=os.geteuid(), gid=account.gid if account.separate else -1, mode=mode)
        self.lock_file.touch(mode=0o600)

    def _refuse_foreign_root(self) -> None:
        """Change nothing in a folder that is neither empty nor ours: it might be /var/lib itself."""
        names = {path.name for path in self.root.iterdir()} - {"lost+found"}
        if names and self.lock_file.name not in names:
            raise EmbeddedError(
                f"{self.root} holds other things, so the embedded server is not put there.",
                hint="Set HERMES_PGSQL_EMBEDDED_DIR to a folder that is empty or does not exist yet.",
            )


def socket_path(folder: Path) -> Path:
    """The server's socket in `folder`."""
    return folder / f".s.PGSQL.{PORT}"
