"""What of a conversation is kept, and in which form."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hermes_pgsql.turns import (
    Turn,
    is_acknowledgement,
    is_substantive,
    said,
    text_of,
    turns_of,
    words_of_user,
)

LONG = "A sentence that is long enough to be worth keeping."
SKILL = (
    '[IMPORTANT: The user has invoked the "deploy" skill. The full skill content is loaded below.]\n\n'
    "Step 1. The user has provided the following instruction alongside the skill invocation: is a quote.\n\n"
)
INSTRUCTION = "The user has provided the following instruction alongside the skill invocation: "


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        (7, ""),
        ([], ""),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        (["one", {"type": "output_text", "text": "two"}], "one\ntwo"),
        (
            [{"type": "text", "text": "what is it"}, {"type": "image_url", "image_url": {"url": "data:x"}}],
            "[1 image] what is it",
        ),
        ([{"type": "input_image"}, {"type": "image_url"}], "[2 images]"),
        ([{"type": "tool_result", "text": "secret"}, {"type": "text", "text": None}, 5], ""),
    ],
)
def test_text_of_parts_is_the_hosts(content: object, text: str) -> None:
    assert text_of(content) == text


def test_of_an_expanded_skill_only_the_persons_words_count() -> None:
    assert (
        words_of_user(f"{SKILL}{INSTRUCTION}ship it to staging\n\n[Runtime note: x]") == "ship it to staging"
    )
    assert words_of_user(SKILL.split("The user has provided")[0]) == ""
    bundle = (
        '[IMPORTANT: The user has invoked the "ops" skill bundle, see below.]\n'
        "User instruction: check the disks"
    )
    assert words_of_user(f"{bundle}\n\n[Loaded as part of the ops bundle] …") == "check the disks"
    assert words_of_user(bundle.split("\n")[0]) == ""


def test_recalled_blocks_are_not_part_of_what_was_said() -> None:
    block = "<memory-context>\n[System note: recalled]\nsecret old fact 5511\n</memory-context>\n"
    assert words_of_user(block + LONG) == LONG
    assert said(f"Before; <Memory-Context >secret 5511</memory-context > {LONG}") == f"Before;  {LONG}"
    assert said(f"{LONG}\n<memory-context>\nnever closed 5511") == LONG
    assert said(f"the tag </memory-context> alone; {LONG}") == f"the tag  alone; {LONG}"


def test_pictures_in_text_are_not_kept() -> None:
    assert said(f"look data:image/png;base64,{'iVBOR' * 40} here") == "look [data] here"
    assert said("A" * 5000) == "[data]"
    assert said("word " * 1000) == ("word " * 1000).strip()


@pytest.mark.parametrize(
    "text",
    ["ok", "OK!", "Thanks.", "ok ok", "yes please", "cool 😎", "👍", "好的", "вот", "d'accord", "…"],
)
def test_acknowledgements(text: str) -> None:
    assert is_acknowledgement(text)
    assert not is_substantive(text, 0)


@pytest.mark.parametrize("text", ["no, use port 5433", "nginx", "yes, the second one", "stop the server"])
def test_short_answers_with_content_are_none(text: str) -> None:
    assert not is_acknowledgement(text)
    assert is_substantive(text, 0)
    assert not is_substantive(text, 40)


def test_exactly_the_least_length_is_enough() -> None:
    assert is_substantive("x" * 40, 40)
    assert not is_substantive(f"  {'x' * 39}  ", 40)


def test_history_without_what_the_host_wrote_itself() -> None:
    def message(role: str, content: Any, **marks: Any) -> dict[str, Any]:
        return {"role": role, "content": content, **marks}

    history = [
        message("system", LONG),
        message(
            "user",
            f"1 {LONG}",
            timestamp=1_700_000_000.5,
            api_content=f"<memory-context>old</memory-context>{LONG}",
        ),
        message("assistant", None, tool_calls=[{"id": "x"}]),
        message("tool", LONG),
        message("assistant", f"2 {LONG}"),
        message("user", f"[CONTEXT COMPACTION — REFERENCE ONLY] {LONG}"),
        message("assistant", LONG, _compressed_summary=True),
        message("user", LONG, _todo_snapshot_synthetic=True),
        message("user", LONG, _empty_recovery_synthetic=True),
        message("assistant", LONG, _empty_terminal_sentinel=True),
        message("user", "ok"),
        message("user", f"3 {LONG}", _db_persisted=True),
        "not a message",
    ]
    assert turns_of(history, 40) == [
        Turn("user", f"1 {LONG}", datetime(2023, 11, 14, 22, 13, 20, 500000, UTC)),
        Turn("assistant", f"2 {LONG}"),
        Turn("user", f"3 {LONG}"),
    ]
