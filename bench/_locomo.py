"""LoCoMo as retrieval: which turns of a long conversation answer a question.

The data (Maharana et al. 2024, CC BY-NC 4.0, for evaluation only) is not part of this project; NEEDED says
what must be there. Questions of category 5 have no answer and are left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FILE", "FOLDS", "NEEDED", "Question", "Score", "Turn", "read", "scored"]

FOLDS = ("test", "tune")
FILE = "locomo_turns.json"
_UNANSWERABLE = 5
NEEDED = f"""\
--data FOLDER must name a folder with {FILE}, made of LoCoMo:

{{"convs": [{{"id", "speakers": [two names],
            "turns": [[turn id, session number, ISO time, speaker, text, caption or null], …]}}, …],
 "questions": [{{"conv": id, "cat": 1 to 5, "q": text, "ev": [turn ids], "fold": "tune" or "test"}}, …]}}"""


@dataclass(frozen=True)
class Turn:
    conversation: str
    name: str
    session: str
    role: str
    time: str
    text: str


@dataclass(frozen=True)
class Question:
    conversation: str
    text: str
    evidence: frozenset[str]
    fold: str


@dataclass(frozen=True)
class Score:
    recall_5: float
    recall_10: float
    mrr: float


def read(folder: Path, conversations: int | None = None) -> tuple[list[Turn], list[Question]]:
    """Turns and answerable questions of the first `conversations`, or of all."""
    try:
        return _parsed(json.loads((folder / FILE).read_text(encoding="utf-8")), conversations)
    except (LookupError, TypeError, ValueError) as error:
        raise SystemExit(f"{folder / FILE} is not what was expected ({error!r}). {NEEDED}") from None


def _parsed(data: Any, conversations: int | None) -> tuple[list[Turn], list[Question]]:
    chosen = data["convs"][:conversations]
    turns = [
        Turn(
            one["id"],
            name,
            f"{one['id']} {session}",
            "user" if speaker == one["speakers"][0] else "assistant",
            time,
            f"{speaker}: {text}" + (f" [shares {caption}]" if caption else ""),
        )
        for one in chosen
        for name, session, time, speaker, text, caption in one["turns"]
    ]
    names = {one["id"] for one in chosen}
    questions = [
        Question(one["conv"], one["q"], frozenset(one["ev"]), one["fold"])
        for one in data["questions"]
        if one["conv"] in names and one["cat"] != _UNANSWERABLE and one["ev"]
    ]
    return turns, questions


def scored(questions: Sequence[Question], found: Sequence[Sequence[tuple[str, str]]], fold: str) -> Score:
    """Recall at 5 and 10 and the mean reciprocal rank of the first hit; a row is (conversation, turn)."""
    at_5: list[float] = []
    at_10: list[float] = []
    reciprocal: list[float] = []
    for question, rows in zip(questions, found, strict=True):
        if question.fold != fold:
            continue
        hits = [conversation == question.conversation and name in question.evidence
                for conversation, name in rows[:10]]  # fmt: skip
        at_5.append(sum(hits[:5]) / len(question.evidence))
        at_10.append(sum(hits) / len(question.evidence))
        reciprocal.append(1 / (hits.index(True) + 1) if True in hits else 0)
    asked = max(1, len(at_10))
    return Score(sum(at_5) / asked, sum(at_10) / asked, sum(reciprocal) / asked)
