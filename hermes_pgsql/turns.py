"""What of a conversation is worth storing, as plain text.

A turn's content may be a list of parts with pictures, an expanded ``/skill`` call with thousands of
characters of instructions, or hold notes that were recalled for it; and the history of a session holds
summaries and nudges the host wrote itself. Here each is reduced to what the person or the model said, and
what says nothing ("ok, thanks") is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, cast

__all__ = [
    "Turn",
    "is_acknowledgement",
    "is_substantive",
    "said",
    "text_of",
    "turns_of",
    "wants_vector",
    "words_of_user",
]

_ASSISTANT_SUBSTANTIVE: Final = 120
MAX_CHARS: Final = 200_000  # more is a pasted file; nobody recalls its end


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said. ``said_at`` is None when the host does not tell."""

    role: str
    content: str
    said_at: datetime | None = None


def text_of(content: object) -> str:
    """The text of a message's content, written as the host writes it: parts on lines of their own, pictures
    counted in front. Pictures and other data themselves are never text."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [cast("object", content)]
    if not isinstance(content, list | tuple):
        return ""
    texts: list[str] = []
    pictures = 0
    for part in cast("Iterable[object]", content):
        if isinstance(part, str):
            texts.append(part)
            continue
        fields = _mapping(part)
        kind = str(fields.get("type") or "").strip().lower()
        text = fields.get("text")
        if kind in {"text", "input_text", "output_text"} and isinstance(text, str):
            texts.append(text)
        elif kind in {"image_url", "input_image", "image"}:
            pictures += 1
    joined = "\n".join(text for text in texts if text).strip()
    if not pictures:
        return joined
    note = f"[{pictures} image{'' if pictures == 1 else 's'}]"
    return f"{note} {joined}" if joined else note


def words_of_user(content: object) -> str:
    """What the person wrote: without skill texts, recalled blocks and embedded data."""
    return said(_instruction(text_of(content)))


def said(text: str) -> str:
    """``text`` without recalled blocks and embedded data, at a length somebody may have meant."""
    text = _RECALLED.sub("", text)
    text = _UNCLOSED.sub("", text)
    text = _HOST_NOTE.sub("", text)
    text = _FENCE_TAG.sub("", text)
    text = _EMBEDDED_DATA.sub("[data]", text)
    return text.strip()[:MAX_CHARS]


def is_substantive(text: str, min_chars: int) -> bool:
    """Whether a turn says something: not blank, long enough, more than an acknowledgement."""
    text = text.strip()
    return bool(text) and len(text) >= min_chars and not is_acknowledgement(text)


def is_acknowledgement(text: str) -> bool:
    """Whether the text only agrees, thanks, or asks to go on or stop."""
    words = _WORD.findall(text[:200].casefold())
    return len(words) <= _MOST_NODS and all(word in _NODS for word in words)


def wants_vector(role: str, text: str, policy: str) -> bool:
    """Whether a stored turn gets a vector under a ``conversation_embed_policy``."""
    return policy == "all" or (
        policy == "substantive_only" and (role == "user" or len(text) >= _ASSISTANT_SUBSTANTIVE)
    )


def turns_of(messages: Iterable[object], min_chars: int) -> list[Turn]:
    """The substantive turns of a session's history, in order. What the host wrote itself is left out."""
    turns: list[Turn] = []
    for message in messages:
        fields = _mapping(message)
        role = fields.get("role")
        if role not in ("user", "assistant") or _is_marked(fields):
            continue
        content = fields.get("content")
        text = words_of_user(content) if role == "user" else said(text_of(content))
        if text.startswith(_HOST_WRITTEN) or not is_substantive(text, min_chars):
            continue
        turns.append(Turn(cast("str", role), text, _moment(fields.get("timestamp"))))
    return turns


# The host's forms ------------------------------------------------------------

_FENCE_TAG: Final = re.compile(r"</?\s*memory-context\s*>", re.IGNORECASE)
_RECALLED: Final = re.compile(
    r"<\s*memory-context\s*>(?:(?!<\s*memory-context\s*>).)*?</\s*memory-context\s*>",
    re.IGNORECASE | re.DOTALL,
)
# Opened on a line of its own and never closed: the rest cannot be told from what was recalled.
_UNCLOSED: Final = re.compile(
    r"^[ \t]*<\s*memory-context\s*>[ \t]*$.*\Z", re.IGNORECASE | re.DOTALL | re.MULTILINE
)
_HOST_NOTE: Final = re.compile(
    r"\[System note:\s{0,4}The following is recalled memory context,[^\]]{0,300}\]\s{0,4}", re.IGNORECASE
)
_EMBEDDED_DATA: Final = re.compile(
    r"\b(?:data:[\w.+-]{1,60}/[\w.+-]{1,60};base64,[A-Za-z0-9+/=]{40,}(?:\s[A-Za-z0-9+/=]{40,})*|[A-Za-z0-9+/]{1000,}={0,2})"
)
_SKILL: Final = "[IMPORTANT: The user has invoked the "
_SKILL_INSTRUCTION: Final = "The user has provided the following instruction alongside the skill invocation: "
_SKILL_RUNTIME_NOTE: Final = "\n\n[Runtime note:"
_BUNDLE: Final = " skill bundle,"
_BUNDLE_INSTRUCTION: Final = "\nUser instruction: "
_BUNDLE_SKILLS: Final = "\n\n[Loaded as part of the "
_HOST_WRITTEN: Final = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY")


def _instruction(text: str) -> str:
    """The person's own words in an expanded ``/skill`` call; other text as it is."""
    if not text.startswith(_SKILL):
        return text
    if _BUNDLE in text:
        # A bundle has the instruction before the skills, which may quote anything.
        _, found, rest = text.partition(_BUNDLE_INSTRUCTION)
        return rest.partition(_BUNDLE_SKILLS)[0] if found else ""
    _, found, rest = text.rpartition(_SKILL_INSTRUCTION)
    return rest.partition(_SKILL_RUNTIME_NOTE)[0] if found else ""


def _is_marked(message: Mapping[str, object]) -> bool:
    """Whether the host marked the message as one of its own: a summary, a reminder, a nudge, a sentinel."""
    return any(
        value is True
        and name.startswith("_")
        and name.endswith(("_synthetic", "_summary", "_sentinel", "_prefill"))
        for name, value in message.items()
    )


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _moment(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value if value.tzinfo else value.astimezone()
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            return datetime.fromisoformat(value).astimezone()
    except (ValueError, OverflowError, OSError):
        pass
    return None


# Acknowledgements ------------------------------------------------------------

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_NOD_WORDS: Final = """
    ok okay k kk thanks thank you thx ty np yes no not sure got it done cool nice great continue please exit
    cancel stop quit yeah yep yup nope alright all right go on ahead very much a lot many problem sounds looks
    good perfect awesome understood i see makes sense that works never mind hi hello hey morning night bye
    ja nein danke vielen dank bitte gut genau weiter alles klar passt verstanden hallo tschüss
    oui non merci beaucoup d'accord d’accord bien parfait continuez bonjour
    sí si gracias muchas vale perfecto bueno sigue continúa hola
    sì grazie va bene perfetto certo ciao
    sim não obrigado obrigada tudo bem beleza olá
    да нет спасибо хорошо ладно понятно ок вот привет дальше
    好 好的 谢谢 是 是的 不 不是 可以 继续 明白 明白了 行 你好
    はい いいえ ありがとう ありがとうございます 了解 了解です 続けて 네 아니요 감사합니다 알겠습니다
"""
_NODS: Final = frozenset(_NOD_WORDS.split())
_MOST_NODS: Final = 6
