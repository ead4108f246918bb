"""``add``: store an entry, or a turn of a conversation."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from hermes_pgsql.cli.options import AsJson, Dsn, Theme, not_blank, settings_with
from hermes_pgsql.cli.output import counted, note, say, show_json


class Target(StrEnum):
    memory = "memory"
    user = "user"


class Role(StrEnum):
    user = "user"
    assistant = "assistant"
    system = "system"
    tool = "tool"


def add(
    theme: Theme,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT", show_default=False, help="The text; without one, standard input is read."
        ),
    ] = None,
    target: Annotated[
        Target | None,
        typer.Option(show_default=False, help="Which memory an entry belongs to. Default: memory."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            show_default=False,
            help="Store a turn of this session, not an entry.",
            callback=not_blank,
        ),
    ] = None,
    role: Annotated[
        Role | None, typer.Option(show_default=False, help="Who said it, with --session. Default: user.")
    ] = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Store TEXT as an entry of a theme's memory or, with --session, as a turn of a conversation.

    \b
    Examples:
      hermes-pgsql add --as ops "Ines gets the disk alarms."
      hermes-pgsql add --as ops --session s1 --role user "Who is on call?"
      hermes-pgsql add --as ops < note.txt
    """
    from hermes_pgsql.cli.making import made_if_absent
    from hermes_pgsql.cli.themes import acting_theme
    from hermes_pgsql.cli.vectors import TextVector, vector_of_document
    from hermes_pgsql.opening import open_memvec
    from hermes_pgsql.redact import redact
    from hermes_pgsql.values import clean_text

    if session is None and role is not None:
        raise typer.BadParameter("--role goes with --session.")
    if session is not None and target is not None:
        raise typer.BadParameter("--target is for entries; a turn (--session) has none.")
    text = " ".join(words) if words else _standard_input()
    settings = settings_with(dsn=dsn)
    text, masked = redact(text) if settings.redact_secrets else (text, 0)
    metadata = {"redacted": masked} if masked else None
    memvec = made_if_absent(open_memvec, settings)
    memvec.schema_version()  # a database that is not there is noticed before anything is embedded
    blank = not clean_text(text).strip()
    vector = TextVector(None, None, None) if blank else vector_of_document(text, theme, memvec, settings)
    if session is None:
        kind, where = "entry", str(target or Target.memory)
        row = memvec.add_memory(
            theme, where, text, metadata=metadata, embedding=vector.embedding, space=vector.space
        )
    else:
        kind, where = "turn", str(role or Role.user)
        row = memvec.append_turn(
            theme, session, where, text, metadata=metadata, embedding=vector.embedding, space=vector.space
        )
    agent_identity = memvec.register_agent(theme).agent_identity  # last: a refused text leaves no theme
    acting_theme(memvec, theme, settings)
    if as_json:
        show_json(
            {
                "kind": kind,
                "id": row.id,
                "outcome": row.outcome,
                "agent_identity": agent_identity,
                "embedded": vector.embedding is not None,
                "why_not_embedded": vector.why_not,
                "redacted": masked,
            }
        )
        return
    verb = "Stored" if row.outcome == "added" else "Already there:"
    say(f"{verb} {kind} {row.id} ({where}) of {agent_identity}.")
    if masked:
        note(f"{counted(masked, 'secret was', 'secrets were')} masked (redact_secrets in config.yaml)")
    if vector.why_not:
        note(f"stored without a vector, found by words only: {vector.why_not}")


def _standard_input() -> str:
    if sys.stdin.isatty():
        raise typer.BadParameter("TEXT is missing: give one, or pipe one in.")
    # Bytes, so that what is not UTF-8 is stored as well as it can be instead of failing.
    text = sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    if not text:
        raise typer.BadParameter("TEXT is missing, and standard input is empty.")
    return text
