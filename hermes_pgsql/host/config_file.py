"""Writing settings into the home's ``config.yaml``, with its comments, order and unknown keys kept.

The new file replaces the old one in one step, so that a crash leaves one or the other. A connection string
with a password does not go there but into ``.env``, where the host keeps secrets.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from hermes_pgsql.errors import ConfigError, redact_dsn
from hermes_pgsql.host.schema import CONFIG_FIELDS
from hermes_pgsql.rights import READ, WRITE, hint

__all__ = ["DSN_VARIABLE", "activate", "has_password", "read_config", "save_settings", "set_env"]

DSN_VARIABLE: Final = "HERMES_PGSQL_DSN"
_BLOCK: Final = ("memory", "pgvector")
_SWITCHES: Final = {field["key"] for field in CONFIG_FIELDS if field.get("type") == "boolean"}
_NUMBERS: Final = {
    field["key"]: field["type"] for field in CONFIG_FIELDS if field.get("type") in ("integer", "number")
}

_Block = MutableMapping[str, Any]


def save_settings(home: Path, values: Mapping[str, Any]) -> None:
    """Merge ``values`` into ``memory.pgvector``. An empty value unsets its key; other keys stay.

    Raises ``ConfigError`` when the file cannot be read or written.
    """
    changes = {str(key): _typed(str(key), value) for key, value in values.items()}
    secret = changes.get("dsn")
    if isinstance(secret, str) and has_password(secret):
        set_env(home, DSN_VARIABLE, secret)
        changes["dsn"] = None

    def merge(document: _Block) -> None:
        block = _section(document, *_BLOCK)
        for key, value in changes.items():
            if key in block and values.get(key) == str(_plain(block[key])):
                continue  # a form shows a list as text, and sends the text back
            if value is None:
                block.pop(key, None)
            else:
                block[key] = value

    _change(home, merge)


def activate(home: Path) -> None:
    """Make ``pgvector`` the home's memory provider."""

    def name(document: _Block) -> None:
        _section(document, "memory")["provider"] = "pgvector"

    _change(home, name)


def read_config(home: Path) -> Mapping[str, Any]:
    """The settings in ``memory.pgvector`` as they are written; empty when there are none."""
    document = _load(home / "config.yaml")[1]
    block: object = document
    for name in _BLOCK:
        block = cast("Mapping[str, object]", block).get(name) if isinstance(block, Mapping) else None
    return dict(cast("Mapping[str, Any]", block)) if isinstance(block, Mapping) else {}


def has_password(dsn: str) -> bool:
    """Whether a connection string holds a password (one that cannot be read: whether it looks so)."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        return bool(conninfo_to_dict(dsn).get("password"))
    except ProgrammingError:
        return redact_dsn(dsn) != dsn


def set_env(home: Path, name: str, value: str) -> None:
    """Set a variable in the home's ``.env`` (readable by its owner only), and in this process."""
    if any(ch in value for ch in "\r\n\0"):
        raise ConfigError(f"{name} holds a line break, which .env cannot keep.")
    path = home / ".env"
    try:
        old = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        old = []
    quoted = value if all(ch.isalnum() or ch in "/:@.-_+=%?&," for ch in value) else _quoted(value)
    lines = [line for line in old if line.partition("=")[0].removeprefix("export ").strip() != name]
    _replace(path, "\n".join([*lines, f"{name}={quoted}"]) + "\n", mode=0o600)
    os.environ[name] = value


def _quoted(value: str) -> str:
    # Single quotes: a "$" in a password is no variable.
    if "'" not in value:
        return f"'{value}'"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _typed(key: str, value: Any) -> Any:
    """The value as YAML should have it: the host's forms send texts."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text:
        return None
    if key in _SWITCHES and text.lower() in ("true", "yes", "on", "1", "false", "no", "off", "0"):
        return text.lower() in ("true", "yes", "on", "1")
    if key in _NUMBERS:
        with suppress(ValueError):
            return int(text) if _NUMBERS[key] == "integer" else float(text)
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    return list(cast("list[Any]", value)) if isinstance(value, list) else value


def _change(home: Path, change: Any) -> None:
    path = home / "config.yaml"
    yaml, document = _load(path)
    change(document)
    written = io.StringIO()
    yaml.dump(document, written)
    _replace(path, written.getvalue(), mode=None)


def _load(path: Path) -> tuple[Any, _Block]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml: Any = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096  # long lines stay one line
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror or type(error).__name__}), so it was not changed.",
            hint=hint(error, path, READ),
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read ({type(error).__name__}), so it was not changed.") from None
    try:
        document: object = yaml.load(text)
    except YAMLError:
        raise ConfigError(
            f"{path} is not valid YAML, so it was not changed.", hint="Correct it first."
        ) from None
    if document is None:
        document = yaml.load("{}")
        cast("Any", document).fa.set_block_style()
    if not isinstance(document, MutableMapping):
        raise ConfigError(f"{path} does not hold a map of settings, so it was not changed.")
    return yaml, cast("_Block", document)


def _section(document: _Block, *names: str) -> _Block:
    here = document
    for name in names:
        found: object = here.get(name)
        if not isinstance(found, MutableMapping):
            found = here[name] = {}
            found = here[name]
        here = cast("_Block", found)
    return here


def _replace(path: Path, text: str, mode: int | None) -> None:
    """Write the file anew beside the old one and swap them. Links are followed, rights and owner kept."""
    path = path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        old = path.stat() if path.exists() else None
        fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            fresh.chmod(mode if mode is not None else old.st_mode & 0o777 if old else 0o600)
            if old is not None:
                with suppress(OSError):
                    os.chown(fresh, old.st_uid, old.st_gid)
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror or error}.",
            # A new file takes the old one's place.
            hint=hint(error, path.parent, WRITE),
        ) from None
