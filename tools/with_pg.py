"""Run a command against a throw-away PostgreSQL and return its exit code.

    python tools/with_pg.py [--pg16] [--migrate] [--set name=value] COMMAND [ARGUMENT ...]

The command finds PGHOST, PGPORT, PGUSER, PGDATABASE (an empty database, or a migrated one with --migrate),
the server's programs first in PATH, and MEMVEC_ADMIN_DSN and MEMVEC_RUNTIME_DSN. The server is gone when
the command has ended.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from pgserver import run_sql, throwaway_server

DATABASE = "memvec_dev"


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a command against a throw-away PostgreSQL.")
    parser.add_argument("--pg16", action="store_true", help="PostgreSQL 16 (no contrib) instead of 18")
    parser.add_argument("--migrate", action="store_true", help="migrate the database first")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a server setting")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if not arguments.command:
        parser.error("which command?")
    with throwaway_server(16 if arguments.pg16 else 18, arguments.set) as server:
        run_sql(server.dsn(), f"CREATE DATABASE {DATABASE}")
        admin_dsn = server.dsn(DATABASE)
        if arguments.migrate:
            from hermes_pgsql.migrate import migrate

            migrate(admin_dsn)
        environment = server.environment(DATABASE) | {
            "MEMVEC_ADMIN_DSN": admin_dsn,
            "MEMVEC_RUNTIME_DSN": server.dsn(DATABASE, "hermes"),
        }
        return subprocess.run(arguments.command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
