"""Write docs/configuration.md from the typed model of the settings; --check compares instead.

Keys, defaults, what is allowed and what a setting means come from hermes_pgsql/config.py, and the fleet-wide
settings from a freshly migrated database, so the page cannot say something else than they do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import psycopg

from hermes_pgsql.config import ENVIRONMENT, Settings, allowed_values
from pgserver import run_sql, throwaway_server

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "configuration.md"
DATABASE = "memvec_docs"
GROUPS = {
    "Database": ("dsn", "admin_dsn"),
    "Embeddings": (
        "embed_url",
        "embed_model",
        "embed_dim",
        "embed_protocol",
        "embed_api_key_env",
        "embed_query_prefix",
        "embed_document_prefix",
        "embed_timeout",
    ),
    "Recall": (
        "prefetch_limit",
        "prefetch_budget",
        "min_similarity",
        "half_life_days",
        "scope_default",
        "hybrid_search",
    ),
    "What is stored": (
        "sync_turns",
        "turn_min_chars",
        "bulk_sync_on_init",
        "write_contexts",
        "redact_secrets",
        "embed_on_write",
        "conversation_embed_policy",
        "embed_write_timeout",
        "embed_write_retries",
        "embed_write_backoff",
        "shutdown_drain_timeout",
        "ttl_days",
        "write_queue_maxsize",
    ),
    "Themes": ("allowed_themes", "identity_aliases", "bench_mode"),
}
HEAD = """# Configuration

<!-- Written by `make docs` from hermes_pgsql/config.py and the database. Edit those, not this file. -->

The provider and the command line read `memory.pgvector` in `$HERMES_HOME/config.yaml`, key by key; what is
not there is taken from `plugins.pgvector` (where an older plugin kept it), else the default holds. Nothing in
it stops the agent: a value that cannot be used becomes the default, one out of range the nearest allowed one,
and `hermes memory status` and the log say so.

```yaml
memory:
  provider: pgvector
  pgvector:
    dsn: postgresql://hermes@db.example.com/fleet
    embed_url: http://localhost:11434
    embed_model: nomic-embed-text
```

Times are seconds. Switches may be written `true`, `false`, `yes`, `no`, `on` or `off`, also as text. A change
holds from the next session on.
"""
VARIABLES = """## Environment

The command line takes these variables before the file (and its own options before them). For the provider
only the first two count, and only when the file does not name a database; so do lines of the same names in
`$HERMES_HOME/.env`.

| variable | setting |
|---|---|"""
FLEET = """## Fleet-wide settings

These are kept in the database and hold for everybody. An administrator changes them; a host's own rules can
only narrow them.

```sql
SELECT memvec.set_setting('history_days', '90');
```

| setting | default | allowed | meaning |
|---|---|---|---|"""
FLEET_QUERY = """
SELECT name, coalesce(value, ''), kind, minimum, maximum, choices, description
  FROM memvec.settings ORDER BY name COLLATE "C"
"""
FleetSetting = tuple[str, str, str, object, object, list[str] | None, str]


def document(fleet: Iterable[FleetSetting]) -> str:
    """The page."""
    grouped = {key for keys in GROUPS.values() for key in keys}
    hidden = {"warnings", "database_doubt"}
    others = tuple(key for key in Settings.model_fields if key not in grouped | hidden)
    parts = [HEAD]
    for title, keys in {**GROUPS, **({"Other settings": others} if others else {})}.items():
        parts.append(f"## {title}\n\n| key | default | allowed | meaning |\n|---|---|---|---|")
        parts += [row(key) for key in keys]
        parts.append("")
    parts.append(VARIABLES)
    parts += [f"| `{variable}` | `{key}` |" for variable, key in ENVIRONMENT.items()]
    parts += ["", FLEET]
    parts += [fleet_row(*setting) for setting in fleet]
    return "\n".join(parts) + "\n"


def row(key: str) -> str:
    field = Settings.model_fields[key]
    return f"| `{key}` | {default_of(key)} | {cell(allowed_values(key))} | {cell(field.description or '')} |"


def default_of(key: str) -> str:
    default: object = Settings.model_fields[key].get_default(call_default_factory=True)
    if default is None or default == {}:
        return "unset"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        return f"`{', '.join(map(str, default))}`"
    return f"`{default}`"


def fleet_row(
    name: str, value: str, kind: str, low: object, high: object, choices: list[str] | None, description: str
) -> str:
    allowed = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}.get(kind, kind)
    if choices:
        allowed = "one of " + ", ".join(choices)
    elif low is not None and high is not None:
        allowed += f" from {low} to {high}"
    shown = f"`{value}`" if value else "blank"
    return f"| `{name}` | {shown} | {cell(allowed)} | {cell(description)} |"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def fleet_settings(dsn: str) -> list[FleetSetting]:
    """The settings of the freshly migrated database of ``dsn`` (a superuser's)."""
    with psycopg.connect(dsn) as connection:
        return connection.execute(FLEET_QUERY.encode()).fetchall()  # pyright: ignore[reportReturnType]


def main() -> int:
    from hermes_pgsql.migrate import migrate

    parser = argparse.ArgumentParser(description="Write the reference of the settings.")
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    arguments = parser.parse_args()
    with throwaway_server() as server:
        run_sql(server.dsn(), f"CREATE DATABASE {DATABASE}")
        migrate(server.dsn(DATABASE))
        text = document(fleet_settings(server.dsn(DATABASE)))
    name = TARGET.relative_to(ROOT)
    if arguments.check:
        if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
            return 0
        print(f"{name} is not what the settings say: run `make docs` and commit it.", file=sys.stderr)
        return 1
    TARGET.write_text(text, encoding="utf-8")
    print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
