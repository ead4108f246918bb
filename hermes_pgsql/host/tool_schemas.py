"""The tools as the model sees them. Asked for whenever an agent is built, so nothing is imported here."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["DEFAULT_LIMIT", "MAX_LIMIT", "SCHEMAS", "WHEN"]

DEFAULT_LIMIT: Final = 5
MAX_LIMIT: Final = 20

WHEN: Final = "A date (2026-01-31), a date with time (2026-01-31T12:00), or how long ago (12h, 7d, 2w)."
_SHARED: Final[dict[str, Any]] = {
    "query": {
        "type": "string",
        "description": "What to look for, in plain words: a question, names, an error code.",
    },
    "limit": {
        "type": "integer",
        "description": f"How many results, 1 to {MAX_LIMIT}.",
        "minimum": 1,
        "maximum": MAX_LIMIT,
        "default": DEFAULT_LIMIT,
    },
    "since": {"type": "string", "description": f"Only what is not older. {WHEN}"},
    "until": {"type": "string", "description": "Only what is not newer. Written like since."},
}
SCHEMAS: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "recall_memory",
        "description": "Search the notes kept with the memory tool, by meaning and by words: your own, and"
        " those other agents share.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": _SHARED["query"],
                "scope": {
                    "type": "string",
                    "description": "Whose notes: current (this theme), all (every shared theme), or a theme's"
                    " name.",
                    "default": "current",
                },
                "target": {
                    "type": "string",
                    "enum": ["memory", "user", "both"],
                    "description": "Notes for yourself, notes about the user, or both.",
                    "default": "both",
                },
                **{name: _SHARED[name] for name in ("limit", "since", "until")},
            },
            "required": ["query"],
        },
    },
    {
        "name": "recall_conversation",
        "description": "Search what was said in this and earlier conversations, by meaning and by words.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": _SHARED["query"],
                "scope": {
                    "type": "string",
                    "description": "Which conversations: current (this theme), session (this session), all"
                    " (every shared theme), or a theme's name.",
                    "default": "current",
                },
                **{name: _SHARED[name] for name in ("limit", "since", "until")},
            },
            "required": ["query"],
        },
    },
)
