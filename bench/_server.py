"""The server that benchmarks run on: the embedded one, durable as in production, in a folder of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from hermes_pgsql import embedded, pool
from hermes_pgsql.embedded import EmbeddedServer
from hermes_pgsql.migrate import migrate

__all__ = ["LARGE", "ROOMY", "fresh_server"]

#: What an administrator would give a server of this size; both sides of a comparison run on it.
ROOMY = {"shared_buffers": "2GB", "maintenance_work_mem": "1GB", "max_wal_size": "4GB"}
#: For a million rows: the index that is built must fit into the memory for it. Takes 16 GB of memory.
LARGE = ROOMY | {"shared_buffers": "6GB", "maintenance_work_mem": "5GB"}


@contextmanager
def fresh_server(settings: Mapping[str, str] | None = None) -> Generator[EmbeddedServer]:
    """A migrated server with these settings, stopped and removed at the end."""
    root = Path(tempfile.mkdtemp(prefix="hermes-pgsql-bench-", dir="/tmp"))  # a socket path is short
    try:
        server = embedded.up(root)
        if settings:
            with psycopg.connect(server.admin_dsn, autocommit=True) as admin:
                for name, value in settings.items():
                    admin.execute(
                        sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), sql.Literal(value))
                    )
            embedded.down(root)
            server = embedded.up(root)
        migrate(server.admin_dsn)
        yield server
    finally:
        pool.close_all()
        embedded.down(root)
        shutil.rmtree(root, ignore_errors=True)
