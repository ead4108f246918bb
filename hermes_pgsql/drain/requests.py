"""From what an outbox holds to what ``apply_ops`` takes, and from its answers to the vectors then due."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from uuid import uuid4

from hermes_pgsql.memory_file import read_entries
from hermes_pgsql.outbox_store import Operation, Refusal, VectorJob

if TYPE_CHECKING:
    from hermes_pgsql.results import OpResult

__all__ = ["FRESH_FILE", "before_fresh_file", "outstanding", "prepare"]

#: Who changed a memory file is heard by its hook, a moment later; until then the file is not read.
FRESH_FILE: Final = 0.3  # seconds


def before_fresh_file(operations: Sequence[Operation]) -> Sequence[Operation]:
    """The operations up to the first that reads a file which changed this very moment."""
    for place, operation in enumerate(operations):
        if operation.file is not None and _is_fresh(Path(operation.file)):
            return operations[:place]
    return operations


def _is_fresh(path: Path) -> bool:
    try:
        age = time.time() - path.stat().st_mtime
    except OSError:
        return False
    return 0 <= age < FRESH_FILE


def prepare(
    operations: Sequence[Operation], redact: Callable[[str], str] | None
) -> tuple[list[tuple[Operation, dict[str, object]]], list[Refusal], list[Operation]]:
    """The operations as ``apply_ops`` wants them, those that cannot be sent, those with nothing to say.

    ``redact`` is applied to the entries of memory files.
    """
    ready: list[tuple[Operation, dict[str, object]]] = []
    refused: list[Refusal] = []
    skipped: list[Operation] = []
    for operation in operations:
        try:
            request = _request(operation)
            if operation.file is not None:
                contents = _file_contents(Path(operation.file), redact)
                if contents is None:
                    skipped.append(operation)
                    continue
                # Never the marker's own id: what was recorded for it may have been another state of the file.
                request |= {"op_id": str(uuid4()), "contents": contents}
                del request["path"]
        except OSError as error:
            name = Path(operation.file or "").name
            refused.append(Refusal(operation, "file", f"{name} cannot be read: {error.strerror or error}"))
        except ValueError as error:
            refused.append(Refusal(operation, "json", f"What was put cannot be read back: {error}"))
        else:
            ready.append((operation, request))
    return ready, refused, skipped


def _request(operation: Operation) -> dict[str, object]:
    arguments = cast("object", json.loads(operation.arguments))
    if not isinstance(arguments, dict):
        raise ValueError("it is no object")
    governance = cast("object", json.loads(operation.governance)) if operation.governance else None
    return {
        **cast("dict[str, object]", arguments),
        "op_id": operation.op_id,
        "op": operation.op,
        "identity": operation.identity,
        "governance": governance,
    }


def _file_contents(path: Path, redact: Callable[[str], str] | None) -> list[str] | None:
    entries = read_entries(path)
    if entries is None or redact is None:
        return entries
    return list(dict.fromkeys(redact(entry) for entry in entries))


def outstanding(operation: Operation, request: dict[str, object], result: OpResult) -> Iterable[VectorJob]:
    """The rows an operation wrote whose vector is outstanding."""

    def job(kind: str, row_id: int, content_hash: bytes, content: object) -> VectorJob:
        return VectorJob(kind, row_id, content_hash, str(content), operation.identity, operation.governance)

    if operation.op == "sync_memories":
        contents = cast("list[str]", request.get("contents") or [])
        rows = cast("list[dict[str, object]]", (result.detail or {}).get("rows") or [])
        for row in rows:
            content = contents[cast("int", row["position"])]
            content_hash = bytes.fromhex(cast("str", row["content_hash"]))
            yield job("entry", cast("int", row["id"]), content_hash, content)
        return
    if result.id is None or result.content_hash is None:
        return
    if operation.op == "append_turn":
        # One that was there before has its vector, or whoever wrote it still sees to that.
        if result.outcome == "added":
            yield job("turn", result.id, result.content_hash, request.get("content"))
    elif operation.op in {"add_memory", "replace_memory"}:
        yield job("entry", result.id, result.content_hash, request.get("content"))
