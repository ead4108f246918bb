"""``embedder``: serve the built-in model to all users of this machine."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Annotated, Final

import typer

from hermes_pgsql.cli.options import AsJson
from hermes_pgsql.cli.output import note, say, show_json, warn
from hermes_pgsql.errors import ConfigError, MissingExtra

PORT: Final = 11435
_LAST_REQUESTS: Final = 10.0  # seconds


def embedder(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = PORT,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="Environment variable that holds the token clients must send.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve the built-in embedding model as an OpenAI-compatible endpoint, until it is stopped.

    Agents use it with embed_url, as any other endpoint. Their vectors fit those that the model makes in an
    agent's own worker process, so a fleet may use both.

    \b
    Examples:
      hermes-pgsql embedder
      hermes-pgsql embedder --host 0.0.0.0 --api-key-env EMBEDDER_TOKEN
    """
    from hermes_pgsql.embedding.builtin import BuiltinEmbedder, missing_for_builtin
    from hermes_pgsql.embedding.endpoints import is_loopback
    from hermes_pgsql.embedding.known import BUILTIN_DIM, BUILTIN_LICENCE, BUILTIN_MODEL
    from hermes_pgsql.embedding.serve import EmbeddingServer

    missing = missing_for_builtin()
    if missing:
        raise MissingExtra(f"The built-in model cannot run here: {missing}.")
    key = _key(api_key_env)
    try:
        server = EmbeddingServer(host, port, BuiltinEmbedder(), key)
    except OSError as error:
        raise ConfigError(
            f"Nothing can listen on {host}, port {port}: {error.strerror or error}.",
            hint="Choose another one with --port, or --port 0 for any.",
        ) from None
    if not is_loopback(server.url) and key is None:
        warn("everybody who can reach this address may use the model; --api-key-env asks for a token")

    def stop(_signal: int, _frame: object) -> None:
        # From another thread, because it waits for the loop below.
        threading.Thread(target=server.shutdown, daemon=True).start()

    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, stop)
    if as_json:
        show_json({"url": server.url, "model": BUILTIN_MODEL, "dim": BUILTIN_DIM, "licence": BUILTIN_LICENCE})
    else:
        say(f"Serving {BUILTIN_MODEL} ({BUILTIN_DIM} dimensions, {BUILTIN_LICENCE} licence).")
        say(f"embed_url: {server.url}")
        say(f"embed_model: {BUILTIN_MODEL}")
        say(f"embed_dim: {BUILTIN_DIM}")
    sys.stdout.flush()
    server.serve_forever(0.2)
    if not server.finish(_LAST_REQUESTS):
        note("stopped while requests were under way")


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"The environment variable {variable} holds no token.")
    return key
