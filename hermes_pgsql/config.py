"""The settings of the provider and of the command line, as one typed model.

They live under ``memory.pgvector`` in ``$HERMES_HOME/config.yaml`` (where the host's setup keeps them), else
under ``plugins.pgvector`` (where an older plugin kept them), key by key, else they are defaults. Reading them
never fails: a value that cannot be used becomes the default, one out of range the nearest allowed one, and
each such case leaves one sentence in ``Settings.warnings`` that names the key, the value and what is allowed.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from hermes_pgsql.errors import redact_dsn
from hermes_pgsql.whereabouts import remember

__all__ = [
    "ENVIRONMENT",
    "Settings",
    "hermes_home",
    "load_command_line_settings",
    "load_settings",
    "read_document",
    "redact_dsn",
    "report_warnings",
    "settings_from_mapping",
]

EMBEDDED: Final = "embedded"
DEFAULT_MODEL: Final = "nomic-embed-text"
DEFAULT_DIM: Final = 768
# Environment variable -> setting. The first two are also read for a provider whose file does not name a dsn.
ENVIRONMENT: Final[Mapping[str, str]] = {
    "HERMES_PGSQL_DSN": "dsn",
    "HERMES_PGSQL_ADMIN_DSN": "admin_dsn",
    "HERMES_PGSQL_EMBED_URL": "embed_url",
    "HERMES_PGSQL_EMBED_MODEL": "embed_model",
    "HERMES_PGSQL_EMBED_DIM": "embed_dim",
    "HERMES_PGSQL_EMBED_PROTOCOL": "embed_protocol",
    "HERMES_PGSQL_EMBED_API_KEY_ENV": "embed_api_key_env",
}
_NO_SETTINGS: Final = frozenset({"warnings", "database_doubt"})
_DSN_KEYS: Final = ("dsn", "admin_dsn")
_NEVER_SHOWN: Final = (*_DSN_KEYS, "embed_api_key_env")
_SECTIONS: Final = ("memory", "plugins")
_NAME: Final = "pgvector"

log = logging.getLogger(__name__)


def _refuse(allowed: str) -> PydanticCustomError:
    return PydanticCustomError("not_allowed", "{allowed}", {"allowed": allowed})


def _text(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


def _choice(value: object) -> object:
    return value.strip().casefold() if isinstance(value, str) else value


def _scope(value: object) -> object:
    choice = _choice(value)
    return "current" if choice == "own" else choice


def _prefix(value: object) -> object:
    # Not stripped: the blank after "query:" is part of it.
    if isinstance(value, str) and value and not value.strip():
        raise _refuse("a text, or none")
    return "" if isinstance(value, str) and value.strip().casefold() == "none" else value


def _number(value: object) -> object:
    # bool is an int in Python; "prefetch_limit: yes" is a mistake, not a 1.
    if isinstance(value, bool):
        raise _refuse("a number")
    return value.strip() if isinstance(value, str) else value


def _url(value: object) -> object:
    if not isinstance(value, str):
        return value
    url = value.strip()
    if "://" not in url:
        url = f"http://{url}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or any(ch.isspace() for ch in url):
        raise _refuse("an http:// or https:// address")
    return url.rstrip("/")


def _variable(value: object) -> object:
    # The likely mistake is the key itself, and most keys hold a sign that no name does.
    name = _text(value)
    if isinstance(name, str) and name and not name.replace("_", "a").isalnum():
        raise _refuse("the name of an environment variable")
    return name


def _json_or(text: str, opening: str) -> object | None:
    """The JSON value of ``text`` if it starts with ``opening``; a ValueError if it does and is none."""
    return json.loads(text) if text.startswith(opening) else None


def _names(value: object) -> object:
    """Names from a list, a set, a JSON list or a text with commas; a number counts as its text."""
    allowed = "a list of names, or a text with commas between them"
    if isinstance(value, str):
        try:
            parsed = _json_or(value.strip(), "[")
        except ValueError:
            raise _refuse(allowed) from None
        value = value.replace("\n", ",").split(",") if parsed is None else parsed
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = [value]
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise _refuse(allowed)
    names: list[str] = []
    for item in cast("Iterable[object]", value):
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise _refuse(allowed)
        if name := str(item).strip():
            names.append(name)
    return tuple(dict.fromkeys(names))


def _themes(value: object) -> object:
    # An empty list switches the allow-list off, as it always did.
    return None if value is None else _names(value) or None


def _contexts(value: object) -> object:
    names = cast("tuple[str, ...]", _names(value))
    if not names:
        raise _refuse("at least one context, such as primary")
    return tuple(name.lower() for name in names)


def _aliases(value: object) -> object:
    """Aliases from a map, a JSON object, or text of the form ``raw=theme,raw2=theme2``."""
    allowed = "a map of names to themes, or a text such as ops=operations,mkt=marketing"
    if isinstance(value, str):
        try:
            parsed = _json_or(value.strip(), "{")
        except ValueError:
            raise _refuse(allowed) from None
        value = _alias_pairs(value) if parsed is None else parsed
    if not isinstance(value, Mapping):
        raise _refuse(allowed)
    aliases: dict[str, str] = {}
    for raw, theme in cast("Mapping[object, object]", value).items():
        if isinstance(theme, Mapping | list | tuple | bool):
            raise _refuse(allowed)
        if key := str(raw).strip():
            aliases[key] = "" if theme is None else str(theme).strip()
    return aliases


def _alias_pairs(text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in text.replace("\n", ",").split(","):
        raw, equals, theme = item.partition("=")
        if not item.strip():
            continue
        if not (equals and raw.strip() and theme.strip()):
            raise _refuse("a map of names to themes, or a text such as ops=operations,mkt=marketing")
        pairs[raw.strip()] = theme.strip()
    return pairs


Text = Annotated[str, BeforeValidator(_text), Field(min_length=1)]
VariableName = Annotated[str, BeforeValidator(_variable), Field(min_length=1)]
Switch = Annotated[bool, BeforeValidator(_text)]
Prefix = Annotated[str, BeforeValidator(_prefix)]
Url = Annotated[str, BeforeValidator(_url)]
Whole = Annotated[int, BeforeValidator(_number)]
Real = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]


class Settings(BaseModel):
    """Every setting, validated. Times are seconds; ``None`` is unset, and the description says what then."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    dsn: Text | None = Field(
        None,
        description="How to reach the database: a libpq connection string or postgresql:// address, or"
        " 'embedded'. Unset: the embedded server when its extra is installed. The first session, `up`, `add`"
        " or `import` makes it; what only reads never does.",
    )
    admin_dsn: Text | None = Field(
        None, description="The administrator's connection string, for migrate and maintenance only."
    )
    embed_url: Url | None = Field(
        None, description="Base address of the embedding service. Unset: the built-in model, else words only."
    )
    embed_model: Text = Field(DEFAULT_MODEL, description="Name of the embedding model at embed_url.")
    embed_dim: Annotated[Whole, Field(ge=1, le=16000)] | None = Field(
        None,
        description="Width of the model's vectors. Unset: 768 for nomic-embed-text, else that of a reply.",
    )
    embed_api_key_env: VariableName | None = Field(
        None, description="Name (not value) of the environment variable that holds the service's API key."
    )
    embed_protocol: Annotated[Literal["auto", "openai", "ollama"], BeforeValidator(_choice)] = Field(
        "auto", description="Which interface embed_url speaks."
    )
    embed_query_prefix: Prefix | None = Field(
        None, description="Put before questions. Unset: what the model is known to need; 'none': nothing."
    )
    embed_document_prefix: Prefix | None = Field(
        None, description="Put before stored text. Unset: what the model is known to need; 'none': nothing."
    )
    prefetch_limit: Annotated[Whole, Field(ge=1, le=50)] = Field(
        5, description="How many rows are offered to the model before a turn."
    )
    min_similarity: Annotated[Real, Field(ge=0, le=1)] | None = Field(
        None,
        description="Rows of lower cosine similarity are not offered. Unset: the embedding space's floor.",
    )
    half_life_days: Annotated[Real, Field(ge=0, le=36500)] = Field(
        0.0,
        description="Age in days at which a found row counts half, in the recall tools; 0: age is nothing.",
    )
    embed_on_write: Switch = Field(default=True, description="Whether what is written gets a vector.")
    scope_default: Annotated[Literal["current", "all"], BeforeValidator(_scope)] = Field(
        "current",
        description="What recall_memory searches when the model names no scope; current, or own: the agent's"
        " theme.",
    )
    hybrid_search: Switch = Field(
        default=True, description="Search by words and meaning; off: by meaning only."
    )
    write_queue_maxsize: Annotated[Whole, Field(ge=1)] = Field(
        256, description="Accepted for older configurations; the outbox on disk has no such limit."
    )
    bulk_sync_on_init: Switch = Field(
        default=True, description="Whether MEMORY.md and USER.md are mirrored at start."
    )
    sync_turns: Switch = Field(default=True, description="Whether conversation turns are stored.")
    turn_min_chars: Annotated[Whole, Field(ge=0)] = Field(
        40, description="Turns shorter than this many characters are not stored."
    )
    allowed_themes: Annotated[tuple[str, ...] | None, BeforeValidator(_themes)] = Field(
        None,
        description="Only these themes keep their name; others become 'default'. Unset or empty: all do.",
    )
    identity_aliases: Annotated[dict[str, str], BeforeValidator(_aliases)] = Field(
        default_factory=dict, description="Names that stand for a theme."
    )
    bench_mode: Annotated[Literal["bucket", "reject"], BeforeValidator(_choice)] = Field(
        "bucket", description="Benchmark identities go to the sink _bench (bucket) or to 'default' (reject)."
    )
    conversation_embed_policy: Annotated[
        Literal["all", "substantive_only", "none"], BeforeValidator(_choice)
    ] = Field("all", description="Which stored turns get a vector.")
    ttl_days: Annotated[Whole, Field(ge=0, le=36500)] = Field(
        0, description="Default age for prune, in days. 0: none. Nothing is ever pruned by itself."
    )
    embed_timeout: Annotated[Real, Field(ge=0.1, le=600)] = Field(
        10.0, description="Longest wait for the vector of a question."
    )
    embed_write_timeout: Annotated[Real, Field(ge=0.1, le=3600)] = Field(
        30.0, description="Longest wait for a batch of vectors of stored text."
    )
    embed_write_retries: Annotated[Whole, Field(ge=0, le=20)] = Field(
        2, description="How often such a batch is tried again."
    )
    embed_write_backoff: Annotated[Real, Field(ge=0, le=60)] = Field(
        0.1, description="Wait before the first such retry; it doubles each time."
    )
    prefetch_budget: Annotated[Real, Field(ge=0.1, le=7)] = Field(
        4.0,
        description="Longest time prefetch takes, embedding and query together. The host gives up after 8.",
    )
    write_contexts: Annotated[tuple[str, ...], BeforeValidator(_contexts)] = Field(
        ("primary", "cron"), description="Agent contexts that may write."
    )
    shutdown_drain_timeout: Annotated[Real, Field(ge=0, le=600)] = Field(
        10.0,
        description="Longest wait for the outbox at shutdown; in the host at most 4, which gives up after 5."
        " What is left is sent by the next process.",
    )
    redact_secrets: Switch = Field(
        default=True, description="Whether keys, tokens and passwords are masked before storing."
    )

    warnings: tuple[str, ...] = Field((), exclude=True, repr=False)
    # Why nobody knows which database was meant. Without a doubt and without a dsn it is the embedded one.
    database_doubt: str | None = Field(None, exclude=True, repr=False)

    @property
    def half_life(self) -> timedelta | None:
        """``half_life_days`` as recall takes it; None when age shall not count."""
        return timedelta(days=self.half_life_days) if self.half_life_days > 0 else None

    def governance(self) -> dict[str, object]:
        """This host's own rules, for ``p_governance``: they may only narrow what the database allows."""
        rules: dict[str, object] = {}
        if self.identity_aliases:
            rules["aliases"] = dict(self.identity_aliases)
        if self.allowed_themes:
            rules["allowed_themes"] = list(self.allowed_themes)
        if self.bench_mode == "reject":
            rules["bench_mode"] = "reject"
        return rules

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for key, value in super().__repr_args__():
            yield key, redact_dsn(value) if isinstance(value, str) else value


def hermes_home(environ: Mapping[str, str] | None = None) -> Path:
    """The host's home folder: ``$HERMES_HOME``, else ``~/.hermes``."""
    configured = (os.environ if environ is None else environ).get("HERMES_HOME", "").strip()
    try:
        return Path(configured or "~/.hermes").expanduser()
    except RuntimeError:  # no such user, or one without a home
        return Path(configured or ".hermes")


def load_settings(home: Path | str | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """The provider's settings, from the home's ``config.yaml``; the environment may name the DSNs instead.

    So may the home's ``.env``, which comes after the environment.
    """
    values, warnings = _read_home(home, environ)
    dotenv, variables = _from_dotenv(home, environ), _from_environment(environ)
    for key, value in {**dotenv, **variables}.items():
        if key in _DSN_KEYS and _is_unset(values.get(key)):
            values[key] = value
    _remember_sources(values, variables, dotenv, _home_folder(home, environ))
    return settings_from_mapping(values, warnings)


def load_command_line_settings(
    home: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
    file: Path | None = None,
) -> Settings:
    """The command line's settings: ``overrides`` (its options) first, then the environment, then the file.

    ``file``, if given, is another ``config.yaml``, which was named on purpose and so goes before the
    environment.
    """
    values, warnings = _read_home(home, environ)
    dotenv, variables = _from_dotenv(home, environ), _from_environment(environ)
    for key, value in dotenv.items():
        values.setdefault(key, value)
    values |= variables
    if file is not None:
        named, complaints = _read_settings(file)
        if not named and not complaints:
            complaints = [f"{file} holds no settings of {_NAME}."]
        values, warnings = values | named, warnings + complaints
    values |= {key: value for key, value in (overrides or {}).items() if value is not None}
    _remember_sources(values, variables, dotenv, _home_folder(home, environ), overrides, file)
    return settings_from_mapping(values, warnings)


def _remember_sources(
    values: Mapping[str, object],
    variables: Mapping[str, object],
    dotenv: Mapping[str, object],
    folder: Path,
    overrides: Mapping[str, object] | None = None,
    file: Path | None = None,
) -> None:
    """Note where the connection strings among ``values`` are from, for the errors about them."""
    for name, key in ENVIRONMENT.items():
        if key not in _DSN_KEYS:
            continue
        # An option takes its value from the variable too, where it is not given.
        places = (
            (variables, name),
            (overrides or {}, f"--{key.replace('_', '-')}"),
            (dotenv, f"{name} in {folder / '.env'}"),
            (values, str(file or folder / "config.yaml")),
        )
        for found, place in places:
            if found.get(key) == values.get(key):
                remember(values.get(key), place)
                break


def settings_from_mapping(values: Mapping[str, object], warnings: Iterable[str] = ()) -> Settings:
    """Settings from plain values, each used if it can be; the module's text says what happens if not."""
    found = list(warnings)
    doubts = list(found)
    usable: dict[str, object] = {}
    for key in Settings.model_fields:
        if key in _NO_SETTINGS or key not in values or _is_unset(values[key]):
            continue
        # An emptied text field of a form says "unset" where unset is a meaning of its own.
        if values[key] == "" and Settings.model_fields[key].default is None:
            continue
        value, warning = _usable(key, values[key])
        if warning:
            found.append(warning)
            if key == "dsn":
                doubts.append(warning)
        if value is not _UNUSABLE:
            usable[key] = value
    unknown = sorted(str(key) for key in values if key not in Settings.model_fields or key in _NO_SETTINGS)
    if unknown:
        found.append(f"Unknown settings of {_NAME} are ignored: {', '.join(unknown)[:200]}.")
    if usable.get("embed_url") and "embed_dim" not in usable:
        model = usable.get("embed_model", DEFAULT_MODEL)
        if model == DEFAULT_MODEL:
            usable["embed_dim"] = DEFAULT_DIM
    return Settings.model_validate(
        usable | {"warnings": tuple(dict.fromkeys(found)), "database_doubt": doubts[0] if doubts else None}
    )


_reported: set[str] = set()


def report_warnings(settings: Settings, logger: logging.Logger = log) -> None:
    """Log what was wrong with the settings, each sentence once per process."""
    for warning in settings.warnings:
        if warning not in _reported:
            _reported.add(warning)
            logger.warning("%s", warning)


_UNUSABLE: Final = object()
# A width is a fact about a model: the nearest allowed one would be as wrong as any other.
_NEVER_CLAMPED: Final = frozenset({"embed_dim"})


def _is_unset(value: object) -> bool:
    return value is None


def _usable(key: str, raw: object) -> tuple[object, str | None]:
    """The value to use (or ``_UNUSABLE``) and a warning, if any."""
    try:
        return getattr(Settings.model_validate({key: raw}), key), None
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
    except (ValueError, OverflowError, RecursionError, TypeError):
        return _UNUSABLE, _warning(key, raw, f"the default {_show_default(key)} is used")
    limits = {"greater_than_equal": "ge", "less_than_equal": "le"}
    if problem["type"] in limits and key not in _NEVER_CLAMPED:
        bound = problem.get("ctx", {})[limits[problem["type"]]]
        return getattr(Settings.model_validate({key: bound}), key), _warning(key, raw, f"{bound} is used")
    return _UNUSABLE, _warning(key, raw, f"the default {_show_default(key)} is used")


def _warning(key: str, raw: object, consequence: str) -> str:
    shown = "this value" if key in _NEVER_SHOWN else redact_dsn(repr(raw))
    if len(shown) > 80:
        shown = f"{shown[:77]}..."
    return f"Setting {_NAME}.{key}: {shown} is not allowed ({allowed_values(key)} is); {consequence}."


def _show_default(key: str) -> str:
    default = Settings.model_fields[key].get_default(call_default_factory=True)
    if default is None or default == {}:
        return "(unset)"
    return str(default).lower() if isinstance(default, bool) else repr(default)


def allowed_values(key: str) -> str:
    """What a setting may be, in words: for warnings, the setup's form and the documentation."""
    field = Settings.model_fields[key]
    kind: Any = field.annotation
    special = {
        "embed_url": "an http:// or https:// address",
        "embed_api_key_env": "the name of an environment variable, not the key itself",
        "allowed_themes": "a list of themes (or a text with commas between them)",
        "identity_aliases": "a map of names to themes (or a text such as ops=operations,mkt=marketing)",
        "write_contexts": "a list of at least one context (or a text with commas between them)",
    }
    if key.endswith("_prefix"):
        return "a text, or none"
    if key in special:
        return special[key]
    bounds = _bounds(field.metadata)
    for part in get_args(kind):
        if get_origin(part) is Annotated:
            bounds |= _bounds(get_args(part)[1:])
            part = get_args(part)[0]
        if part is not type(None) and get_origin(kind) is not Literal:
            kind = part
            break
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(str(choice) for choice in get_args(kind))
    if kind is bool:
        return "true or false"
    if kind is int:
        return "a whole number" + _range(bounds)
    if kind is float:
        return "a number" + _range(bounds)
    return "a text that is not blank"


def _bounds(metadata: Iterable[object]) -> dict[str, float]:
    bounds: dict[str, float] = {}
    for item in metadata:
        for name in ("ge", "le"):
            value: object = getattr(item, name, None)
            if isinstance(value, int | float):
                bounds[name] = value
        nested: object = getattr(item, "metadata", None)
        if isinstance(nested, list):
            bounds |= _bounds(cast("list[object]", nested))
    return bounds


def _range(bounds: Mapping[str, float]) -> str:
    low, high = bounds.get("ge"), bounds.get("le")
    if low is not None and high is not None:
        return f" from {low} to {high}"
    if low is not None:
        return f" of at least {low}"
    return "" if high is None else f" of at most {high}"


def _from_environment(environ: Mapping[str, str] | None) -> dict[str, object]:
    source = os.environ if environ is None else environ
    return {key: source[name].strip() for name, key in ENVIRONMENT.items() if source.get(name, "").strip()}


def _from_dotenv(home: Path | str | None, environ: Mapping[str, str] | None) -> dict[str, object]:
    """The DSNs that the host's setup put into the home's ``.env``, which only the host loads by itself."""
    file = _home_folder(home, environ) / ".env"
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    found: dict[str, str] = {}
    for line in lines:
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and name.strip() in ENVIRONMENT:
            found[name.strip()] = _unquoted(value.strip())
    wanted = _from_environment(found)
    return {key: value for key, value in wanted.items() if key in _DSN_KEYS}


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1]
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return value


def _read_home(
    home: Path | str | None, environ: Mapping[str, str] | None
) -> tuple[dict[str, object], list[str]]:
    return _read_settings(_home_folder(home, environ) / "config.yaml")


def _home_folder(home: Path | str | None, environ: Mapping[str, str] | None) -> Path:
    return hermes_home(environ) if home is None else Path(home)


def _read_settings(path: Path) -> tuple[dict[str, object], list[str]]:
    document, warnings = read_document(path)
    values: dict[str, object] = {}
    for section in reversed(_SECTIONS):
        block = _mapping(_mapping(document).get(section)).get(_NAME)
        if block is None:
            continue
        if not isinstance(block, Mapping):
            warnings.append(f"{section}.{_NAME} in config.yaml is not a map of settings; it is ignored.")
            continue
        values |= {
            str(key): value
            for key, value in cast("Mapping[object, object]", block).items()
            if value is not None
        }
    return values, warnings


def _mapping(value: object) -> Mapping[object, object]:
    return cast("Mapping[object, object]", value) if isinstance(value, Mapping) else {}


def read_document(path: Path) -> tuple[object, list[str]]:
    """What a YAML file holds, and why it holds nothing for us where it should have."""
    import yaml  # here, because most imports of this module read no file

    try:
        if path.is_fifo():
            return None, [f"{path} is a pipe, not a file; the defaults are used."]
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None, []
    except (OSError, UnicodeDecodeError) as error:
        return None, [f"{path} cannot be read ({type(error).__name__}); the defaults are used."]
    try:
        return yaml.safe_load(text), []
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark: object = getattr(error, "problem_mark", None)
        line: object = getattr(mark, "line", None)
        where = f" (line {line + 1})" if isinstance(line, int) else ""
        return None, [f"{path} is not valid YAML{where}; the defaults are used."]
