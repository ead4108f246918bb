"""The server that benchmarks run on: the embedded one, durable as in production, in a folder of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_pgsql import embedded
from hermes_pgsql.embedded import EmbeddedServer
from hermes_pgsql.migrate import migrate

__all__ = ["fresh_server"]


@contextmanager
def fresh_server() -> Iterator[EmbeddedServer]:
    """A migrated server, stopped and removed at the end."""
    root = Path(tempfile.mkdtemp(prefix="hermes-pgsql-bench-", dir="/tmp"))  # a socket path is short
    try:
        server = embedded.up(root)
        migrate(server.admin_dsn)
        yield server
    finally:
        embedded.down(root)
        shutil.rmtree(root, ignore_errors=True)
