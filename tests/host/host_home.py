"""A home of the real host in which to run it, and to look at what it left in the database."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from model_server import ModelServer

HERE = Path(__file__).resolve().parent


@dataclass
class Home:
    """A HERMES_HOME with the provider installed and set up."""

    path: Path
    bin: Path
    dsn: str
    admin_dsn: str
    model: ModelServer

    def configure(self, text: str = "", settings: Mapping[str, Any] | None = None) -> None:
        """Write config.yaml; `settings` are the provider's, `text` is more YAML of the host's."""
        mine = {
            "dsn": self.dsn,
            "embed_url": self.model.url.removesuffix("/v1"),
            "embed_model": "words",
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

    def run(self, *arguments: str, timeout: float = 90) -> subprocess.CompletedProcess[str]:
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

    def entries(self) -> list[tuple[str, str, str]]:
        """Theme, target and text of every note."""
        return self.query("SELECT agent_identity, target, content FROM memvec.memory_entries ORDER BY id")

    def turns(self) -> list[tuple[str, str, str]]:
        """Session, role and text of every turn."""
        return self.query("SELECT session_id, role, content FROM memvec.conversations ORDER BY ts, id")

    def said(self) -> list[str]:
        return [content for _session, _role, content in self.turns()]

    @contextmanager
    def gateway(self, key: str) -> Iterator[Callable[..., dict[str, Any]]]:
        """The API server; yields a function that asks it (`session_key` is the header of that name)."""
        port = free_port()
        log = (self.path / "gateway.log").open("w")
        process = subprocess.Popen(
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
            with urllib.request.urlopen(request, timeout=90) as reply:  # noqa: S310
                return json.loads(reply.read())

        try:
            wait_for(lambda: process.poll() is not None or answers(port), 60)
            assert process.poll() is None, (self.path / "gateway.log").read_text()[-3000:]
            ask.process = process  # type: ignore[attr-defined]
            yield ask
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            log.close()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def wait_for(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Until the condition holds; the test fails when it does not in time."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "what was waited for did not happen"
        time.sleep(0.1)
