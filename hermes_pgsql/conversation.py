"""What one provider knows of the conversation it serves: what was stored, shown, and is still in the window.

The host tells of it in pieces and not always in order: a turn may be stored after the next one began, a
session's end may come before its last turn, again, or with the history of the session before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hermes_pgsql.prefetch import Recall, Shown
    from hermes_pgsql.results import Prefetched

__all__ = ["Conversation"]

_CAPTURED_AT_MOST: Final = 4000
_BEGUN_AT_MOST: Final = 16


class Conversation:
    """The conversation in session ``session``, since the provider took it up."""

    def __init__(self, session: str, message_before: object = None) -> None:
        self.session: str = session
        self.started: datetime = datetime.now(UTC)
        # Sessions whose turns the model still sees, and since when (None: all of them).
        self._window: dict[str, datetime | None] = {session: None}
        # Role and hash of what was stored.
        self._captured: dict[bytes, None] = {}
        self._begun: dict[str, datetime] = {}
        # The last message of this conversation and of the one before it: the host's own objects.
        self._last_message: object = None
        self._message_before: object = message_before
        self._recalled: tuple[str, tuple[Shown, ...]] = ("", ())
        self.shown: set[Shown] = set()

    def moved(self, session: str, *, reset: bool, rewound: bool, reason: str) -> Conversation:
        """The conversation after the host switched to ``session``: this one, or a new one."""
        if reason == "compression":
            # What was said before is a summary now, so it may be recalled again.
            self._window = dict.fromkeys((*self._window, session), datetime.now(UTC))
            self.shown.clear()
        elif rewound or session == self.session:
            self.shown.clear()
        elif reason == "branch" and not reset:
            self._window[session] = None
        else:
            return Conversation(session, self._last_message)
        self.session = session
        return self

    # What the model sees ------------------------------------------------------------

    def whole_session(self) -> str | None:
        """The session of which nothing need be recalled; None when it was compressed."""
        return self.session if self._window.get(self.session, self.started) is None else None

    def in_window(self, row: Prefetched) -> bool:
        """Whether the model still sees this turn as it was said."""
        if row.session_id not in self._window:
            return False
        since = self._window[row.session_id]
        return since is None or row.ts >= since

    def recalled(self, query: str, recall: Recall) -> None:
        """Note what is shown to the model with the message ``query``, if its turn completes."""
        self._recalled = (query.strip(), recall.shown)

    # Turns ------------------------------------------------------------

    def begin_turn(self, asked: str) -> None:
        self._begun.pop(asked, None)
        self._begun[asked] = datetime.now(UTC)
        while len(self._begun) > _BEGUN_AT_MOST:
            del self._begun[next(iter(self._begun))]

    def began(self, asked: str) -> datetime | None:
        """When the turn began in which this was asked, if it is one of the last."""
        return self._begun.get(asked)

    def complete_turn(self, asked: str, messages: Sequence[object] | None) -> None:
        """The turn is done: its block stays in the conversation, which ends with the last of ``messages``."""
        query, shown = self._recalled
        if query and query == asked:
            self.shown.update(shown)
        self._recalled = ("", ())
        if messages:
            self._last_message = messages[-1]

    def is_of_before(self, messages: Sequence[object]) -> bool:
        """Whether this is the history of the conversation before: /new, then an end without another turn."""
        if messages and messages[-1] is self._message_before:
            return True
        self._last_message = messages[-1] if messages else self._last_message
        return False

    def has_captured(self, role: str, text: str) -> bool:
        return _digest(role, text) in self._captured

    def captured(self, role: str, text: str) -> None:
        self._captured[_digest(role, text)] = None
        while len(self._captured) > _CAPTURED_AT_MOST:
            del self._captured[next(iter(self._captured))]


def _digest(role: str, text: str) -> bytes:
    return hashlib.sha256(f"{role}:{text}".encode("utf-8", "replace")).digest()
