"""A model that says what a test tells it to, behind the OpenAI interface on a port of this machine.

Chat requests that offer tools take the next step of the script; others (titles, summaries) get a fixed text.
Embeddings are bags of hashed words: texts that share words have a high cosine.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIM = 256
AUXILIARY = "A summary of what was said before."


def says(text: str) -> dict[str, Any]:
    """A step in which the model answers."""
    return {"text": text}


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    """A step in which the model calls a tool."""
    return {"tool": name, "arguments": arguments}


def embed(text: str) -> list[float]:
    vector = [0.0] * DIM
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.sha256(word.encode()).digest()
        for at in range(0, 12, 3):
            vector[(digest[at] << 8 | digest[at + 1]) % DIM] += 1.0 if digest[at + 2] & 1 else -1.0
    length = math.sqrt(sum(number * number for number in vector)) or 1.0
    return [number / length for number in vector]


@dataclass
class ModelServer:
    """The server, what it was asked (`requests`), and the texts it was to embed.

    `embed_status` other than 200 makes embeddings fail, `embed_delay` (seconds) makes them slow.
    """

    steps: list[dict[str, Any]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    embedded: list[str] = field(default_factory=list)
    embed_status: int = 200
    embed_delay: float = 0.0
    port: int = 0

    def script(self, *steps: dict[str, Any]) -> None:
        """What the model does from now on; requests from before are forgotten."""
        self.steps = list(steps)
        self.requests = []

    def chats(self) -> list[list[dict[str, Any]]]:
        """The messages of each chat request that offered tools."""
        return [request["messages"] for request in self.requests if request.get("tools")]

    def seen(self) -> str:
        """Everything in those messages, as one text."""
        return json.dumps(self.chats(), ensure_ascii=False)

    def offered(self) -> list[str]:
        """The names of the tools of the last chat request."""
        tools = [request["tools"] for request in self.requests if request.get("tools")][-1]
        return [tool["function"]["name"] for tool in tools]

    def start(self) -> None:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

            def do_GET(self) -> None:
                self.reply({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
                if self.path.endswith("/embeddings"):
                    model.answer_embeddings(self, body)
                elif self.path.endswith("/chat/completions"):
                    model.answer_chat(self, body)
                else:
                    self.reply({"error": {"message": "not found"}}, 404)

            def reply(self, value: Any, status: int = 200) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def events(self, values: Sequence[Any]) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                for value in values:
                    self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
                self.wfile.write(b"data: [DONE]\n\n")
                self.close_connection = True

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def answer_embeddings(self, handler: Any, body: dict[str, Any]) -> None:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.embedded += texts
        time.sleep(self.embed_delay)
        if self.embed_status != 200:
            handler.reply({"error": {"message": "out of order"}}, self.embed_status)
            return
        rows = [
            {"object": "embedding", "index": at, "embedding": embed(text)} for at, text in enumerate(texts)
        ]
        handler.reply({"object": "list", "model": body.get("model"), "data": rows})

    def answer_chat(self, handler: Any, body: dict[str, Any]) -> None:
        self.requests.append(body)
        step = says(AUXILIARY)
        if body.get("tools"):
            step = self.steps.pop(0) if self.steps else says("The script is over.")
        message: dict[str, Any] = {"role": "assistant", "content": step.get("text")}
        reason = "stop"
        if "tool" in step:
            function = {"name": step["tool"], "arguments": json.dumps(step["arguments"])}
            message["tool_calls"] = [
                {"id": f"call_{len(self.requests)}", "type": "function", "function": function}
            ]
            reason = "tool_calls"
        usage = {"prompt_tokens": step.get("tokens", 100), "completion_tokens": 10, "total_tokens": 110}
        common = {"id": f"chat-{len(self.requests)}", "created": int(time.time()), "model": body.get("model")}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            handler.reply({**common, "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        delta = dict(message)
        if "tool_calls" in delta:
            delta["tool_calls"] = [{"index": 0, **call} for call in delta["tool_calls"]]
        chunk = {**common, "object": "chat.completion.chunk"}
        handler.events(
            [
                {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
                {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
            ]
        )
