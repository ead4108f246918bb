"""One POST to an endpoint, with one deadline and a bounded reply, whatever the other side does.

No timeout of an HTTP library covers name resolution, headers that drip, or a reader that takes a byte a
second. So each request runs in a thread of its own, on a connection of its own, and a caller whose deadline
has passed cuts that connection and goes: the thread ends, and nothing of it is left to be in the way of the
next one. Connections are kept and used again, one request at a time. A forked child makes its own.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import socket
import threading
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, TypeVar, runtime_checkable

from .base import Deadline, EmbedderUnavailable, EmbeddingError

if TYPE_CHECKING:
    import ssl

    import httpx

T = TypeVar("T")
MAX_REPLY_BYTES: Final = 32 * 1024 * 1024  # 16 vectors of 4,096 numbers are below 2 MB
_MAX_REQUESTS_AT_ONCE: Final = 16
_THREAD_NAME: Final = "hermes-pgsql-embed"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport:
    """POSTs to one server. ``proxies``: whether the environment's proxy is asked (never for this machine).
    ``shown`` makes what a server or library said fit for messages.
    """

    def __init__(
        self, *, credentials: tuple[str, str] | None, proxies: bool, shown: Callable[[str], str]
    ) -> None:
        self._credentials = credentials
        self._proxies = proxies
        self._shown = shown
        self._own = _Own()

    def post(
        self, url: str, where: str, headers: Mapping[str, str], body: bytes, deadline: Deadline
    ) -> Answer:
        """The answer, whatever its status. ``where`` is the URL as messages may show it.

        Raises TimeoutError when the deadline passes first, EmbedderUnavailable when there is no answer, and
        EmbeddingError of kind ``reply`` for one that cannot be read.
        """
        own = self._of_this_process()
        if not deadline.remaining() or not own.slots.acquire(timeout=deadline.remaining()):
            raise TimeoutError
        try:
            line = own.idle.pop()
        except IndexError:
            line = _Line()
        request = line.begin()

        def work() -> Answer:
            try:
                answer = self._post(line, url, where, headers, body, deadline)
            except BaseException:
                line.close()
                raise
            else:
                if line.finish():
                    own.idle.append(line)
                else:
                    line.close()
                return answer
            finally:
                own.slots.release()

        done = _in_thread(work)
        try:
            # A moment more than the deadline, so that the request's own timeout can tell first.
            return done.get(timeout=deadline.remaining() + 0.05)()
        except queue.Empty:
            line.cut(request)
            raise TimeoutError from None

    def close(self) -> None:
        """Closes the connections that nobody uses. The transport may be used again."""
        own = self._of_this_process()
        while own.idle:
            own.idle.pop().close()

    def _of_this_process(self) -> _Own:
        if self._own.pid != os.getpid():  # a forked child: neither its parent's sockets nor its counts
            self._own = _Own()
        return self._own

    def _post(
        self,
        line: _Line,
        url: str,
        where: str,
        headers: Mapping[str, str],
        body: bytes,
        deadline: Deadline,
    ) -> Answer:
        import httpx

        client = self._client(line, where)
        auth = None
        if self._credentials and "Authorization" not in headers:
            auth = httpx.BasicAuth(*self._credentials)
        raw = bytearray()
        try:
            with client.stream(
                "POST",
                url,
                content=body,
                headers=dict(headers),
                auth=auth,
                timeout=httpx.Timeout(max(0.001, deadline.remaining())),
                extensions={"trace": line.trace},
            ) as answer:
                read = _reader(answer.headers.get("content-encoding", ""), where)
                for part in answer.iter_raw():
                    raw += read(part)
                    if len(raw) > MAX_REPLY_BYTES:
                        raise EmbeddingError("reply", f"{where} sent more than {MAX_REPLY_BYTES:,} bytes")
                    if deadline.remaining() == 0:
                        raise TimeoutError
                return Answer(answer.status_code, answer.headers, bytes(raw))
        except (httpx.TimeoutException, TimeoutError):
            raise TimeoutError from None
        except zlib.error:
            raise EmbeddingError("reply", f"{where} sent a body that cannot be decompressed") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, RuntimeError) as error:
            raise _unreachable(where, error, self._shown(str(error))) from None

    def _client(self, line: _Line, where: str) -> httpx.Client:
        if line.client is None:
            import httpx

            _keep_urls_out_of_the_log()
            own = self._of_this_process()
            try:
                if own.tls is None:
                    own.tls = httpx.create_ssl_context()
                line.client = httpx.Client(
                    verify=own.tls,
                    follow_redirects=False,
                    # A proxy from the environment is right for the internet and wrong for this machine.
                    trust_env=self._proxies,
                    limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
                )
            except (ImportError, OSError, ValueError) as error:
                raise EmbedderUnavailable(
                    "config",
                    f"{where} cannot be asked: {self._shown(str(error))}; correct the environment's variables"
                    " for proxies (HTTPS_PROXY, ALL_PROXY, NO_PROXY) and certificates (SSL_CERT_FILE)",
                ) from None
        return line.client


@runtime_checkable
class _Stream(Protocol):
    def get_extra_info(self, info: str) -> object: ...


@dataclass
class _Line:
    """A client of one connection, which another thread can cut."""

    client: httpx.Client | None = None
    _socket: socket.socket | None = None
    _request: int = 0
    _is_cut: bool = False
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> int:
        """The number of the request that begins."""
        return self._request

    def finish(self) -> bool:
        """Whether the line can be used again, now that its request is done."""
        with self._guard:
            self._request += 1
            return not self._is_cut

    def trace(self, _event: str, info: Mapping[str, object]) -> None:
        """Hears of each step of a request; a new connection is among what the steps return."""
        stream = info.get("return_value")
        if isinstance(stream, _Stream):
            connected = stream.get_extra_info("socket")
            self._socket = connected if isinstance(connected, socket.socket) else None
        if self._is_cut:
            raise TimeoutError

    def cut(self, request: int) -> None:
        """Ends the request, unless it is done by now.

        Not by closing the socket: while the other thread still uses its number, that may become another's.
        """
        with self._guard:
            if request != self._request:
                return
            self._is_cut = True
            if self._socket is not None:
                with contextlib.suppress(OSError):  # it has ended by itself
                    self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket = None
        if self.client is not None:
            self.client.close()


@dataclass
class _Own:
    """What belongs to one process."""

    pid: int = field(default_factory=os.getpid)
    idle: list[_Line] = field(default_factory=list[_Line])
    slots: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(_MAX_REQUESTS_AT_ONCE)
    )
    tls: ssl.SSLContext | None = None


def _in_thread(work: Callable[[], T]) -> queue.SimpleQueue[Callable[[], T]]:
    done: queue.SimpleQueue[Callable[[], T]] = queue.SimpleQueue()

    def target() -> None:
        try:
            result = work()
            done.put(lambda: result)
        except BaseException as raised:  # noqa: BLE001 (handed over to the caller's thread)
            error = raised
            done.put(lambda: _raise(error))

    threading.Thread(target=target, name=_THREAD_NAME, daemon=True).start()
    return done


def _raise(error: BaseException) -> NoReturn:
    raise error


def _reader(encoding: str, where: str) -> Callable[[bytes], bytes]:
    """How to read a part of a body. Compression was not asked for, but some proxies compress all the same.

    Never more is unpacked than a reply may hold: a few hundred bytes can stand for gigabytes.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return bytes
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise EmbeddingError(
            "reply", f"{where} sent a body compressed as {encoding[:40]!r}, which nobody asked for"
        )
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def read(part: bytes) -> bytes:
        return unpacker.decompress(part, MAX_REPLY_BYTES + 1)

    return read


def _unreachable(where: str, error: Exception, said: str) -> EmbedderUnavailable:
    import httpx

    said = said or type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in said:
        return EmbedderUnavailable(
            "config",
            f"the certificate of {where} is not trusted ({said.rpartition('] ')[2]}); name the file of its"
            " authority in the environment variable SSL_CERT_FILE",
        )
    if isinstance(error, httpx.ProtocolError):
        return EmbedderUnavailable(
            "unreachable",
            f"{where} ended the connection or does not speak HTTP ({said}); is it an embedding server?",
            transient=True,
        )
    return EmbedderUnavailable(
        "unreachable", f"{where} cannot be reached ({said}); is the server running?", transient=True
    )


def _not_of_ours(record: logging.LogRecord) -> bool:
    return record.threadName != _THREAD_NAME


def _keep_urls_out_of_the_log() -> None:
    """httpx logs each request with its whole URL, whose query may hold a key."""
    logging.getLogger("httpx").addFilter(_not_of_ours)
