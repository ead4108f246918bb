"""The memory provider ``pgvector`` of hermes-agent: every hook of the host, each a few lines.

The host makes one provider per agent (on its API server one per request), calls the hooks from several
threads, and may never end one. So a provider holds only what belongs to its session; the rest is in the
``Link`` that all providers of a home share. Writes go to the outbox and return at once. No hook raises,
before or without ``initialize`` either, and importing this module loads neither driver nor settings.
"""

# ruff: noqa: ARG002 (the host's signatures)

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar, cast

from hermes_pgsql.conversation import Conversation
from hermes_pgsql.host.schema import CONFIG_FIELDS, READ_ONLY, SYSTEM_PROMPT

if TYPE_CHECKING:
    from uuid import UUID

    from hermes_pgsql.link import Link

    class _Base:
        """The host's ``agent.memory_provider.MemoryProvider``."""
else:
    try:
        # Only this name: another one of the host's that is missing must not cost us the base class.
        from agent.memory_provider import MemoryProvider as _Base
    except ImportError:
        _Base = object

__all__ = ["PgvectorProvider", "register"]

NAME: Final = "pgvector"
_NEEDED: Final = ("psycopg", "psycopg_pool", "pgvector", "pydantic", "yaml", "httpx")
_DELIMITER: Final = "\n§\n"
_TOOLS_UNREADY: Final = (
    "Long-term memory is not ready in this session. This does not mean that nothing is stored."
)

_TASK_CHARS: Final = 500
_DELEGATION_CHARS: Final = 8000

log = logging.getLogger(__name__)

Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")


def _soft(
    default: Result,
) -> Callable[
    [Callable[Concatenate[PgvectorProvider, Parameters], Result]],
    Callable[Concatenate[PgvectorProvider, Parameters], Result],
]:
    """A hook that answers ``default`` instead of raising; the first error of each hook is a warning."""

    def wrap(
        hook: Callable[Concatenate[PgvectorProvider, Parameters], Result],
    ) -> Callable[Concatenate[PgvectorProvider, Parameters], Result]:
        name = hook.__name__

        @functools.wraps(hook)
        def guarded(
            self: PgvectorProvider, /, *arguments: Parameters.args, **named: Parameters.kwargs
        ) -> Result:
            try:
                return hook(self, *arguments, **named)
            except Exception as error:
                level = logging.DEBUG if name in _failed else logging.WARNING
                _failed.add(name)
                log.log(level, "%s failed: %s", name, type(error).__name__, exc_info=level == logging.DEBUG)
                return default

        return guarded

    return wrap


_failed: set[str] = set()


class PgvectorProvider(_Base):
    """See the module's text. Made without arguments; ``initialize`` gives it a session."""

    def __init__(self) -> None:
        self._link: Link | None = None
        self._home: Path | None = None
        self._talk: Conversation = Conversation("default")
        self._identity: str = "default"
        self._profile: str = "default"
        self._context: str = "primary"
        self._platform: str = ""
        self._parent: str | None = None
        self._writes: bool = False

    # What the host asks before anything else ------------------------------------------------------------

    @property
    def name(self) -> str:
        return NAME

    def is_available(self) -> bool:
        """Whether everything that is needed is installed. Asks neither database nor network."""
        return self.unavailable_reason() == ""

    def unavailable_reason(self) -> str:
        """Why it is not available, as a sentence with a remedy; '' when it is."""
        missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        if not missing:
            return ""
        from hermes_pgsql.installing import install_again

        command = install_again(sys.executable)
        return f"not installed in this Python environment: {', '.join(missing)}; run: {command}"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        from hermes_pgsql.host.tool_schemas import SCHEMAS

        return json.loads(json.dumps(SCHEMAS))

    def get_config_schema(self) -> list[dict[str, Any]]:
        return json.loads(json.dumps(CONFIG_FIELDS))

    @_soft(cast("list[str]", []))
    def backup_paths(self) -> list[str]:
        """Nothing: our files are in the home, and a running database is not backed up as files."""
        return []

    def save_config(self, values: Mapping[str, Any], hermes_home: str) -> None:
        """Merge the settings into ``memory.pgvector`` of the home's config.yaml. Raises what went wrong."""
        from hermes_pgsql.host.config_file import save_settings

        save_settings(Path(hermes_home), values)

    def post_setup(self, hermes_home: str, config: dict[str, Any]) -> None:
        """Ask for database and embeddings, try both, and write the configuration."""
        from hermes_pgsql.host.setup import run

        run(Path(hermes_home), config)

    @_soft(cast("dict[str, Any]", {}))
    def get_status_config(self, provider_config: object = None) -> dict[str, Any]:
        """What ``hermes memory status`` prints: settings without secrets, whether the database is ready
        (which takes a few seconds at most), and what waits in the outbox."""
        from hermes_pgsql.host.status import status_of

        return status_of(self._home, provider_config, self.unavailable_reason())

    @_soft("")
    def identity_signature(self) -> str:
        """Changes when rules change by which themes are chosen, so that the host makes agents anew."""
        from hermes_pgsql.config import hermes_home
        from hermes_pgsql.link import settings_of

        settings = settings_of(self._home or hermes_home())
        rules = [settings.governance(), list(settings.write_contexts)]
        return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()[:16]

    # A session begins, changes and ends ------------------------------------------------------------

    @_soft(None)
    def initialize(self, session_id: str = "", **kwargs: Any) -> None:
        """Take up a session. Contacts nobody: the first write or question does."""
        from hermes_pgsql.config import hermes_home
        from hermes_pgsql.link import Link

        home = _text(kwargs.get("hermes_home"))
        self._home = Path(home) if home else hermes_home()
        self._talk = Conversation(_text(session_id) or "default")
        self._profile = _first(
            _unless_default(kwargs.get("agent_identity")),
            kwargs.get("agent_workspace"),
            kwargs.get("agent_identity"),
        )
        self._identity = _first(kwargs.get("gateway_session_key"), self._profile)
        self._context = (_text(kwargs.get("agent_context")) or "primary").lower()
        self._platform = _text(kwargs.get("platform"))
        self._parent = _text(kwargs.get("parent_session_id")) or None
        self._link = link = Link.of(self._home)
        self._writes = self._context in link.settings.write_contexts
        if self._writes:
            link.register(self._identity)
            self._reconcile(only_changes=not link.settings.bulk_sync_on_init)

    @_soft("")
    def system_prompt_block(self) -> str:
        if self._link is None:
            return ""
        return SYSTEM_PROMPT if self._writes else SYSTEM_PROMPT + READ_ONLY

    @_soft(None)
    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        reason: str = "",
        **kwargs: Any,
    ) -> None:
        new = _text(new_session_id)
        if not new:
            return
        if self._link is not None and rewound:
            self._link.forget_turn(new)
        self._talk = self._talk.moved(new, reset=reset, rewound=rewound, reason=reason)

    @_soft(None)
    def on_session_end(self, messages: Sequence[object] = ()) -> None:
        """Store what a turn hook did not bring. May come at any time, again, and with an old history."""
        link = self._link
        if link is None or not self._writes:
            return
        self._reconcile(only_changes=True)
        history, talk = list(messages), self._talk
        if not link.settings.sync_turns or talk.is_of_before(history):
            return
        from hermes_pgsql.turns import turns_of

        missed: list[dict[str, object]] = []
        for turn in turns_of(history, link.settings.turn_min_chars):
            if turn.said_at is not None and turn.said_at < talk.started:
                continue  # of an earlier process, which had its own hooks
            if not talk.has_captured(turn.role, turn.content):
                moment = turn.said_at or talk.began(turn.content)
                missed.append(self._turn(link, turn.role, turn.content, moment))
        self._put_turns(link, missed)

    @_soft(None)
    def shutdown(self) -> None:
        """Wait a bounded time for the outbox. Nothing depends on it; the provider can be used again."""
        if self._link is not None and self._writes:
            self._link.flush(min(4.0, self._link.settings.shutdown_drain_timeout))

    # Turns ------------------------------------------------------------

    @_soft(None)
    def on_turn_start(self, turn_number: int = 0, message: str = "", **kwargs: Any) -> None:
        if _text(message):
            self._talk.begin_turn(_text(message))
        if self._writes:
            self._reconcile(only_changes=True)

    @_soft("")
    def prefetch(self, query: str = "", *, session_id: str = "", **kwargs: Any) -> str:
        """What bears on the question, or ''. Takes ``prefetch_budget`` seconds at most."""
        link = self._link
        if link is None or not _text(query):
            return ""
        from hermes_pgsql.prefetch import recall

        found = recall(link, self._identity, query, self._talk)
        self._talk.recalled(query, found)
        return found.text

    def queue_prefetch(self, query: str = "", *, session_id: str = "", **kwargs: Any) -> None:
        """Nothing: a recall for the next turn would answer the question of this one."""

    @_soft(None)
    def sync_turn(
        self,
        user_content: object = "",
        assistant_content: object = "",
        *,
        session_id: str = "",
        messages: Sequence[object] | None = None,
        **kwargs: Any,
    ) -> None:
        link = self._link
        if link is None:
            return
        from hermes_pgsql.turns import is_substantive, said, text_of, words_of_user

        asked, answered = words_of_user(user_content), said(text_of(assistant_content))
        session = _text(session_id) or self._talk.session
        link.remember_turn(session, f"{asked[:1000]}\n{answered[:600]}".strip())
        self._talk.complete_turn(asked, messages)
        if not self._writes:
            return
        self._reconcile(only_changes=True)
        if not link.settings.sync_turns:
            return
        now = datetime.now(UTC)
        began = self._talk.began(_text(user_content)) or now
        author = _text(kwargs.get("turn_author"))[:80]
        turns: list[dict[str, object]] = []
        for role, text, moment in (("user", asked, began), ("assistant", answered, now)):
            if is_substantive(text, link.settings.turn_min_chars):
                more = {"author": author} if author and role == "user" else {}
                turns.append(self._turn(link, role, text, moment, session=session, metadata=more))
        self._put_turns(link, turns)

    def _turn(
        self,
        link: Link,
        role: str,
        text: str,
        moment: datetime | None,
        *,
        session: str | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> dict[str, object]:
        """The arguments of a turn to be stored, which counts as stored from now on."""
        from hermes_pgsql.turns import wants_vector

        embed = wants_vector(role, text, link.settings.conversation_embed_policy)
        content, redacted = link.redact(text)
        self._talk.captured(role, text)
        return {
            "session_id": session or self._talk.session,
            "role": role,
            "content": content,
            "parent_session_id": self._parent,
            "ts": (moment or datetime.now(UTC)).isoformat(),
            "metadata": self._origin(redacted, metadata),
            **({} if embed else {"embed": False}),
        }

    def _put_turns(self, link: Link, turns: Sequence[Mapping[str, object]]) -> None:
        if turns:
            link.outbox.put_all(
                [("append_turn", self._identity, turn) for turn in turns], link.settings.governance()
            )

    @_soft(None)
    def on_delegation(
        self, task: str = "", result: str = "", *, child_session_id: str = "", **kwargs: Any
    ) -> None:
        """Record who was given what, and the outcome as a turn of this session."""
        link = self._link
        if link is None or not self._writes:
            return
        from hermes_pgsql.turns import said, text_of

        asked, answered = said(text_of(task)), said(text_of(result))
        child = _text(child_session_id)
        # Before anything is cut off: half a secret may look like none.
        asked, masked_in_task = link.redact(asked)
        answered, masked_in_result = link.redact(answered)
        self._put(
            link,
            "record_delegation",
            {
                "session_id": self._talk.session,
                "child_session_id": child or None,
                "child_identity": _text(kwargs.get("child_identity")) or None,
                "attrs": {"task": asked[:_TASK_CHARS], "result_chars": len(answered)},
            },
        )
        if link.settings.sync_turns and (asked or answered):
            text = f"[delegation] task: {asked}\nresult: {answered}"[:_DELEGATION_CHARS]
            more: dict[str, object] = {"kind": "delegation", "child_session_id": child}
            if masked := masked_in_task + masked_in_result:
                more["redacted"] = masked
            self._put_turns(link, [self._turn(link, "assistant", text, datetime.now(UTC), metadata=more)])

    @_soft("")
    def on_pre_compress(self, messages: Sequence[object] = (), **kwargs: Any) -> str:
        """Nothing for the summary: what was said is stored word for word."""
        return ""

    # Notes ------------------------------------------------------------

    @_soft(None)
    def on_memory_write(
        self,
        action: str,
        target: str,
        content: str = "",
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Mirror a write of the built-in memory tool: who wrote it. The file itself follows with the turn."""
        link = self._link
        target = _text(target) or "memory"
        if link is None or not self._writes or target not in ("memory", "user"):
            return
        told = {**(metadata or {}), **kwargs}
        old = _text(told.get("old_text")) or _text(told.get("replaces"))
        previous = _text(told.get("previous_content"))
        entries = [entry for part in str(content or "").split(_DELIMITER) if (entry := part.strip())]
        if action == "remove":
            self._remove(link, target, old or _text(content), previous)
        elif action == "replace" and entries:
            self._write(link, target, entries[0], told, old, previous)
            entries = entries[1:]
        if action in ("add", "replace"):
            for entry in entries:
                self._write(link, target, entry, told)
        # A file that waits to be read goes behind this write, so that it finds the entry in its theme. One
        # that was read just before this hook is read again with the turn, and what was taken for the home's
        # own moves. It is not queued here: of several writes of one call, each comes with a call of it.
        self._expect_change(target)
        if link.marked_files.get(target):
            waits = link.outbox.file_waits(self._memory_file(link, target))
            link.marked_files[target] = waits
            if waits:
                self._put_file(link, target)

    def _write(
        self,
        link: Link,
        target: str,
        content: str,
        told: Mapping[str, Any],
        old: str = "",
        previous: str = "",
    ) -> None:
        text, redacted = link.redact(content)
        more = {"origin": _text(told.get("write_origin"))} if _text(told.get("write_origin")) else {}
        arguments: dict[str, object] = {
            "target": target,
            "content": text,
            "metadata": self._origin(redacted, {"session_id": self._talk.session, **more}),
            "source": str(self._source()),
        }
        if old or previous:
            arguments |= {
                "old_text": link.redact(old)[0] or None,
                "previous_content": link.redact(previous)[0] or None,
            }
        self._put(link, "replace_memory" if old or previous else "add_memory", arguments)

    def _remove(self, link: Link, target: str, old: str, previous: str) -> None:
        if not (old or previous):
            return
        self._put(
            link,
            "remove_memory",
            {
                "target": target,
                "old_text": link.redact(old)[0] or None,
                "previous_content": link.redact(previous)[0] or None,
                "source": str(self._source()),
            },
        )

    @_soft(None)
    def _reconcile(self, *, only_changes: bool) -> None:
        """Queue the home's memory files if they changed since this process looked last."""
        link, home = self._link, self._home
        if link is None or home is None:
            return
        from hermes_pgsql.host.home import changed_files

        for target, first in changed_files(home):
            if not (first and only_changes):
                self._put_file(link, target)

    def _expect_change(self, target: str) -> None:
        from hermes_pgsql.host.home import expect_change

        if self._home is not None:
            expect_change(self._home, target)

    def _put_file(self, link: Link, target: str) -> None:
        path = self._memory_file(link, target)
        link.outbox.put_file(self._profile, target, path, self._source(), link.settings.governance())
        link.marked_files[target] = True

    def _memory_file(self, link: Link, target: str) -> Path:
        from hermes_pgsql.host.home import memory_file

        return memory_file(link.home, target)

    # Tools ------------------------------------------------------------

    def handle_tool_call(self, tool_name: str, args: object = None, **kwargs: Any) -> str:
        """The result of a tool as JSON. Errors are plain sentences in it."""
        if self._link is None:
            return json.dumps({"results": [], "count": 0, "error": _TOOLS_UNREADY})
        try:
            from hermes_pgsql.recall_tools import call

            return call(self._link, self._identity, self._talk.session, tool_name, args)
        except Exception as error:  # noqa: BLE001 (the host would show its text to the model)
            log.warning("The tool %s failed: %s", tool_name, type(error).__name__)
            return json.dumps({"results": [], "count": 0, "error": "The search failed unexpectedly."})

    # Helpers ------------------------------------------------------------

    def _put(self, link: Link, op: str, arguments: Mapping[str, object]) -> None:
        link.outbox.put(op, self._identity, arguments, link.settings.governance())

    def _origin(self, redacted: int, more: Mapping[str, object] | None = None) -> dict[str, object]:
        """Where a row is from, for its metadata."""
        origin: dict[str, object] = {"context": self._context, **(more or {})}
        if self._platform:
            origin["platform"] = self._platform
        if redacted:
            origin["redacted"] = redacted
        return origin

    def _source(self) -> UUID:
        from hermes_pgsql.host.home import source_of

        assert self._home is not None  # noqa: S101 (set with the link)
        return source_of(self._home)


def register(ctx: Any) -> None:
    """Hand a new provider to the host."""
    ctx.register_memory_provider(PgvectorProvider())


def _text(value: object) -> str:
    """A text without blanks around it; '' for everything that is none."""
    return value.strip() if isinstance(value, str) else ""


def _unless_default(value: object) -> str:
    text = _text(value)
    return "" if text.lower() == "default" else text


def _first(*values: object) -> str:
    return next((text for value in values if (text := _text(value))), "default")
