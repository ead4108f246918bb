"""The built-in model behind HTTP: the real server and command, the real client, the real model."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from test_embedding_builtin import MISSING, kill_workers

from hermes_pgsql.embedding import EmbedderUnavailable, EmbeddingFailure, serve
from hermes_pgsql.embedding.builtin import BuiltinEmbedder
from hermes_pgsql.embedding.http import HttpEmbedder
from hermes_pgsql.embedding.known import BUILTIN_MODEL
from hermes_pgsql.embedding.serve import EmbeddingServer

pytestmark = pytest.mark.skipif(MISSING is not None, reason=f"built-in model: {MISSING}")

TEXTS = ["The backup window opens at two.", "query: is this a question?", "Our cat prefers fish."]


class Served:
    """A server on a free port and what it answers."""

    def __init__(self, folder: Path, key: str | None = None) -> None:
        self.builtin = BuiltinEmbedder(runtime_dir=folder)
        self.server = EmbeddingServer("127.0.0.1", 0, self.builtin, key)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = self.server.url

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} | {
            name.replace("_", "-"): text for name, text in headers.items()
        }
        connection.request(method, path, raw, given)
        answer = connection.getresponse()
        reply = json.loads(answer.read())
        connection.close()
        return answer.status, reply

    def embed(self, given: Any, **more: Any) -> list[list[float]]:
        status, reply = self.ask("POST", "/v1/embeddings", {"model": BUILTIN_MODEL, "input": given, **more})
        assert status == 200, reply
        return [item["embedding"] for item in reply["data"]]

    def stop(self) -> None:
        self.server.shutdown()
        assert self.server.finish(10)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="e5-") as name:
        yield Path(name)
        kill_workers(Path(name))


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    started = Served(folder)
    yield started
    started.stop()


def test_the_client_gets_the_vectors_and_the_space_of_the_built_in_model(served: Served) -> None:
    client = HttpEmbedder(served.url, BUILTIN_MODEL, dim=384)
    builtin = served.builtin
    assert client.embed_documents(TEXTS, 60) == builtin.embed_documents(TEXTS, 60)
    assert client.embed_query("when do backups run?", 60) == builtin.embed_query("when do backups run?", 60)
    long = "connection refused " * 200 + "when is the backup?"
    assert client.embed_query(long, 60) == builtin.embed_query(long, 60)
    identity = ("model", "dim", "query_prefix", "document_prefix", "min_similarity")
    assert [getattr(client, name) for name in identity] == [getattr(builtin, name) for name in identity]


def test_a_text_is_a_document_unless_somebody_says_otherwise(served: Served) -> None:
    (document,) = served.builtin.embed_documents(["backups"], 60)
    question = served.builtin.embed_query("backups", 60)
    assert isinstance(document, array)
    assert served.embed("backups") == [list(document)]
    assert served.embed("passage: backups", input_type="query") == [list(document)]
    for given, more in (
        ("query: backups", {}),
        ("backups", {"input_type": "query"}),
        ("backups", {"input_type": "search_query"}),
    ):
        assert served.embed(given, **more) == [list(question)]
    mixed = served.embed(["query: backups", "passage: backups", "query: backups"])
    assert mixed == [list(question), list(document), list(question)]


def test_vectors_as_base64(served: Served) -> None:
    (text,) = served.ask(
        "POST",
        "/v1/embeddings",
        {"model": "multilingual-e5-small", "input": ["cat"], "encoding_format": "base64", "dimensions": 384},
    )[1]["data"]
    numbers = struct.unpack("<384f", base64.b64decode(text["embedding"]))
    assert list(numbers) == served.embed("cat")[0]


def test_models_and_health(served: Served) -> None:
    status, models = served.ask("GET", "/v1/models")
    assert status == 200
    assert models["data"][0]["id"] == BUILTIN_MODEL
    assert {model["license"] for model in models["data"]} == {"MIT"}
    assert served.ask("GET", f"/v1/models/{BUILTIN_MODEL}")[0] == 200
    assert served.ask("GET", "/health")[1]["status"] == "ok"


@pytest.mark.parametrize(
    ("body", "headers", "status", "says"),
    [
        ({"model": "gpt-4", "input": "x"}, {}, 404, "model 'gpt-4' not found"),
        ({"model": BUILTIN_MODEL}, {}, 400, "input is"),
        ({"model": BUILTIN_MODEL, "input": []}, {}, 400, "input is"),
        ({"model": BUILTIN_MODEL, "input": [[1, 2, 3]]}, {}, 400, "no text"),
        ({"model": BUILTIN_MODEL, "input": ["x", " "]}, {}, 400, "input 1 is blank"),
        ({"model": BUILTIN_MODEL, "input": "x", "dimensions": 128}, {}, 400, "384"),
        ({"model": BUILTIN_MODEL, "input": "x", "encoding_format": "int8"}, {}, 400, "base64"),
        ({"model": BUILTIN_MODEL, "input": "x", "input_type": "image"}, {}, 400, "input_type"),
        ({"model": BUILTIN_MODEL, "input": ["x"] * 600}, {}, 413, "512"),
        (b"not json", {}, 400, "not JSON"),
        (b"[1]", {}, 400, "no JSON object"),
        (b"{}", {"Content_Type": "text/plain"}, 415, "application/json"),
        (b"{}", {"Content_Length": "99999999"}, 413, "larger than"),
        (b"{}", {"Content_Length": "x"}, 411, "length"),
        ({"model": BUILTIN_MODEL, "input": "x"}, {"Host": "evil.example"}, 403, "localhost"),
    ],
)
def test_what_is_refused_is_said(
    served: Served, body: Any, headers: dict[str, str], status: int, says: str
) -> None:
    got, reply = served.ask("POST", "/v1/embeddings", body, **headers)
    assert got == status
    assert says in reply["error"]["message"]
    assert served.embed("still there")


def test_other_paths_and_methods(served: Served) -> None:
    assert served.ask("POST", "/v1/chat/completions", {})[0] == 404
    assert served.ask("GET", "/v1/embeddings")[0] == 404
    assert served.ask("GET", "/health", Host="localhost:1")[0] == 200


def test_strange_clients_hurt_nobody(served: Served) -> None:
    for sent in (b"", b"\0\0\0", b"POST /v1/embeddings HTTP/1.1\r\nContent-Length: 5\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", served.server.server_port)) as stranger:
            stranger.sendall(sent)
    assert served.embed("still there")


def test_who_waits_for_the_last_requests_waits_for_their_answers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that is made but not yet sent is not cut off by the end of the process."""
    server = EmbeddingServer("127.0.0.1", 0, BuiltinEmbedder(runtime_dir=folder))
    places: list[bool] = []
    handler = server.RequestHandlerClass
    send = handler.send_response

    def look_and_send(self: Any, *args: Any) -> None:
        taken = [server.at_work.acquire(blocking=False) for _place in range(serve.MAX_AT_ONCE)]
        places.append(all(taken))
        for place in taken:
            if place:
                server.at_work.release()
        send(self, *args)

    monkeypatch.setattr(handler, "send_response", look_and_send)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    asked = HttpEmbedder(server.url, BUILTIN_MODEL, protocol="openai")
    asked.embed_query("hello", 120)
    asked.embed_query("again", 120)
    server.shutdown()
    assert places == [False, False]
    assert server.finish(60)


def test_no_name_server_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_args: object) -> str:
        raise AssertionError("a name was looked up")

    monkeypatch.setattr(socket, "getfqdn", asked)
    monkeypatch.setattr(socket, "gethostbyaddr", asked)
    EmbeddingServer("127.0.0.1", 0, BuiltinEmbedder()).server_close()


def test_connections_are_bounded_and_given_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_pgsql.embedding.serve.MAX_CONNECTIONS", 3)
    narrow = Served(folder)
    try:
        for _again in range(2):
            many = [socket.create_connection(("127.0.0.1", narrow.server.server_port)) for _ in range(4)]
            many[3].settimeout(60)
            assert many[3].recv(1) == b""  # one too many
            for one in many:
                one.close()
            places = narrow.server._connections
            assert all(places.acquire(timeout=60) for _place in range(3))
            places.release(3)
    finally:
        narrow.stop()


def test_a_token_is_asked_for_when_there_is_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = Served(folder, key="t0ken")
    try:
        assert guarded.ask("GET", "/v1/models")[0] == 401
        assert guarded.ask("GET", "/v1/models", Authorization="Bearer other")[0] == 401
        assert guarded.ask("GET", "/health")[0] == 200
        monkeypatch.setenv("EMBEDDER_TOKEN", "t0ken")
        client = HttpEmbedder(guarded.url, BUILTIN_MODEL, dim=384, api_key_env="EMBEDDER_TOKEN")
        assert len(client.embed_query("hello", 60)) == 384
        with pytest.raises(EmbedderUnavailable, match="embed_api_key_env"):
            HttpEmbedder(guarded.url, BUILTIN_MODEL).embed_query("hello", 60)
    finally:
        guarded.stop()


def test_a_model_that_cannot_work_is_unavailable_and_blames_no_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Served(folder)
    unavailable = EmbeddingFailure("the worker does not start", unavailable=True, kind="unreachable")
    monkeypatch.setattr(
        failing.builtin, "embed_documents", lambda texts, _seconds: [unavailable] * len(texts)
    )
    try:
        client = HttpEmbedder(failing.url, BUILTIN_MODEL, dim=384, retries=0, protocol="openai")
        (failure,) = client.embed_documents(["text"], 30)
        assert isinstance(failure, EmbeddingFailure)
        assert failure.unavailable
        assert "the worker does not start" in failure.reason
    finally:
        failing.stop()


def command(folder: Path, *options: str) -> subprocess.Popen[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("HERMES_")}
    return subprocess.Popen(
        [sys.executable, "-m", "hermes_pgsql", "embedder", *options],
        cwd=ROOT,
        env=env | {"HERMES_PGSQL_RUNTIME_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_until_it_is_stopped(folder: Path, ending: signal.Signals) -> None:
    serving = command(folder, "--port", "0")
    assert serving.stdout is not None
    lines = [serving.stdout.readline().strip() for _ in range(4)]
    assert "MIT licence" in lines[0]
    url = lines[1].removeprefix("embed_url: ")
    assert lines[2] == f"embed_model: {BUILTIN_MODEL}"
    try:
        taken = command(folder, "--port", url.rpartition(":")[2])
        assert taken.wait(60) == 1
        assert taken.stderr is not None
        assert "--port 0" in taken.stderr.read()
        assert len(HttpEmbedder(url, BUILTIN_MODEL, dim=384).embed_query("hello", 60)) == 384
    finally:
        serving.send_signal(ending)
        out, err = serving.communicate(timeout=60)
    assert (serving.returncode, out, err) == (0, "", "")


def test_the_command_says_why_it_cannot_run(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from hermes_pgsql.cli import main
    from hermes_pgsql.embedding import builtin

    monkeypatch.setattr(builtin, "missing_for_builtin", lambda: "this processor has no AVX2")
    with pytest.raises(SystemExit) as stopped:
        main(["embedder"])
    assert stopped.value.code == 1
    assert "no AVX2" in capsys.readouterr().err
    monkeypatch.undo()
    with pytest.raises(SystemExit):
        main(["embedder", "--api-key-env", "NOT_SET_ANYWHERE"])
    assert "NOT_SET_ANYWHERE holds no token" in capsys.readouterr().err
