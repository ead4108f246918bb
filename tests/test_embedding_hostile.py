"""The endpoint client against a server that means harm, or is broken in ways that hurt."""

from __future__ import annotations

import gzip
import http.client
import json
import logging
import os
import socket
import subprocess
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from drain_support import wait_until
from test_embedding_http import (
    TENTH,
    FakeEndpoint,
    Reply,
    drip,
    embed_all,
    embedder,
    endpoint,  # noqa: F401 (fixture)
    failed,
    one_item,
    vector_of,
)

from hermes_pgsql.embedding import EmbedderUnavailable, EmbeddingError, EmbeddingFailure
from hermes_pgsql.embedding.endpoints import is_loopback
from hermes_pgsql.embedding.http import HttpEmbedder

Answer = Callable[[socket.socket], object]
RawServer = Callable[..., str]
KEY = "sk-0123456789abcdef"


def ours() -> int:
    """Threads of requests that are under way, also of those that nobody waits for."""
    return sum(thread.name == "hermes-pgsql-embed" for thread in threading.enumerate())


@pytest.fixture
def raw_server() -> Iterator[RawServer]:
    """Starts servers that get the connection after the request was read; gives their URLs."""
    listeners: list[socket.socket] = []

    def start(answer: Answer, family: int = socket.AF_INET) -> str:
        listener = socket.create_server(
            ("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family
        )
        listeners.append(listener)

        def converse(connection: socket.socket) -> None:
            with connection:
                try:
                    while read_request(connection):
                        answer(connection)
                except OSError:
                    return

        def accept() -> None:
            while True:
                try:
                    connection, _address = listener.accept()
                except OSError:
                    return
                threading.Thread(target=converse, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        host = "[::1]" if family == socket.AF_INET6 else "127.0.0.1"
        return f"http://{host}:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.close()


def read_request(connection: socket.socket) -> bool:
    head = b""
    while b"\r\n\r\n" not in head:
        part = connection.recv(65536)
        if not part:
            return False
        head += part
    fields, _, body = head.partition(b"\r\n\r\n")
    length = int(fields.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return True


def answer_with(body: bytes, *headers: str, status: str = "200 OK") -> Answer:
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""])
    return lambda connection: connection.sendall(head.encode() + body)


def client(url: str, **options: Any) -> HttpEmbedder:
    defaults: dict[str, Any] = {"dim": 4, "protocol": "openai", "backoff": 0.01}
    return HttpEmbedder(url, "m", **(defaults | options))


def refusal(used: HttpEmbedder, seconds: float = 60) -> EmbeddingFailure:
    return failed(used.embed_documents(["text"], seconds)[0])


# -- time --


def test_requests_that_nobody_waits_for_are_ended(endpoint: FakeEndpoint) -> None:  # noqa: F811
    """More answers drip than requests may be under way; still the next caller finds a place."""

    def drip_for_ever(handler: Any) -> None:
        drip(endpoint, handler, b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 10_000)

    used = embedder(endpoint, retries=0)
    used.embed_query("warm up", 60)
    endpoint.raw = drip_for_ever
    for _ in range(20):
        with pytest.raises(EmbedderUnavailable):
            used.embed_query("text", 0.15)
    endpoint.raw = None
    assert list(used.embed_query("text", 60)) == vector_of("text")
    wait_until(lambda: ours() == 0)


def test_endless_informational_answers_end_with_the_deadline(raw_server: RawServer) -> None:
    def informed(connection: socket.socket) -> None:
        while True:
            connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            time.sleep(0.02)

    assert refusal(client(raw_server(informed)), 1).kind == "timeout"
    wait_until(lambda: ours() == 0)


def test_a_child_forked_in_the_middle_of_requests_has_all_its_places(
    endpoint: FakeEndpoint,  # noqa: F811
) -> None:
    used = embedder(endpoint)
    used.embed_query("warm up", 60)
    release = threading.Event()

    def wait_first(_request: Any) -> Reply:
        release.wait(60)
        return embed_all(_request)

    endpoint.answer = wait_first
    callers = [threading.Thread(target=used.embed_query, args=("slow", 60)) for _ in range(16)]
    for caller in callers:
        caller.start()
    wait_until(lambda: len(endpoint.requests) == 17)
    endpoint.answer = embed_all
    child = os.fork()
    if child == 0:
        try:
            used.embed_query("child", 20)
            os._exit(0)
        finally:
            os._exit(1)
    ended = os.waitpid(child, 0)[1]
    release.set()
    for caller in callers:
        caller.join()
    assert ended == 0


# -- bodies --


def test_a_body_in_a_body_is_not_unpacked(raw_server: RawServer) -> None:
    """A few hundred bytes that stand for gigabytes."""
    bomb = gzip.compress(gzip.compress(bytes(100 << 20)))
    assert len(bomb) < 1000
    used = client(raw_server(answer_with(bomb, "Content-Encoding: gzip, gzip")))
    tracemalloc.start()
    try:
        assert "compressed as 'gzip, gzip'" in refusal(used).reason
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()


def test_a_body_is_unpacked_only_as_far_as_a_reply_may_go(raw_server: RawServer) -> None:
    used = client(raw_server(answer_with(gzip.compress(bytes(40 << 20)), "Content-Encoding: gzip")))
    assert "sent more than 33,554,432 bytes" in refusal(used).reason


def test_a_compressed_body_is_read_although_nobody_asked_for_it(raw_server: RawServer) -> None:
    body = gzip.compress(json.dumps({"data": [{"embedding": TENTH}]}).encode())
    used = client(raw_server(answer_with(body, "Content-Encoding: gzip")))
    assert list(used.embed_query("text", 60)) == pytest.approx(TENTH)
    broken = client(raw_server(answer_with(body[:20] + b"xxxx", "Content-Encoding: gzip")))
    assert refusal(broken).kind == "reply"


NO_HTTP: list[Answer] = [
    answer_with(b"zz\r\n", "Transfer-Encoding: chunked"),
    answer_with(b"{}", "Content-Length: 99"),
    answer_with(b"", "Upgrade: h2c", "Connection: upgrade", status="101 Switching Protocols"),
    lambda connection: connection.sendall(b"\x00\xff\r\n\r\n"),
    lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}"),
    lambda connection: connection.close(),
]


@pytest.mark.parametrize("answer", NO_HTTP)
def test_what_is_not_http_is_said_to_be_so(raw_server: RawServer, answer: Answer) -> None:
    failure = refusal(client(raw_server(answer), retries=0))
    assert failure.kind == "unreachable"
    assert "ended the connection or does not speak HTTP" in failure.reason


def test_ipv6(raw_server: RawServer) -> None:
    try:
        url = raw_server(answer_with(one_item(TENTH).body()), socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    assert list(client(url).embed_query("text", 60)) == pytest.approx(TENTH)


# -- what is said --


@pytest.mark.parametrize("status", [200, 400, 401, 402, 404, 429, 500, 503])
def test_what_a_server_says_is_one_printable_line_without_secrets(
    endpoint: FakeEndpoint,  # noqa: F811
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also fit for the database, which takes neither NUL nor half of a character."""
    monkeypatch.setenv("KEY_OF_TEST", KEY)
    url = (
        endpoint.url.replace("//", "//ann:p%40ss-word@")
        + "/x/embeddings?api-key=query-secret&api-version=2024-06"
    )
    used = HttpEmbedder(url, "m", dim=4, backoff=0, api_key_env="KEY_OF_TEST")
    said = (
        f"bad: {KEY} p@ss-word p%40ss-word query-secret 2024-06\nnext \x00 \x1b[31m \ud800 \u202e"
        + "x" * 5000
    )
    endpoint.answer = lambda _request: Reply({"error": {"message": said}}, status=status)
    with caplog.at_level(logging.DEBUG):
        reason = refusal(used).reason
    for secret in (KEY, "ss-word", "query-secret"):
        assert secret not in reason + caplog.text
    assert "2024-06" in reason
    assert reason.isprintable()
    assert len(reason) < 500
    reason.encode()


def test_an_error_of_binary_rubbish(endpoint: FakeEndpoint) -> None:  # noqa: F811
    used = embedder(endpoint)
    endpoint.answer = lambda _request: Reply(text="".join(map(chr, range(256))), status=500)
    assert refusal(used).reason.isprintable()


@pytest.mark.parametrize(
    ("status", "location", "mentions"),
    [
        (302, "file:///etc/passwd", "which is no answer"),
        (302, None, "which is no answer"),
        (304, None, "which is no answer"),
        (308, "/v2/embeddings?token=t0psecret", "redirects to '{url}/v2/embeddings'"),
        (301, "//elsewhere.invalid/v1", "redirects to 'http://elsewhere.invalid/v1'"),
    ],
)
def test_a_redirect_names_where_it_leads_if_one_may_go_there(
    endpoint: FakeEndpoint,  # noqa: F811
    status: int,
    location: str | None,
    mentions: str,
) -> None:
    headers = {} if location is None else {"Location": location}
    endpoint.answer = lambda _request: Reply(text="", status=status, headers=headers)
    failure = refusal(embedder(endpoint))
    assert failure.kind == "redirect"
    assert failure.unavailable
    assert mentions.format(url=endpoint.url) in failure.reason
    assert "t0psecret" not in failure.reason
    assert len(endpoint.requests) == 1


# -- whose fault it is --


@pytest.mark.parametrize("status", [402, 407, 409, 418, 451])
def test_a_refusal_that_is_not_about_the_text_blames_no_text(
    endpoint: FakeEndpoint,  # noqa: F811
    status: int,
) -> None:
    """Above all 402: what was not paid for is embedded when it is, and is not given up for ever."""
    used = embedder(endpoint)
    used.embed_query("warm up", 60)
    endpoint.requests.clear()
    endpoint.answer = lambda _request: Reply({"error": "pay first"}, status=status)
    results = used.embed_documents([f"t{at}" for at in range(20)], 60)
    assert all(failed(result).unavailable and not failed(result).permanent for result in results)
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_refuses_everything_from_now_on_is_not_the_texts_fault(
    endpoint: FakeEndpoint,  # noqa: F811
) -> None:
    used = embedder(endpoint)
    used.embed_query("warm up", 60)
    endpoint.answer = lambda _request: Reply({"error": "API key expired"}, status=400)
    results = [failed(result) for result in used.embed_documents([f"t{at}" for at in range(40)], 60)]
    assert sum(result.permanent for result in results) <= 8
    endpoint.answer = lambda request: (
        Reply({"error": "no"}, status=400) if "bad" in request.texts else embed_all(request)
    )
    used.embed_query("good", 60)
    assert failed(used.embed_documents(["bad"], 60)[0]).permanent


# -- the environment --


def test_a_proxy_that_cannot_be_used_is_a_failure_and_no_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://proxy.invalid:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    failure = refusal(client("http://endpoint.invalid"))
    assert failure.kind == "config"
    assert "ALL_PROXY" in failure.reason


def test_an_authority_that_is_not_known_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A private authority is trusted when SSL_CERT_FILE names it, on this machine too."""
    import ssl

    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", str(key), "-out", str(certificate)],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("openssl cannot make a certificate here")
    fake = FakeEndpoint()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    fake.server.socket = context.wrap_socket(fake.server.socket, server_side=True)
    url = fake.url.replace("http:", "https:")
    try:
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        failure = refusal(client(url))
        assert failure.kind == "config"
        assert "SSL_CERT_FILE" in failure.reason
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert list(client(url).embed_query("text", 60)) == vector_of("text")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
        assert "SSL_CERT_FILE" in refusal(client(url)).reason
    finally:
        fake.stop()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:1", True),
        ("http://127.0.0.1", True),
        ("http://127.1.2.3/v1", True),
        ("http://[::1]:80", True),
        ("http://127.example.com", False),
        ("http://localhost.example.com", False),
        ("http://10.0.0.1", False),
    ],
)
def test_which_addresses_are_this_machine(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected


def test_the_query_of_a_url_is_not_logged_by_the_http_library(
    endpoint: FakeEndpoint,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
) -> None:
    used = HttpEmbedder(f"{endpoint.url}/x/embeddings?api-key=query-secret", "m", dim=4)
    with caplog.at_level(logging.DEBUG):
        used.embed_query("text", 60)
    assert "query-secret" not in caplog.text
    assert endpoint.requests[0].path == "/x/embeddings?api-key=query-secret"


def test_errors_stay_of_one_type_when_the_endpoint_vanishes_in_a_batch(
    endpoint: FakeEndpoint,  # noqa: F811
) -> None:
    used = embedder(endpoint, batch_size=2, retries=0)

    def answer(request: Any) -> Reply:
        if len(endpoint.requests) == 2:
            raise http.client.HTTPException
        return embed_all(request)

    endpoint.answer = answer
    results = used.embed_documents(["a", "b", "c", "d"], 60)
    assert [isinstance(result, EmbeddingFailure) for result in results] == [False, False, True, True]
    with pytest.raises(EmbeddingError):
        client("http://127.0.0.1:1").embed_query("text", 60)
