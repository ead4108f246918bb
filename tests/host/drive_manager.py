"""Runs in the environment of the host: its loader, memory manager and memory tool drive the provider.

    python drive_manager.py SESSION < a JSON list of steps

Each step is [name, arguments]; prints a JSON list with what each returned. The built-in memory tool's calls
reach the provider as they do in the host's tool loop.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from agent.memory_manager import MemoryManager, build_memory_context_block, normalize_tool_schema
from agent.memory_provider import MemoryProvider
from hermes_constants import get_hermes_home
from plugins.memory import load_memory_provider
from tools.memory_tool import MemoryStore, memory_tool


class Driver:
    def __init__(self, session: str) -> None:
        self.session = session
        self.provider = load_memory_provider("pgvector")
        self.manager = MemoryManager()
        self.manager.add_provider(self.provider)
        self.store = MemoryStore()
        self.store.load_from_disk()

    def about(self) -> dict[str, Any]:
        names = [name for name in dir(MemoryProvider) if not name.startswith("_")]
        again = load_memory_provider("pgvector")
        return {
            "base": isinstance(self.provider, MemoryProvider),
            "missing": [name for name in names if not hasattr(self.provider, name)],
            "new_each_time": again is not self.provider,
            "name": self.provider.name,
            "available": self.provider.is_available(),
            "tools": [normalize_tool_schema(schema)["name"] for schema in self.provider.get_tool_schemas()],
            "fields": [field["key"] for field in self.provider.get_config_schema()],
            "backup": self.provider.backup_paths(),
        }

    def initialize(self, **more: Any) -> None:
        self.manager.initialize_all(
            session_id=self.session,
            platform="cli",
            hermes_home=str(get_hermes_home()),
            agent_context="primary",
            agent_identity="default",
            agent_workspace="hermes",
            warning_callback=print,
            status_callback=print,
            **more,
        )

    def memory(self, **given: Any) -> bool:
        given.setdefault("target", "memory")
        result = memory_tool(
            action=given.get("action"),
            target=given["target"],
            content=given.get("content"),
            old_text=given.get("old_text"),
            operations=given.get("operations"),
            store=self.store,
        )
        about = {"write_origin": "assistant_tool", "session_id": self.session, "tool_name": "memory"}
        self.manager.notify_memory_tool_write(result, given, build_metadata=lambda: about)
        return bool(json.loads(result)["success"])

    def files(self) -> dict[str, list[str]]:
        return {target: list(self.store._entries_for(target)) for target in ("memory", "user")}

    def prompt(self) -> str:
        return self.manager.build_system_prompt()

    def start_turn(self, number: int, message: str) -> None:
        self.manager.on_turn_start(number, message)

    def prefetch(self, query: str) -> dict[str, Any]:
        text = self.manager.prefetch_all(query)
        return {"text": text, "fenced": text in build_memory_context_block(text)}

    def turn(self, user: str, assistant: str) -> bool:
        history = [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
        self.manager.sync_all(user, assistant, session_id=self.session, messages=history)
        self.manager.queue_prefetch_all(user, session_id=self.session)
        return self.manager.flush_pending(timeout=90)

    def tool(self, name: str, arguments: Any) -> Any:
        return json.loads(self.manager.handle_tool_call(name, arguments))

    def switch(self, session: str, **more: Any) -> None:
        self.manager.on_session_switch(session, **more)

    def delegate(self, task: str, result: str, child: str) -> None:
        self.manager.on_delegation(task, result, child_session_id=child)

    def pre_compress(self, *texts: str) -> str:
        return self.manager.on_pre_compress([{"role": "user", "content": text} for text in texts])

    def end(self, *texts: str) -> None:
        roles = ("user", "assistant")
        self.manager.on_session_end(
            [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
        )

    def settle(self) -> bool:
        """Until all is in the database. A flush ends early at a sign of an outage."""
        ends = time.monotonic() + 90.0
        while not (sent := self.provider._link.flush(10.0)) and time.monotonic() < ends:
            pass
        return sent

    def shutdown(self) -> dict[str, Any]:
        began = time.monotonic()
        self.manager.shutdown_all()
        self.provider.shutdown()
        threads = [thread.name for thread in threading.enumerate() if not thread.daemon]
        return {
            "seconds": time.monotonic() - began,
            "threads": threads,
            "after": self.provider.prefetch("x y z"),
        }


def main() -> None:
    driver = Driver(sys.argv[1])
    results: list[Any] = []
    for name, arguments in json.load(sys.stdin):
        call = getattr(driver, name)
        results.append(call(**arguments) if isinstance(arguments, dict) else call(*arguments))
    sys.stdout.write("\n" + json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
