"""Embeddings from an endpoint somebody runs: OpenAI `/v1/embeddings` or Ollama `/api/embed`, over httpx.

One call has one deadline, whatever the endpoint does: each request runs in a thread of its own that the
caller stops waiting for, because no timeout of an HTTP library covers name resolution and dripping headers. A
batch that fails for the sake of one text is asked again in halves and then text by text, so a text costs at
most three requests.
"""

from __future__ import annotations

import base64
import email.utils
import json
import logging
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, urljoin

from .base import (
    Deadline,
    EmbedderUnavailable,
    Embedding,
    EmbeddingError,
    EmbeddingFailure,
    FailureKind,
    clean_text,
)
from .endpoints import Endpoint, credentials_of, endpoints_for, is_loopback, query_secrets, shown_url
from .known import known_floor
from .prefixes import prefixes_for
from .replies import error_text, vectors_of
from .transport import Transport

log = logging.getLogger("hermes_pgsql.embedding")

DEFAULT_DEADLINE = 30.0  # seconds
_MAX_CALLS_PER_TEXT = 3
_ABOUT_THE_TEXT = (400, 422)  # besides 413; other refusals are about the client
_MOST_REFUSED = 8
_TOO_LONG = re.compile(
    r"context (length|size|window)|maximum context|too (long|large)|must have less than"
    r"|exceed\w*.{0,40}(token|length)|(token|length|input).{0,40}exceed",
    re.IGNORECASE | re.DOTALL,
)
_NO_SUCH_MODEL = re.compile(r"\bmodel\b", re.IGNORECASE)


@dataclass
class _Run:
    """One call of embed_documents or embed_query: its deadline, and the reason to make no further request."""

    deadline: Deadline
    broken: EmbedderUnavailable | None = field(default=None)


class HttpEmbedder:
    """An `Embedder` over HTTP. Raises EmbeddingError of kind `config` for a URL or protocol it cannot use.

    `dim` None takes the width of the first reply. `max_chars` counts the prefix. `retries` are for refused or
    broken connections, 502 to 504 and 429, with a pause of `backoff` seconds that doubles; they stay within
    the deadline. `request_dimensions` asks the endpoint to shorten its vectors; most models refuse that, so
    it is off.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        dim: int | None = None,
        api_key_env: str | None = None,
        protocol: str = "auto",
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        max_chars: int = 8000,
        batch_size: int = 16,
        retries: int = 2,
        backoff: float = 0.1,
        request_dimensions: int | None = None,
    ) -> None:
        self._candidates = endpoints_for(url, protocol)
        self._credentials = credentials_of(url)
        self._decided: Endpoint | None = self._candidates[0] if len(self._candidates) == 1 else None
        self.model = model
        self.dim = dim
        self.query_prefix, self.document_prefix = prefixes_for(model, query_prefix, document_prefix)
        self.min_similarity = known_floor(model)
        self._api_key_env = api_key_env or None
        self._max_chars = max_chars
        self._batch_size = max(1, batch_size)
        self._retries = retries
        self._backoff = backoff
        self._request_dimensions = request_dimensions
        self._worked = False  # a vector came back once, so the configuration is right
        self._refused = 0  # single texts in a row
        self._transport = Transport(
            credentials=self._credentials,
            proxies=not is_loopback(self._candidates[0].url),
            shown=self._one_line,
        )
        self._logged: set[FailureKind] = set()

    @property
    def endpoint(self) -> str:
        return shown_url((self._decided or self._candidates[0]).url)

    def embed_documents(
        self, texts: Sequence[str], deadline_seconds: float | None = None
    ) -> list[Embedding | EmbeddingFailure]:
        run = _Run(Deadline(DEFAULT_DEADLINE if deadline_seconds is None else deadline_seconds))
        results: list[Embedding | EmbeddingFailure] = [_BLANK] * len(texts)
        waiting = [
            (at, self._prepared(self.document_prefix, text)) for at, text in enumerate(texts) if text.strip()
        ]
        for start in range(0, len(waiting), self._batch_size):
            batch = waiting[start : start + self._batch_size]
            vectors = self._embed_batch([text for _at, text in batch], run, calls=0)
            for (at, _text), vector in zip(batch, vectors, strict=True):
                results[at] = vector
        for result in results:
            if isinstance(result, EmbeddingFailure):
                self._log_once(result)
        return results

    def embed_query(self, text: str, deadline_seconds: float | None = None) -> Embedding:
        if not text.strip():
            raise EmbeddingError("blank", _BLANK.reason, permanent=True)
        run = _Run(Deadline(DEFAULT_DEADLINE if deadline_seconds is None else deadline_seconds))
        try:
            return self._embed_one(self._prepared(self.query_prefix, text), run, calls=0)
        except EmbeddingError as error:
            self._log_once(error.failure)
            raise

    def close(self) -> None:
        """Closes the connections. The embedder may be used again; it then connects anew."""
        self._transport.close()

    # -- texts --

    def _prepared(self, prefix: str, text: str) -> str:
        return (prefix + clean_text(text))[: self._max_chars]

    def _embed_batch(self, batch: list[str], run: _Run, calls: int) -> list[Embedding | EmbeddingFailure]:
        """One entry per text. `calls` is how many requests each of these texts has been part of."""
        if len(batch) == 1:
            try:
                return [self._embed_one(batch[0], run, calls)]
            except EmbeddingError as error:
                return [error.failure]
        try:
            return self._embed(batch, run)
        except EmbedderUnavailable as error:
            return [error.failure] * len(batch)
        except EmbeddingError as error:
            # Halves first, because most often one text of many is at fault. A text that is too long stays so
            # in its half, and its remaining requests are better spent on cutting it.
            single = calls > 0 or error.kind == "too_long"
            size = 1 if single else (len(batch) + 1) // 2
        results: list[Embedding | EmbeddingFailure] = []
        for start in range(0, len(batch), size):
            results += self._embed_batch(batch[start : start + size], run, calls + 1)
        return results

    def _embed_one(self, text: str, run: _Run, calls: int) -> Embedding:
        """One text, cut to a half and to a quarter while the endpoint finds it too long."""
        length = len(text)
        while True:
            calls += 1
            try:
                result = self._embed([text[:length]], run)[0]
            except EmbedderUnavailable:
                raise
            except EmbeddingError as error:
                if error.kind == "refused":
                    self._refused += 1
                    # By an endpoint that takes other texts: the text is at fault, and always will be. But
                    # when none is taken any more, it is the endpoint that has changed.
                    blamed = self._worked and self._refused <= _MOST_REFUSED
                    raise EmbeddingError("refused", error.reason, permanent=blamed) from None
                if error.kind != "too_long":
                    raise
                if calls >= _MAX_CALLS_PER_TEXT:
                    raise EmbeddingError("too_long", error.reason, permanent=True) from None
                length = max(1, len(text) >> calls)
                continue
            if isinstance(result, EmbeddingFailure):
                raise EmbeddingError(result.kind, result.reason, permanent=result.permanent)
            return result

    # -- requests --

    def _embed(self, texts: list[str], run: _Run) -> list[Embedding | EmbeddingFailure]:
        """One request for these texts; more only to find out which API the URL has, and for retries."""
        if run.broken is not None:
            raise run.broken
        tried: list[EmbeddingError] = []
        try:
            for endpoint in [self._decided] if self._decided else self._candidates:
                try:
                    reply = self._with_retries(endpoint, texts, run.deadline)
                except EmbedderUnavailable as error:
                    if error.kind != "not_found":
                        raise
                    tried.append(error)
                    continue
                return self._vectors(endpoint, reply, len(texts))
            # Ask the other URLs again next time: the server behind this one may have been replaced.
            self._decided = self._candidates[0] if len(self._candidates) == 1 else None
            raise EmbedderUnavailable("not_found", "; ".join(str(error) for error in tried))
        except EmbedderUnavailable as error:
            run.broken = error
            raise

    def _vectors(self, endpoint: Endpoint, reply: object, count: int) -> list[Embedding | EmbeddingFailure]:
        where = shown_url(endpoint.url)
        try:
            found = vectors_of(reply, count, self.dim)
        except EmbeddingError as error:
            reason = self._one_line(error.reason)
            raise EmbeddingError(error.kind, f"{where} sent {reason}{self._about_model()}") from None
        results: list[Embedding | EmbeddingFailure] = []
        for vector in found:
            if isinstance(vector, EmbeddingFailure):
                results.append(
                    EmbeddingFailure(f"{where} sent {vector.reason}", vector.permanent, vector.kind)
                )
                continue
            self._decided, self._worked, self._refused, self.dim = endpoint, True, 0, len(vector)
            results.append(vector)
        return results

    def _with_retries(self, endpoint: Endpoint, texts: list[str], deadline: Deadline) -> object:
        attempt = 0
        while True:
            try:
                return self._reply(endpoint, texts, deadline)
            except EmbedderUnavailable as error:
                pause = self._backoff * 2**attempt if error.retry_after is None else error.retry_after
                if not error.transient or attempt >= self._retries or pause >= deadline.remaining():
                    raise
            attempt += 1
            time.sleep(pause)

    def _reply(self, endpoint: Endpoint, texts: list[str], deadline: Deadline) -> object:
        """The parsed body of a 2xx answer. Raises EmbeddingError for everything else."""
        where = shown_url(endpoint.url)
        body: dict[str, object] = {"model": self.model, "input": texts}
        if endpoint.protocol == "openai":
            body["encoding_format"] = "float"
        else:
            body["truncate"] = True
        if self._request_dimensions is not None:
            body["dimensions"] = self._request_dimensions
        request = json.dumps(body).encode()
        headers = self._headers()
        try:
            answer = self._transport.post(endpoint.url, where, headers, request, deadline)
        except TimeoutError:
            raise EmbedderUnavailable(
                "timeout",
                f"{where} gave no complete answer in {deadline.seconds:g} s; raise the timeout or use a"
                " faster endpoint",
            ) from None
        reply, is_json = _parsed(answer.body)
        if 200 <= answer.status < 300:
            if is_json:
                return reply
            if b"<html" in answer.body[:1000].lower():
                raise EmbedderUnavailable("not_found", f"{where} answered with a web page; correct embed_url")
            raise EmbeddingError("reply", f"{where} sent something that is not JSON{self._about_model()}")
        said = error_text(reply) or answer.body[:300].decode("utf-8", "replace")
        raise self._error(where, answer.status, answer.headers, self._one_line(said))

    def _error(self, where: str, status: int, headers: Mapping[str, str], said: str) -> EmbeddingError:
        answer = f"{where} answered {status}" + (f": {said}" if said else "")
        if 300 <= status < 400:
            target = shown_url(urljoin(where, headers.get("location", "")))
            if target == where or not target.startswith(("http://", "https://")):
                return EmbedderUnavailable("redirect", f"{answer}, which is no answer; correct embed_url")
            return EmbedderUnavailable(
                "redirect",
                f"{where} redirects to {self._one_line(target)!r}; redirects are not followed, so set"
                " embed_url to it",
            )
        if status in (401, 403):
            variable = (
                f"the environment variable {self._api_key_env}" if self._api_key_env else "embed_api_key_env"
            )
            return EmbedderUnavailable("auth", f"{answer}; check {variable}")
        if status in (404, 405, 501):
            if status == 404 and _NO_SUCH_MODEL.search(said):
                return EmbedderUnavailable(
                    "model", f"{answer}; pull the model {self.model!r} or correct embed_model"
                )
            return EmbedderUnavailable("not_found", f"{answer}; correct embed_url")
        if status == 429:
            pause = _retry_after(headers.get("retry-after"))
            return EmbedderUnavailable(
                "rate_limited", f"{answer}; slow down", transient=True, retry_after=pause
            )
        if status in (408, 502, 503, 504):
            pause = _retry_after(headers.get("retry-after"))
            return EmbedderUnavailable("unreachable", answer, transient=True, retry_after=pause)
        if status == 413 or _TOO_LONG.search(said):
            return EmbeddingError(
                "too_long", f"{answer}; the text is too long for {self.model!r}, even when cut"
            )
        if status >= 500:
            return EmbeddingError("server", f"{answer}{self._about_model()}")
        if status not in _ABOUT_THE_TEXT:  # 402 (nobody paid), 407, 451 ...: no other text would fare better
            return EmbedderUnavailable("refused", f"{answer}{self._about_model()}")
        return EmbeddingError("refused", f"{answer}{self._about_model()}")

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        key = self._key()
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def _key(self) -> str:
        """The key, read at each call so that a renewed one is used. Raises before a bad one is sent."""
        key = os.environ.get(self._api_key_env, "") if self._api_key_env else ""
        if not key.isascii() or any(ord(char) < 32 for char in key):
            raise EmbedderUnavailable(
                "config",
                f"the key in the environment variable {self._api_key_env} holds a line break or another"
                " character that no key has; set it again without it",
            )
        return key.strip()

    # -- messages --

    def _one_line(self, text: str) -> str:
        """What a server or library said, fit for a log and for the database: one short line, no secrets."""
        for secret in self._secrets():
            if len(secret) > 3:
                text = text.replace(secret, "***").replace(quote(secret, safe=""), "***")
        # Cut first, since what a server says may be long.
        line = " ".join(clean_text(text[:1000]).split())[:200]
        return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)

    def _secrets(self) -> list[str]:
        """What must not be shown: the key, the user and password, and what the URL's query may hold."""
        key = os.environ.get(self._api_key_env, "").strip() if self._api_key_env else ""
        user, password = self._credentials or ("", "")
        basic = base64.b64encode(f"{user}:{password}".encode()).decode() if password else ""
        return [key, user, password, basic, *query_secrets(self._candidates[0].url)]

    def _about_model(self) -> str:
        return f" (model {self.model!r})"

    def _log_once(self, failure: EmbeddingFailure) -> None:
        """A warning for the first failure of each kind: an early hiccup must not hide a later problem."""
        if failure.kind == "blank":
            return
        if failure.kind in self._logged:
            return
        self._logged.add(failure.kind)
        log.warning("embedding failed: %s", failure.reason)


_BLANK = EmbeddingFailure("nothing to embed: the text is blank", permanent=True, kind="blank")


def _parsed(raw: bytes) -> tuple[object, bool]:
    """The JSON value of a body and whether it was one. NaN is let through; the numbers are checked later."""
    try:
        return json.loads(raw), True
    except (ValueError, RecursionError):
        return None, False


def _retry_after(value: str | None) -> float | None:
    """Seconds from a Retry-After header, which holds seconds or a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
