"""The two tools the model has: ``recall_memory`` and ``recall_conversation``.

Arguments come from a model and may be anything; what cannot be used is a default or a plain sentence in the
result's ``error``. An error always says that memory could not be asked, never that nothing was found.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Final, cast

from hermes_pgsql.client import Memvec
from hermes_pgsql.errors import HermesPgsqlError, InvalidArgument, MemvecError, redact_dsn
from hermes_pgsql.host.tool_schemas import DEFAULT_LIMIT, MAX_LIMIT, WHEN
from hermes_pgsql.link import Link, QuestionVector
from hermes_pgsql.results import RecalledEntry, RecalledTurn

__all__ = ["call"]

SECONDS: Final = 14.0  # for the whole call
CONTENT_CHARS: Final = 2000
_EMBED_SECONDS: Final = 8.0  # at most, so that words still get their turn


def call(link: Link, identity: str, session: str, name: str, arguments: object) -> str:
    """Run a tool and return its result as JSON: ``results``, ``count``, and ``error`` when there is one."""
    given = cast("Mapping[object, object]", arguments if isinstance(arguments, Mapping) else {})
    if name not in ("recall_memory", "recall_conversation"):
        return _error(f"Unknown tool: {name}")
    try:
        asked = _read(given, name, link.settings.scope_default)
        results = _recall(link, identity, session, name, asked)
    except _BadArgument as error:
        return _error(str(error))
    except MemvecError as error:
        return _error(_sentence(error))
    except HermesPgsqlError as error:
        return _error(
            f"Long-term memory cannot be searched right now: {_sentence(error)}"
            " This does not mean that nothing is stored."
        )
    return json.dumps({"results": results, "count": len(results)}, ensure_ascii=False)


# Arguments ------------------------------------------------------------


class _BadArgument(ValueError):  # noqa: N818
    """An argument the model should correct; the text says how."""


@dataclass(frozen=True, slots=True)
class _Asked:
    query: str
    scope: str
    target: str | None
    limit: int
    since: datetime | None
    until: datetime | None


def _read(given: Mapping[object, object], name: str, scope_default: str) -> _Asked:
    query = given.get("query")
    query = query.strip() if isinstance(query, str) else str(query) if isinstance(query, int | float) else ""
    if not query:
        raise _BadArgument("Missing required arg: query")
    default = scope_default if name == "recall_memory" else "current"
    target = _text(given.get("target"), "both").lower()
    if target not in ("memory", "user", "both"):
        raise _BadArgument(f"Invalid target: '{target[:80]}'. Use memory, user or both.")
    scope = _text(given.get("scope"), default)
    if name == "recall_memory" and scope.lower() == "session":
        raise _BadArgument(
            "scope 'session' is for recall_conversation; use current, all or a theme's name here."
        )
    return _Asked(
        query,
        scope,
        None if target == "both" else target,
        _limit(given.get("limit")),
        _moment(given.get("since"), "since", ends_day=False),
        _moment(given.get("until"), "until", ends_day=True),
    )


def _text(value: object, default: str) -> str:
    return value.strip() if isinstance(value, str) and value.strip() else default


def _limit(value: object) -> int:
    try:
        number = float(value) if isinstance(value, int | float | str) else DEFAULT_LIMIT
    except ValueError:
        return DEFAULT_LIMIT
    except OverflowError:  # a whole number too large for a float
        return MAX_LIMIT
    if math.isnan(number):
        return DEFAULT_LIMIT
    return int(max(1, min(MAX_LIMIT, number)))


_AGO: Final = re.compile(
    r"(\d{1,6})\s*(minutes?|min|hours?|h|days?|d|weeks?|w|months?|years?|y)(?:\s+ago)?", re.IGNORECASE
)
_UNITS: Final = {"m": 1 / 1440, "h": 1 / 24, "d": 1.0, "w": 7.0, "mo": 30.5, "y": 365.25}


def _moment(value: object, name: str, *, ends_day: bool) -> datetime | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    text = str(value).strip()
    now = datetime.now(UTC)
    try:
        if ago := _AGO.fullmatch(text):
            unit = ago[2].lower()
            days = int(ago[1]) * _UNITS["mo" if unit.startswith("mo") else unit[0]]
            return now - timedelta(days=days)
        if text.lower() in ("now", "today", "yesterday"):
            day = now.astimezone() - timedelta(days=text.lower() == "yesterday")
            if text.lower() == "now":
                return now
            text = day.date().isoformat()
        moment = datetime.fromisoformat(text)
        if ends_day and re.fullmatch(r"\d{4}-?\d{2}-?\d{2}", text):
            moment += timedelta(days=1, microseconds=-1)
        return moment if moment.tzinfo else moment.astimezone()
    except (ValueError, OverflowError, OSError):
        raise _BadArgument(f"Cannot read {name} '{text[:40]}'. {WHEN}") from None


# Results ------------------------------------------------------------


def _recall(link: Link, identity: str, session: str, name: str, asked: _Asked) -> list[dict[str, object]]:
    ends = monotonic() + SECONDS
    half_life = link.settings.half_life
    query, _ = link.redact(asked.query)
    with link.outbox.meter.recall(name) as timed:
        vector = link.question_vector(query, identity, min(link.settings.embed_timeout, _EMBED_SECONDS))

        def ask(memvec: Memvec, vector: QuestionVector | None) -> list[dict[str, object]]:
            words = query if link.settings.hybrid_search or vector is None else None
            timed.asked(words=words is not None, meaning=vector is not None)
            if name == "recall_memory":
                return [_entry(row) for row in _entries(memvec, identity, words, vector, asked, half_life)]
            return [_turn(row) for row in _turns(memvec, identity, session, words, vector, asked, half_life)]

        return link.ask_near(vector, ask, max(0.5, ends - monotonic()))


def _entries(
    memvec: Memvec,
    identity: str,
    words: str | None,
    vector: QuestionVector | None,
    asked: _Asked,
    half_life: timedelta | None,
) -> list[RecalledEntry]:
    return memvec.recall_memory(
        identity,
        words,
        embedding=vector.embedding if vector else None,
        space=vector.space if vector else None,
        scope=asked.scope,
        target=asked.target,
        limit=asked.limit,
        since=asked.since,
        until=asked.until,
        half_life=half_life,
    )


def _turns(
    memvec: Memvec,
    identity: str,
    session: str,
    words: str | None,
    vector: QuestionVector | None,
    asked: _Asked,
    half_life: timedelta | None,
) -> list[RecalledTurn]:
    return memvec.recall_conversation(
        identity,
        words,
        embedding=vector.embedding if vector else None,
        space=vector.space if vector else None,
        scope=asked.scope,
        limit=asked.limit,
        session_id=session if asked.scope.lower() == "session" else None,
        since=asked.since,
        until=asked.until,
        half_life=half_life,
    )


def _entry(row: RecalledEntry) -> dict[str, object]:
    return {
        "id": row.id,
        "agent_identity": row.agent_identity,
        "target": row.target,
        "ts": row.updated_at.isoformat(),
        **_ranked(row),
    }


def _turn(row: RecalledTurn) -> dict[str, object]:
    return {
        "id": row.id,
        "agent_identity": row.agent_identity,
        "session_id": row.session_id,
        "role": row.role,
        "ts": row.ts.isoformat(),
        **_ranked(row),
    }


def _ranked(row: RecalledEntry | RecalledTurn) -> dict[str, object]:
    fields: dict[str, object] = {
        "score": None if row.score is None else round(row.score, 4),
        "content": row.content[:CONTENT_CHARS],
        "rrf_score": round(row.rrf_score, 6),
    }
    if len(row.themes) > 1:
        fields["themes"] = row.themes
    return fields


def _error(text: str) -> str:
    return json.dumps({"results": [], "count": 0, "error": redact_dsn(text)}, ensure_ascii=False)


def _sentence(error: HermesPgsqlError) -> str:
    """What the model should read: what happened, and a hint when it can act on it."""
    text = error.message.strip()
    text = text[:1].upper() + text[1:]
    if text and text[-1] not in ".!?":
        text += "."
    hint = error.hint.strip() if isinstance(error, MemvecError) else ""
    if isinstance(error, InvalidArgument):
        hint = hint.replace("memvec.", "").replace("p_", "")
    return f"{text} {hint}"[:400].strip()
