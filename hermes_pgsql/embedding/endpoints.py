"""Which URLs to ask, given the one somebody configured.

People write the server's root, the API's root (`/v1`), the full path, a trailing slash, or a path their tool
doubled. All of them mean one thing, so they are brought into one form here, and errors name the URL that was
really asked.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Literal, NamedTuple, get_args
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from .base import EmbeddingError

Protocol = Literal["auto", "openai", "ollama"]
_OLLAMA_PORT = 11434


class Endpoint(NamedTuple):
    protocol: Literal["openai", "ollama"]
    url: str  # without user and password


def endpoints_for(url: str, protocol: str = "auto") -> list[Endpoint]:
    """The endpoints `url` may mean, the likeliest first. Raises EmbeddingError of kind `config`."""
    if protocol not in get_args(Protocol):
        raise EmbeddingError("config", f"embed_protocol is {protocol!r}; it must be auto, openai or ollama")
    parts, port = _split(url)
    path = re.sub(r"/+", "/", parts.path).rstrip("/")
    base, full = _base_and_full(path)

    def endpoint(kind: Literal["openai", "ollama"], path: str) -> Endpoint:
        return Endpoint(kind, parts._replace(netloc=_host(parts), path=path, fragment="").geturl())

    openai = endpoint("openai", f"{base}/v1/embeddings")
    ollama = endpoint("ollama", f"{base.removesuffix('/api')}/api/embed")
    if protocol == "ollama" or (protocol == "auto" and full.startswith("/api/embed")):
        return [ollama]
    if full == "/embeddings":  # a path of somebody's own, for example with a version other than v1
        return [endpoint("openai", path)]
    if full in ("/v1/embeddings", "/v1"):
        return [openai]
    candidates = [ollama, openai] if port == _OLLAMA_PORT else [openai, ollama]
    if base:
        candidates.append(endpoint("openai", f"{base}/embeddings"))
    return [found for found in candidates if protocol in ("auto", found.protocol)]


def credentials_of(url: str) -> tuple[str, str] | None:
    """User and password written into the URL, or None."""
    parts, _port = _split(url)
    if parts.username is None:
        return None
    return unquote(parts.username), unquote(parts.password or "")


def query_secrets(url: str) -> list[str]:
    """The values in the URL's query that may be keys."""
    return [value for name, value in parse_qsl(urlsplit(url).query) if "version" not in name.casefold()]


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def shown_url(url: str) -> str:
    """`url` for messages and logs: without user, password and query, each of which may hold a secret."""
    try:
        parts = urlsplit(url)
        return parts._replace(netloc=_host(parts), query="", fragment="").geturl()
    except ValueError:
        return "the configured URL"


def _split(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise EmbeddingError(
            "config", "embed_url is not a URL; write it like http://localhost:11434"
        ) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        scheme = parts.scheme if parts.scheme.isalnum() and parts.hostname else "none"
        raise EmbeddingError(
            "config",
            f"embed_url must start with http:// or https:// and name a host (its scheme is {scheme});"
            " write it like http://localhost:11434",
        )
    return parts, port


def _host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _base_and_full(path: str) -> tuple[str, str]:
    """The path before the API's own part, and that part (also when it was written twice)."""
    for full in ("/v1/embeddings", "/api/embeddings", "/api/embed"):
        head, found, _doubled = path.partition(full)
        if found:
            return re.sub(r"(/v1)+$", "", head), full
    if path.endswith("/v1"):
        return re.sub(r"(/v1)+$", "", path), "/v1"
    if path.endswith("/embeddings"):
        return path, "/embeddings"
    return path, ""
