"""The server's process: started detached, watched and stopped.

Whether it lives is asked of the kernel: all its processes inherit a descriptor that holds `server.lock`.
PostgreSQL's own postmaster.pid cannot tell, for after a reboot or in a container its number may belong to
anybody.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_pgsql.embedded import account as accounts
from hermes_pgsql.embedded.files import EmbeddedError, is_locked, read_untrusted, try_lock
from hermes_pgsql.embedded.layout import PORT, socket_path

if TYPE_CHECKING:
    from hermes_pgsql.embedded.account import Account
    from hermes_pgsql.embedded.layout import Layout

START_SECONDS: Final = 60.0  # recovery after a crash is replayed within this, for max_wal_size is small


@contextlib.contextmanager
def claimed(layout: Layout) -> Generator[int | None]:
    """The server lock's descriptor, for the server to inherit; None while a server process lives."""
    claim = try_lock(layout.server_lock)
    try:
        yield claim
    finally:
        if claim is not None:
            os.close(claim)  # closed, not unlocked: the server's copy keeps the lock


def launch(layout: Layout, account: Account, bin_dir: Path, claim: int) -> None:
    """Start the server in a session of its own, holding `claim`, and return at once."""
    _clear_stale_files(layout)
    layout.start_log.unlink(missing_ok=True)
    log = os.open(layout.start_log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_APPEND, 0o600)
    server = [bin_dir / "postgres", "-D", layout.data_dir, *_fixed_settings(layout)]
    try:
        # The shell ends at once and leaves the server to init, so that it is nobody's child and never a
        # zombie. It gets the path as arguments, never as text to parse (pg_ctl would write it into a command
        # line).
        subprocess.run(
            ["/bin/sh", "-c", 'exec "$@" &', "sh", *map(str, server)],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=accounts.clean_environment(),
            umask=0o077,
            start_new_session=True,
            pass_fds=(claim,),
            user=account.uid if account.separate else None,
            group=account.gid if account.separate else None,
            extra_groups=[] if account.separate else None,
        )
    finally:
        os.close(log)


def wait_until_ready(layout: Layout) -> None:
    """Wait until the server accepts connections. Our own copy of its lock must be closed by now."""
    deadline = time.monotonic() + START_SECONDS
    while not is_ready(layout):
        if not is_locked(layout.server_lock):
            raise EmbeddedError(
                f"The embedded PostgreSQL server in {layout.root} did not start: {_last_words(layout)}",
                hint=f"The whole log is in {layout.log_dir}.",
            )
        if time.monotonic() > deadline:
            raise EmbeddedError(
                f"The embedded PostgreSQL server in {layout.root} did not accept connections within"
                f" {START_SECONDS:.0f} seconds.",
                hint=f"It may still be recovering from a crash: see {layout.log_dir}, and try again.",
            )
        time.sleep(0.01)


def stop(layout: Layout, account: Account, bin_dir: Path, seconds: float) -> None:
    """Stop the server (a fast shutdown) and wait until its last process is gone."""
    # As the server's user, so that a process number it wrote can never make root signal somebody else's
    # process.
    command = [bin_dir / "pg_ctl", "stop", "-D", layout.data_dir, "-m", "fast", "-w", "-t", str(int(seconds))]
    accounts.run(account, command, seconds=seconds + 30)
    deadline = time.monotonic() + 10
    while is_locked(layout.server_lock):
        if time.monotonic() > deadline:
            raise EmbeddedError(
                f"The embedded PostgreSQL server in {layout.root} did not stop within {seconds:.0f} seconds.",
                hint=f"See {layout.log_dir}; a process of it still has {layout.server_lock} open.",
            )
        time.sleep(0.01)


def is_ready(layout: Layout) -> bool:
    """Whether the server says that it accepts connections, and does."""
    return _says_ready(layout) and _connects(layout)


def lost_its_socket(layout: Layout) -> bool:
    """Whether the server is up but nobody can reach it, as when the socket folder was cleaned away."""
    return _says_ready(layout) and not socket_path(layout.socket_dir).exists()


def recorded_pid(layout: Layout) -> int | None:
    """The process number in postmaster.pid, which may be stale."""
    lines = _pid_file(layout)
    return int(lines[0]) if lines and lines[0].strip().isdigit() else None


def _fixed_settings(layout: Layout) -> list[str]:
    """What must hold whatever postgresql.conf or ALTER SYSTEM say: on the command line it wins over both."""
    quoted = str(layout.socket_dir).replace('"', '""')
    settings = {
        "config_file": layout.conf_dir / "postgresql.conf",
        "hba_file": layout.conf_dir / "pg_hba.conf",
        "listen_addresses": "",
        "port": PORT,
        "unix_socket_directories": f'"{quoted}"',
        "unix_socket_permissions": "0700",
        "log_directory": layout.log_dir,
    }
    return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]


def _clear_stale_files(layout: Layout) -> None:
    """Remove the files of a server that is gone: PostgreSQL would trust their process number."""
    pid = recorded_pid(layout)
    if pid is not None and _works_in(pid, layout.data_dir):
        raise EmbeddedError(
            f"A server that hermes-pgsql did not start is running on {layout.data_dir} (process {pid}).",
            hint=f"Stop it with `pg_ctl stop -D {layout.data_dir}`, and try again.",
        )
    gone = socket_path(layout.socket_dir)
    for path in (layout.data_dir / "postmaster.pid", gone, gone.with_name(gone.name + ".lock")):
        path.unlink(missing_ok=True)


def _works_in(pid: int, folder: Path) -> bool:
    import psutil  # a dependency of the wheel, and not quick to import

    try:
        return Path(psutil.Process(pid).cwd()) == folder
    except psutil.Error:
        return False


def _pid_file(layout: Layout) -> list[str]:
    return (read_untrusted(layout.data_dir / "postmaster.pid") or "").splitlines()


def _says_ready(layout: Layout) -> bool:
    lines = _pid_file(layout)
    return len(lines) >= 8 and lines[7].strip() == "ready"


def _connects(layout: Layout) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(5)
        try:
            link.connect(str(socket_path(layout.socket_dir)))
        except OSError:
            return False
    return True


def _last_words(layout: Layout) -> str:
    lines = [line.strip() for line in (read_untrusted(layout.start_log) or "").splitlines() if line.strip()]
    telling = [line for line in lines if "FATAL" in line or "PANIC" in line or "HINT" in line]
    return " ".join((telling or lines)[-3:]) or "it left no message."
