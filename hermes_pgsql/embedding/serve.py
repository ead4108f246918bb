"""The built-in model as an OpenAI-compatible endpoint, so that all users of a machine share one copy of it.

`POST /v1/embeddings`, `GET /v1/models`, `GET /health`. Questions and documents are embedded differently by
this model. Which one a text is, is told by the words it was trained with in front of the text (`query: `,
`passage: `, which our own client puts there), else by the field `input_type` (`query` or `document`), else it
is a document. Vectors are the ones that `builtin.BuiltinEmbedder` makes, so both may fill one space.

Bodies, texts, connections and requests at a time are bounded. A web page cannot use it: it answers only JSON
requests, and on loopback only those that name this machine as their host.
"""

from __future__ import annotations

import base64
import hmac
import json
import socket
import socketserver
import sys
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Final, cast
from urllib.parse import urlsplit

from .base import Embedder, Embedding, EmbeddingError, EmbeddingFailure
from .endpoints import is_loopback
from .known import BUILTIN_DIM, BUILTIN_LICENCE, BUILTIN_MODEL

__all__ = ["EmbeddingServer"]

NAMES: Final = (BUILTIN_MODEL, "multilingual-e5-small", "intfloat/multilingual-e5-small")
MAX_BODY: Final = 8 * 1024 * 1024
MAX_TEXTS: Final = 512
MAX_CONNECTIONS: Final = 256
MAX_AT_ONCE: Final = 16
SECONDS: Final = 120.0  # for one request
_QUIET_SECONDS: Final = 120  # until an idle connection is closed
_QUERY: Final = "query"
_DOCUMENT: Final = "document"
_TASKS: Final = {
    "query": _QUERY,
    "search_query": _QUERY,
    "document": _DOCUMENT,
    "passage": _DOCUMENT,
    "search_document": _DOCUMENT,
}
_PREFIXES: Final = (("query: ", _QUERY), ("passage: ", _DOCUMENT))


class EmbeddingServer(ThreadingHTTPServer):
    """Listens at once; `serve_forever` answers. `key`: what clients must send as their bearer token."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, host: str, port: int, embedder: Embedder, key: str | None = None) -> None:
        self.embedder = embedder
        self.key = key
        self.at_work = threading.BoundedSemaphore(MAX_AT_ONCE)
        self._connections = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self.server_address[1]}"
        self.hosts = {"localhost", "127.0.0.1", "::1", host} if is_loopback(self.url) else None

    def server_bind(self) -> None:
        """Without asking for this machine's name, which takes long where no name server answers."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def finish(self, seconds: float) -> bool:
        """After `shutdown`: close, and wait for the requests under way. False when some are left."""
        self.server_close()
        ends = monotonic() + seconds
        return all(
            self.at_work.acquire(timeout=max(0.01, ends - monotonic())) for _place in range(MAX_AT_ONCE)
        )

    def process_request(self, request: object, client_address: object) -> None:
        if not self._connections.acquire(blocking=False):
            self.shutdown_request(cast("socket.socket", request))
            return
        super().process_request(request, client_address)  # pyright: ignore[reportArgumentType]

    def process_request_thread(self, request: object, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)  # pyright: ignore[reportArgumentType]
        finally:
            self._connections.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that leave early are nobody's business."""


class _Refused(Exception):  # noqa: N818
    def __init__(self, status: int, message: str, code: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "hermes-pgsql-embedder"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = _QUIET_SECONDS
    server: EmbeddingServer  # pyright: ignore[reportIncompatibleVariableOverride]
    _has_place = False

    def do_GET(self) -> None:
        self._answered(self._get)

    def do_POST(self) -> None:
        try:
            self._answered(self._post)
            self.wfile.flush()
        finally:
            # Not before the answer has gone: the process ends when all places are free.
            if self._has_place:
                self._has_place = False
                self.server.at_work.release()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def _answered(self, answer: Callable[[], object]) -> None:
        try:
            self._admit()
            status, body = 200, answer()
        except _Refused as refused:
            # What is left of a body that was not read would be taken for the next request.
            self.close_connection = True
            status = refused.status
            body = {"error": {"message": str(refused), "type": refused.code, "code": refused.code}}
        raw = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        if status == 503:
            self.send_header("Retry-After", "1")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(raw)

    def _admit(self) -> None:
        hosts = self.server.hosts
        if hosts is not None and _host_name(self.headers.get("Host", "")) not in hosts:
            raise _Refused(403, "this endpoint serves its own machine; ask it by the name localhost")
        key = self.server.key
        if key is not None and _path(self.path) != "/health":
            given = self.headers.get("Authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {key}".encode()):
                raise _Refused(401, "the bearer token is missing or wrong", "invalid_api_key")

    def _get(self) -> object:
        path = _path(self.path)
        if path == "/health":
            return {"status": "ok", "model": BUILTIN_MODEL}
        if path == "/v1/models":
            return {"object": "list", "data": [_card(name) for name in NAMES]}
        if path.removeprefix("/v1/models/") in NAMES:
            return _card(path.removeprefix("/v1/models/"))
        raise _Refused(404, f"there is no {path[:80]} here; POST /v1/embeddings, GET /v1/models, GET /health")

    def _post(self) -> object:
        path = _path(self.path)
        if path not in ("/v1/embeddings", "/embeddings"):
            raise _Refused(404, f"there is no {path[:80]} here; POST /v1/embeddings")
        request = _Request(self._body())
        if not self.server.at_work.acquire(timeout=SECONDS):
            raise _Refused(503, "too many requests at a time", "server_busy")
        self._has_place = True
        vectors = _embed(self.server.embedder, request.texts)
        data = [
            {"object": "embedding", "index": at, "embedding": request.encoded(vector)}
            for at, vector in enumerate(vectors)
        ]
        # Nobody pays for tokens here, so nobody counts them.
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return {"object": "list", "data": data, "model": request.model, "usage": usage}

    def _body(self) -> Mapping[str, object]:
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise _Refused(415, "send JSON, with the header Content-Type: application/json")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise _Refused(411, "send the length of the body (Content-Length)")
        if len(length) > 10 or int(length) > MAX_BODY:
            raise _Refused(413, f"the body is larger than {MAX_BODY:,} bytes; send fewer texts")
        try:
            body: object = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise _Refused(400, "the body is not JSON") from None
        if not isinstance(body, dict):
            raise _Refused(400, "the body is no JSON object")
        return cast("Mapping[str, object]", body)


class _Request:
    """What a client asked for, checked."""

    def __init__(self, body: Mapping[str, object]) -> None:
        model = body.get("model")
        if model not in NAMES:
            raise _Refused(
                404, f"model {str(model)[:80]!r} not found; this is {BUILTIN_MODEL}", "model_not_found"
            )
        self.model = cast("str", model)
        if body.get("dimensions") not in (None, BUILTIN_DIM):
            raise _Refused(400, f"{BUILTIN_MODEL} has {BUILTIN_DIM} dimensions and no others")
        encoding = body.get("encoding_format") or "float"
        if encoding not in ("float", "base64"):
            raise _Refused(400, "encoding_format is float or base64")
        self._base64 = encoding == "base64"
        asked = body.get("input_type")
        task = _DOCUMENT if asked is None else _TASKS.get(str(asked))
        if task is None:
            raise _Refused(400, f"input_type is one of {', '.join(_TASKS)}")
        self.texts = [_task_of(text, task) for text in _texts(body.get("input"))]

    def encoded(self, vector: Embedding) -> object:
        if not self._base64:
            return list(vector)
        numbers = array("f", vector)
        if sys.byteorder == "big":
            numbers.byteswap()
        return base64.b64encode(numbers.tobytes()).decode()


def _texts(given: object) -> list[str]:
    texts: list[object] = [given] if isinstance(given, str) else cast("list[object]", given)
    if not isinstance(given, str | list) or not texts:
        raise _Refused(400, "input is a text or a list of texts")
    if len(texts) > MAX_TEXTS:
        raise _Refused(413, f"{len(texts)} texts; send {MAX_TEXTS} at most")
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            raise _Refused(400, f"input {at} is no text (tokens are not taken)")
        if not text.strip():
            raise _Refused(400, f"input {at} is blank")
    return cast("list[str]", texts)


def _task_of(text: str, task: str) -> tuple[str, str]:
    for prefix, told in _PREFIXES:
        if text.startswith(prefix):
            return told, text[len(prefix) :]
    return task, text


def _embed(embedder: Embedder, texts: Sequence[tuple[str, str]]) -> list[Embedding]:
    ends = monotonic() + SECONDS
    documents = [text for task, text in texts if task == _DOCUMENT]
    made = iter(embedder.embed_documents(documents, SECONDS) if documents else ())
    vectors: list[Embedding] = []
    for at, (task, text) in enumerate(texts):
        try:
            result = (
                next(made) if task == _DOCUMENT else embedder.embed_query(text, max(0.01, ends - monotonic()))
            )
        except EmbeddingError as error:
            result = error.failure
        if isinstance(result, EmbeddingFailure):
            status = 503 if result.unavailable else 400 if result.permanent else 500
            raise _Refused(status, f"input {at}: {result.reason}", "embedding_failed")
        vectors.append(result)
    return vectors


def _path(target: str) -> str:
    return urlsplit(target).path.rstrip("/")


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _card(name: str) -> dict[str, object]:
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "intfloat",
        "license": BUILTIN_LICENCE,
        "dimensions": BUILTIN_DIM,
    }
