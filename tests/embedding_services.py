"""Embedding services on ports of this machine, for tests that run the real clients against the real database.

A service knows some models. ``words`` places a text by the words it holds, so that texts with the same words
are near each other; ``reversed`` does the same with the axes in reverse order, so that a vector of one
compared with a vector of the other gives nonsense, and every such comparison shows.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WIDTH = 64


def words_vector(text: str, width: int = WIDTH) -> list[float]:
    """The sum of a direction for each word, in all axes: no two texts are equally far from a third."""
    vector = [0.0] * width
    for word in re.findall(r"\w+", text.lower()):
        for at, byte in enumerate(hashlib.shake_128(word.encode()).digest(width)):
            vector[at] += byte - 127.5
    length = math.sqrt(sum(number * number for number in vector)) or 1.0
    return [number / length for number in vector]


def reversed_vector(text: str, width: int = WIDTH) -> list[float]:
    return words_vector(text, width)[::-1]


def told_apart_by_prefix(text: str) -> list[float]:
    """A model that makes other vectors of texts with its task prefixes than of those without."""
    for prefix in ("Q> ", "D> "):
        if text.startswith(prefix):
            return reversed_vector(text.removeprefix(prefix))
    return words_vector(text)


@dataclass
class Service:
    """``models``: name -> vector of a text. ``requests`` are the texts of each; ``fails`` says which fail.

    ``down`` closes each connection without an answer; ``spoil`` changes the items of a reply before it goes.
    """

    models: dict[str, Callable[[str], list[float]]] = field(default_factory=dict)
    requests: list[list[str]] = field(default_factory=list)
    fails: Callable[[str], tuple[int, str] | None] = lambda _text: None
    spoil: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda items: items
    down: bool = False
    delay: float = 0.0
    url: str = ""
    _server: ThreadingHTTPServer | None = None

    def texts(self) -> list[str]:
        return [text for request in self.requests for text in request]

    def answer(self, body: dict[str, Any]) -> tuple[int, object]:
        texts: Sequence[str] = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.requests.append(list(texts))
        time.sleep(self.delay)
        embed = self.models.get(body["model"])
        if embed is None:
            return 404, {"error": f"model {body['model']!r} not found"}
        for text in texts:
            if failure := self.fails(text):
                return failure[0], {"error": failure[1]}
        items = [{"index": at, "embedding": embed(text)} for at, text in enumerate(texts)]
        return 200, {"data": self.spoil(items)}

    def start(self) -> Service:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if service.down:
                    self.close_connection = True
                    return
                status, reply = service.answer(body)
                raw = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 64

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
