"""hermes-memory-pgvector beside us: its environment under build/, its own database on the same server.

Nothing of it is imported here; `_peer_driver.py` runs in its environment and calls its store.
"""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from bench._report import BUILD, ROOT
from hermes_pgsql.embedded import EmbeddedServer

__all__ = ["PEER", "PEER_BEFORE", "Answer", "Peer", "environment", "peer_of"]

PEER = "1.0.0"
PEER_BEFORE = "0.5.4"
_DRIVER = Path(__file__).with_name("_peer_driver.py")


@dataclass(frozen=True)
class Answer:
    """One call: milliseconds, those with a free processor, and the rows' ids, best first."""

    milliseconds: float
    working: float
    ids: list[int]


class Peer:
    """A running driver with a database. `dsn` is the owner's, for loading data; it holds no secret."""

    def __init__(self, dsn: str, driver: subprocess.Popen[str]) -> None:
        self.dsn = dsn
        self._driver = driver

    def ask(self, **request: Any) -> Any:
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        self._driver.stdin.write(json.dumps(request) + "\n")
        self._driver.stdin.flush()
        answer = self._driver.stdout.readline()
        if not answer:
            raise SystemExit("hermes-memory-pgvector ended; its error is above")
        return json.loads(answer)

    def calls(
        self, method: str, calls: Sequence[Mapping[str, Any]], most_seconds: float = 600
    ) -> list[Answer]:
        """Call a method of its store, one after another; fewer answers when the time is over."""
        answers = self.ask(do="calls", method=method, calls=list(calls), most_seconds=most_seconds)
        return [Answer(**answer) for answer in answers]


@contextmanager
def peer_of(
    server: EmbeddedServer, version: str = PEER, dim: int = 768, *, wanted: bool = True
) -> Generator[Peer | None]:
    """A peer with an empty database, or None: not wanted, or (and a line says why) it cannot be installed."""
    folder = "bench-peer" if version == PEER else f"bench-peer-{version}"
    python = environment(folder, f"hermes-memory-pgvector=={version}") if wanted else None
    if python is None:
        yield None
        return
    dsn = _database(server, python, dim)
    driver = subprocess.Popen(
        [python, _DRIVER, dsn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=BUILD
    )
    try:
        yield Peer(dsn, driver)
    finally:
        driver.kill()
        driver.communicate()


def environment(folder: str, *packages: str, unchecked: Sequence[str] = ()) -> Path | None:
    """The Python of an environment with these packages under build/, made once; None when that fails.

    `unchecked` are installed without what they require.
    """
    where = BUILD / folder
    python, stamp = where / "bin" / "python", where / ".ready"
    wanted = "\n".join([*packages, *unchecked])
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    shutil.rmtree(where, ignore_errors=True)
    quiet: dict[str, Any] = {"check": True, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "-qq"]
    try:
        subprocess.run(["sh", ROOT / "tools" / "make_venv.sh", where], cwd=ROOT, **quiet)
        subprocess.run([*pip, *packages], **quiet)
        if unchecked:
            subprocess.run([*pip, "--no-deps", *unchecked], **quiet)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"\n({', '.join(packages)} could not be installed, and is left out: {error})", flush=True)
        return None
    stamp.write_text(wanted, encoding="utf-8")
    return python


def _database(server: EmbeddedServer, python: Path, dim: int) -> str:
    """A database with the peer's schema, on the same server; the DSN of a role that owns it.

    It names a file with the password, as those of the server do: everybody can read a command line.
    """
    name, password = f"peer_{secrets.token_hex(4)}", secrets.token_hex(16)
    with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
        role, secret = sql.Identifier(name), sql.Literal(password)
        admin.execute(sql.SQL("CREATE ROLE {} SUPERUSER LOGIN PASSWORD {}").format(role, secret))
        admin.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(role, role))
    passfile = server.root / f"{name}.pgpass"
    passfile.touch(mode=0o600)
    passfile.write_text(f"*:*:{name}:{name}:{password}\n", encoding="ascii")
    dsn = make_conninfo(server.admin_dsn, dbname=name, user=name, passfile=passfile)
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute("CREATE EXTENSION IF NOT EXISTS vector")
    command = [python, "-m", "hermes_pgvector", "migrate", "--admin-dsn", dsn]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    with psycopg.connect(dsn, autocommit=True) as owner:
        for table in ("memory_entries", "conversations"):
            width = sql.SQL("ALTER TABLE {} ALTER COLUMN embedding TYPE vector({})")
            if dim != 768:
                owner.execute(width.format(sql.Identifier(table), sql.Literal(dim)))
    return dsn
