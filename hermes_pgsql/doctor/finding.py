"""What a check found: a sentence, how bad it is, and the command that mends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from hermes_pgsql.errors import redact_secrets
from hermes_pgsql.redact import redacted_text

__all__ = ["Finding", "State", "failure", "fine", "unknown", "warning"]


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"  # works, and should not stay so
    FAILURE = "failure"  # does not work
    UNKNOWN = "unknown"  # could not be looked at; ``fix`` says what it takes


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. ``fix`` is a command where there is one, '' when nothing is wrong."""

    area: str
    name: str
    state: State
    message: str
    fix: str = ""

    def without(self, secrets: Iterable[str]) -> Finding:
        """The same without these texts, and without anything that looks like a password."""
        wanted = list(secrets)
        message, fix = (redacted_text(redact_secrets(text, *wanted)) for text in (self.message, self.fix))
        return replace(self, message=message, fix=fix)


def fine(area: str, name: str, message: str) -> Finding:
    return Finding(area, name, State.OK, message)


def warning(area: str, name: str, message: str, fix: str) -> Finding:
    return Finding(area, name, State.WARNING, message, fix)


def failure(area: str, name: str, message: str, fix: str) -> Finding:
    return Finding(area, name, State.FAILURE, message, fix)


def unknown(area: str, name: str, message: str, fix: str) -> Finding:
    return Finding(area, name, State.UNKNOWN, message, fix)
