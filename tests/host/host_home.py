"""A home of the real host in which to run it, and to look at what it left in the database."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from model_server import ModelServer

HERE = Path(__file__).resolve().parent
# Sends what is in the outbox of a home. A flush ends early at a sign of an outage.
DELIVER = """
import sys, time
from pathlib import Path
from hermes_pgsql.link import Link
link, ends = Link.of(Path(sys.argv[1])), time.monotonic() + 120
while not link.flush(10) and time.monotonic() < ends:
    pass
"""


@dataclass
class Home:
    """A HERMES_HOME with the provider installed and set up."""

    path: Path
    bin: Path
    dsn: str
    admin_dsn: str
    model: ModelServer
    serving: bool = field(default=False, init=False)  # a process of its own sends what is written

    def configure(self, text: str = "", settings: Mapping[str, Any] | None = None) -> None:
        """Write config.yaml; `settings` are the provider's, `text` is more YAML of the host's."""
        mine = {
            "dsn": self.dsn,
            "embed_url": self.model.url.removesuffix("/v1"),
            "embed_model": "words",
            # All that the host waits for: on a busy machine nothing is quick.
            "prefetch_budget": 7,
            **(settings or {}),
        }
        model = {
            "provider": "custom",
            "base_url": self.model.url,
            "api_key": "sk-none",
            "default": "scripted",
        }
        (self.path / "config.yaml").write_text(
            f"model: {json.dumps(model)}\n"
            f"memory:\n  provider: pgvector\n  pgvector: {json.dumps(mine)}\n{text}",
            encoding="utf-8",
        )

    def environment(self, **more: str) -> dict[str, str]:
        # The host's tools must not find the tests' own environment, nor what it is set to.
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR", "USER") if name in os.environ}
        return {
            **kept,
            "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
            "HERMES_HOME": str(self.path),
            "PYTHONUNBUFFERED": "1",
            **more,
        }

    def run(self, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """A program of the host's environment, such as `hermes -z "…"`; fails the test when it fails."""
        done = subprocess.run(
            [str(self.bin / arguments[0]), *arguments[1:]],
            env=self.environment(),
            cwd=self.path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done

    def ask(self, prompt: str) -> str:
        """One turn without a terminal; what was printed."""
        return self.run("hermes", "-z", prompt).stdout

    def chat(self, prompt: str, *options: str) -> str:
        return self.run("hermes", "chat", *options, "-Q", "-q", prompt).stdout

    def interactive(self, *lines: str) -> None:
        self.run("python", str(HERE / "interactive.py"), str(self.bin / "hermes"), str(self.path), *lines)

    def note(self, name: str = "MEMORY.md") -> str:
        path = self.path / "memories" / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    # The database ------------------------------------------------------------

    def query(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.admin_dsn) as connection:
            return connection.execute(statement, parameters).fetchall()

    def deliver(self) -> None:
        """Send what the last process left in the outbox: it waits for that a few seconds and no longer."""
        if self.waiting() and not self.serving:
            self.run("python", "-c", DELIVER, str(self.path))
            assert not self.waiting()

    def waiting(self) -> int:
        """How many operations the outbox holds that the database does not have."""
        path = self.path / "hermes-pgsql" / "outbox.db"
        if not path.exists():
            return 0
        with closing(sqlite3.connect(path)) as outbox:
            return outbox.execute("SELECT count(*) FROM waiting").fetchone()[0]

    def entries(self) -> list[tuple[str, str, str]]:
        """Theme, target and text of every note."""
        self.deliver()
        return self.query("SELECT agent_identity, target, content FROM memvec.memory_entries ORDER BY id")

    def turns(self) -> list[tuple[str, str, str]]:
        """Session, role and text of every turn."""
        self.deliver()
        return self.query("SELECT session_id, role, content FROM memvec.conversations ORDER BY ts, id")

    def said(self) -> list[str]:
        return [content for _session, _role, content in self.turns()]

    @contextmanager
    def gateway(self, key: str) -> Iterator[Callable[..., dict[str, Any]]]:
        """The API server; yields a function that asks it (`session_key` is the header of that name)."""
        for _attempt in range(3):
            port = free_port()  # until somebody else takes it
            process = self.start_gateway(key, port)
            try:
                wait_for(lambda: process.poll() is not None or answers(port, key), 180)  # noqa: B023
            except BaseException:
                end_group(process)
                raise
            if process.poll() is None:
                break
        assert process.poll() is None, (self.path / "gateway.log").read_text()[-3000:]

        def ask(prompt: str, session_key: str = "", **more: Any) -> dict[str, Any]:
            body = {"model": "hermes", "messages": [{"role": "user", "content": prompt}], **more}
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/v1/chat/completions",
                data=json.dumps(body).encode(),
                headers={
                    "Content-Type": "application/json",
                    "Authorization": f"Bearer {key}",
                    **({"X-Hermes-Session-Key": session_key} if session_key else {}),
                },
            )
            with urllib.request.urlopen(request, timeout=300) as reply:  # noqa: S310
                return json.loads(reply.read())

        self.serving = True
        try:
            ask.process = process  # type: ignore[attr-defined]
            yield ask
        finally:
            self.serving = False
            end_group(process)

    def start_gateway(self, key: str, port: int) -> subprocess.Popen[bytes]:
        with (self.path / "gateway.log").open("w") as log:
            return subprocess.Popen(
                [str(self.bin / "hermes"), "gateway", "run"],
                env=self.environment(
                    API_SERVER_ENABLED="true",
                    API_SERVER_HOST="127.0.0.1",
                    API_SERVER_PORT=str(port),
                    API_SERVER_KEY=key,
                ),
                cwd=self.path,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session, and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def answers(port: int, key: str) -> bool:
    """Whether the host's API is there: another program on that port would not know the key."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/models", headers={"Authorization": f"Bearer {key}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:  # noqa: S310
            return reply.status == 200
    except OSError:
        return False


def wait_for(condition: Callable[[], object], seconds: float = 90.0) -> None:
    """Until the condition holds; the test fails when it does not in time."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "what was waited for did not happen"
        time.sleep(0.1)
