"""The durable queue between the host and the database: one SQLite file per HERMES_HOME.

``put`` returns as soon as the operation is in the file, so it survives the death of the process (not of the
machine's power) and waits for nobody. The drain (``drain/``) takes operations out in order. Everything here
is safe for threads, for several processes on one home, and over a fork.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, TypeVar, cast
from uuid import UUID, uuid4

from hermes_pgsql.meter import Meter
from hermes_pgsql.outbox_store import (
    Operation,
    OutboxTooNew,
    Refusal,
    Store,
    VectorJob,
    is_corrupt,
    text_of,
)

__all__ = ["Batch", "Counts", "Outbox", "Poison", "Trouble", "VectorBatch"]

FOLDER: Final = "hermes-pgsql"
FILE: Final = "outbox.db"
LOCK_FILE: Final = "outbox.lock"
# How long the file is left alone after it could not be used, in seconds.
RETRY_AFTER: Final = 5.0
# A write-ahead log of this many bytes is cleared when there is nothing else to do.
TIDY_ABOVE: Final = 1_000_000
_VECTORS: Final = "vectors"

#: What one process at a time may do with a home's operations: send them, or add vectors.
Part = Literal["text", "vectors"]
_LOCK_BYTE: Final[dict[str, int]] = {"text": 0, "vectors": 1, "opening": 2}
_OPENING_WAIT: Final = 2.0

Result = TypeVar("Result")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many operations wait for the database, rows wait for a vector, and operations are set aside."""

    waiting: int
    sent: int
    poison: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """What an attempt failed with last, and when."""

    message: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Poison:
    """An operation the database refused. ``arguments`` are as they were put."""

    op_id: UUID
    op: str
    identity: str | None
    arguments: Mapping[str, object]
    put_at: datetime
    code: str
    message: str
    failed_at: datetime


@dataclass(frozen=True, slots=True)
class Batch:
    """Operations taken by the drain, all from ``store``."""

    store: Store
    operations: list[Operation]


@dataclass(frozen=True, slots=True)
class VectorBatch:
    """Outstanding vectors taken by the drain, all from ``store``."""

    store: Store
    jobs: list[VectorJob]


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment in the queue: the last place in the file, and whether some were in memory only."""

    place: int
    memory: bool


@dataclass
class _Claims:
    """Which parts this process has claimed, and the file whose locks tell the other processes."""

    held: set[str] = field(default_factory=set)
    file: int | None = None


_registry_lock = threading.Lock()
_registry: dict[Path, Outbox] = {}
# Connections in memory that were inherited over a fork; the parent sends what is in them. Kept for good, as
# SQLite forbids even closing them here.
_inherited: list[Store] = []


class Outbox:
    """The queue of one home. Get it with ``Outbox.open``; nothing in it raises into the caller.

    When the file cannot be used, operations are kept in memory (and lost with the process): one warning says
    so, ``problem`` says why, and the file is tried again every few seconds.
    """

    def __init__(self, path: Path) -> None:
        self._path: Path = path
        self._lock: threading.Lock = threading.Lock()
        self._file: Store | None = None
        self._memory: Store | None = None
        self._problem: str | None = None
        self._retry_at: float = 0.0
        self._fallbacks: int = 0
        self._claims: _Claims = _Claims()
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._metered_at: float = 0.0
        #: What this process counts for the home; ``write_meter`` puts it into the file.
        self.meter: Meter = Meter()

    @classmethod
    def open(cls, home: Path | str) -> Outbox:
        """The outbox of ``home`` (``$HERMES_HOME``): one object per home and process.

        Opens no file yet; what goes wrong with it shows in ``problem``.
        """
        importlib.import_module("hermes_pgsql.values")  # slow to import: here rather than in the first put
        folder = Path(home).expanduser()
        with suppress(OSError, RuntimeError):
            folder = folder.resolve()
        path = folder / FOLDER / FILE
        with _registry_lock:
            return _registry.setdefault(path, cls(path))

    @property
    def path(self) -> Path:
        """Where the file is: ``<home>/hermes-pgsql/outbox.db``."""
        return self._path

    @property
    def problem(self) -> str | None:
        """Why the file cannot be used at the moment, or None."""
        return self._problem

    @property
    def fallbacks(self) -> int:
        """How many operations of this process had to be kept in memory at first."""
        return self._fallbacks

    # Accepting ------------------------------------------------------------

    def put(
        self,
        op: str,
        identity: str | None,
        arguments: Mapping[str, object],
        governance: Mapping[str, object] | None = None,
    ) -> UUID:
        """Accept an operation and return its id: ``op`` names a write function of the database.

        ``arguments`` are those of ``apply_ops`` without ``p_`` (content, target, session_id, ts, …; ``embed``
        False: this row never gets a vector). A turn without ``ts`` happened now. Text is cleaned, not
        redacted. Wakes the drains attached to it.
        """
        return self.put_all([(op, identity, arguments)], governance)[0]

    def put_all(
        self,
        operations: Iterable[tuple[str, str | None, Mapping[str, object]]],
        governance: Mapping[str, object] | None = None,
    ) -> list[UUID]:
        """Accept several operations (op, identity, arguments) together, in order, as ``put`` accepts one."""
        return self._accept([_operation(*operation, governance) for operation in operations])

    def put_file(
        self,
        identity: str | None,
        target: str,
        path: Path | str,
        source: UUID,
        governance: Mapping[str, object] | None = None,
    ) -> UUID:
        """Accept "make the database equal to this memory file": it is read when the operation is sent.

        Markers for the same file that were not sent yet become one, at the place of the last.
        """
        file = os.fspath(Path(path).absolute())
        arguments = {"target": target, "source": source, "path": file}
        return self._accept([_operation("sync_memories", identity, arguments, governance, file)])[0]

    def _accept(self, operations: Sequence[Operation]) -> list[UUID]:
        with self._lock:
            if operations and not self._put_in_file(operations):
                self._fallbacks += len(operations)
                self._in_memory().put_all(operations)
        for listener in self._listeners:
            listener()
        return [UUID(operation.op_id) for operation in operations]

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Have ``listener`` called after every ``put``, on the putting thread: it must return at once."""
        with self._lock:
            if listener not in self._listeners:
                self._listeners = (*self._listeners, listener)

    def unsubscribe(self, listener: Callable[[], None]) -> None:
        """Undo ``subscribe``."""
        with self._lock:
            self._listeners = tuple(known for known in self._listeners if known != listener)

    # Looking ------------------------------------------------------------

    def depth(self) -> int:
        """How many operations the database does not have yet."""
        return self.counts().waiting

    def oldest(self) -> datetime | None:
        """When the oldest of them was put, or None."""
        times = [first[1] for first in self._each(Store.first) if first is not None]
        return _moment(min(times)) if times else None

    def vector_trouble(self) -> Trouble | None:
        """Why the rows whose vector is outstanding have none yet, as far as an attempt has failed."""
        with self._lock:
            found = self._on_file(lambda store: store.trouble(_VECTORS))
        # On one line: it becomes part of a sentence, and an error's hint stands in a second line.
        return None if found is None else Trouble(" ".join(found[0].split()), _moment(found[1]))

    def note_vector_trouble(self, message: str | None) -> None:
        """What the last attempt at vectors failed with, for those who look from outside; None: it worked."""

        def note(store: Store) -> bool:
            store.note_trouble(_VECTORS, message, time.time())
            return True

        with self._lock:
            self._on_file(note)

    def counts(self) -> Counts:
        totals = self._each(Store.counts)
        return Counts(*(sum(total[column] for total in totals) for column in range(3)))

    def in_memory(self) -> int:
        """How many operations are in memory only, because the file cannot be used."""
        with self._lock:
            return 0 if self._memory is None else self._memory.counts()[0]

    def poison(self, limit: int = 100) -> list[Poison]:
        """The operations that were set aside, oldest first."""
        found = [item for items in self._each(lambda store: store.poison(limit)) for item in items]
        return [_shown(refusal, failed_at) for refusal, failed_at in found[:limit]]

    def retry(self, op_id: UUID) -> bool:
        """Put one that was set aside at the end of the queue; whether there was one."""
        moved = any(self._each(lambda store: store.retry(str(op_id))))
        if moved:
            for listener in self._listeners:
                listener()
        return moved

    def drop(self, op_id: UUID) -> bool:
        """Forget one that was set aside; whether there was one."""
        return any(self._each(lambda store: store.drop(str(op_id))))

    # Erasing ------------------------------------------------------------

    @contextmanager
    def kept_from_sending(self, wait: float) -> Generator[bool]:
        """Let no process send anything of this home meanwhile. False: one did not stop within ``wait``."""
        deadline = time.monotonic() + wait
        parts: tuple[Part, ...] = ("text", "vectors")
        claimed: list[Part] = []
        try:
            for part in parts:
                while not (mine := self.claim(part)) and time.monotonic() < deadline:
                    time.sleep(0.05)
                if not mine:
                    break
                claimed.append(part)
            yield len(claimed) == len(parts)
        finally:
            for part in claimed:
                self.release(part)

    def keys(self) -> list[tuple[str | None, str | None]]:
        """Whom operations here are for: identity and governance (JSON) as they were put."""
        return list(dict.fromkeys(key for keys in self._each(Store.keys) for key in keys))

    def count_of(self, keys: Sequence[tuple[str | None, str | None]]) -> int:
        """How many operations and outstanding vectors are for these ``keys``."""
        return sum(self._each(lambda store: store.count_of(keys)))

    def erase(self, keys: Sequence[tuple[str | None, str | None]]) -> int:
        """Forget what is for these ``keys``, with every trace in the file; how many rows.

        Only while ``kept_from_sending``, or some of it may be sent at the same time.
        """
        return sum(self._each(lambda store: store.erase(keys)))

    def set_aside_files(self) -> list[Path]:
        """Damaged outboxes of this home that were set aside; nobody reads or empties them."""
        return sorted(
            path
            for path in self._path.parent.glob(f"{FILE}.corrupt-*")
            if not path.name.endswith(("-wal", "-shm"))
        )

    # For the drain ------------------------------------------------------------

    def has_waiting(self) -> bool:
        """Whether the database lacks an operation."""
        return any(first is not None for first in self._each(Store.first))

    def file_waits(self, path: Path | str) -> bool:
        """Whether a marker for this memory file was put that was not sent yet."""
        file = os.fspath(Path(path).absolute())
        return any(self._each(lambda store: store.file_waits(file)))

    def next_vector(self) -> float | None:
        """When the next outstanding vector is due (0: now), or None when there is none."""
        times = [due for due in self._each(Store.next_vector) if due is not None]
        return min(times) if times else None

    def mark(self) -> Mark:
        """The end of the queue as it is now, for ``reached``."""
        with self._lock:
            memory = self._memory is not None and self._memory.last() > 0
            return Mark(self._on_file(Store.last) or 0, memory)

    def reached(self, mark: Mark) -> bool:
        """Whether the database has everything that was put before ``mark`` was taken."""
        with self._lock:
            if mark.memory and self._memory is not None and self._memory.first() is not None:
                return False
            first = self._on_file(Store.first)
            return self._file is not None and (first is None or (not mark.memory and first[0] > mark.place))

    def claim(self, part: Part) -> bool:
        """Become the one process that does ``part`` for this home, until ``release``; False if another is.

        The death of a process frees its claims.
        """
        with self._lock:
            if part in self._claims.held or not self._lock_byte(part):
                return False
            self._claims.held.add(part)
            return True

    def release(self, part: Part) -> None:
        with self._lock:
            self._claims.held.discard(part)
            self._unlock_byte(part)

    def take(self, limit: int, max_chars: int) -> Batch | None:
        """The first operations, or None; they stay until ``settle``. Needs the claim ``text``."""
        for store, operations in self._stores(lambda store: store.take(limit, max_chars)):
            if operations:
                return Batch(store, operations)
        return None

    def settle(
        self,
        batch: Batch,
        done: Sequence[Operation],
        vectors: Sequence[VectorJob] = (),
        refused: Sequence[Refusal] = (),
        model: str | None = None,
    ) -> bool:
        """Note what became of operations of ``batch``: done (with the vectors they need), or refused.

        ``model`` names the embedding space, so that vectors which are there are not asked for again. False
        when it could not be noted; the operations then come again.
        """

        def note(store: Store) -> bool:
            wanted = vectors if model is None else store.unsettled(vectors, model)
            store.settle(done, wanted, refused)
            return True

        return self._on(batch.store, note) or False

    def take_vectors(self, limit: int, max_chars: int) -> VectorBatch | None:
        """Rows whose vector is due, or None. Needs the claim ``vectors``."""
        now = time.time()
        for store, jobs in self._stores(lambda store: store.take_vectors(limit, max_chars, now)):
            if jobs:
                return VectorBatch(store, jobs)
        return None

    def settle_vectors(
        self,
        batch: VectorBatch,
        done: Sequence[VectorJob],
        later: Sequence[tuple[VectorJob, float]] = (),
        model: str | None = None,
    ) -> bool:
        """Forget what is ``done``; ask for the others again at the given times. False: not noted."""

        def note(store: Store) -> bool:
            store.settle_vectors(done, later, model)
            return True

        return self._on(batch.store, note) or False

    def drop_vectors(self) -> int:
        """Forget the outstanding vectors, because nobody here makes any; how many there were."""
        return sum(self._each(Store.drop_vectors))

    def due(self, task: str, every: float) -> bool:
        """Whether no process did ``task`` for ``every`` seconds; if so it counts as done now."""
        with self._lock:
            return self._on_file(lambda store: store.due(task, every)) or False

    def tidy(self) -> None:
        """Clear a long write-ahead log. Waits for the disk, so only when there is nothing else to do."""
        with suppress(OSError):
            if self._path.with_name(f"{FILE}-wal").stat().st_size > TIDY_ABOVE:
                with self._lock:
                    self._on_file(Store.checkpoint)

    # Metrics ------------------------------------------------------------

    def write_meter(self, every: float = 0.0) -> None:
        """Add what ``meter`` counted to the file, unless that was done in the last ``every`` seconds."""
        if not self.meter or time.monotonic() < self._metered_at + every:
            return
        self._metered_at = time.monotonic()
        samples = self.meter.take()

        def note(store: Store) -> bool:
            store.note_metrics(samples)
            return True

        with self._lock:
            if not self._on_file(note):
                self.meter.give_back(samples)

    def metrics(self) -> list[tuple[str, str, float]]:
        """The counters and gauges in the file: name, labels (JSON) and value."""
        with self._lock:
            return self._on_file(Store.metrics) or []

    def account(self) -> tuple[int, int] | None:
        """How many operations the file ever accepted, and how many were lost (0, unless there is a bug).

        None when the file cannot be read.
        """
        with self._lock:
            return self._on_file(Store.account)

    def damaged_files(self) -> list[Path]:
        """Files that were set aside because they were corrupt; what was in them was not sent."""
        found = self._path.parent.glob(f"{FILE}.corrupt-*")
        return sorted(path for path in found if not path.name.endswith(("-wal", "-shm")))

    # File or memory ------------------------------------------------------------

    def _put_in_file(self, operations: Sequence[Operation]) -> bool:
        def put(store: Store) -> bool:
            if len(operations) == 1:
                store.put(operations[0])
            else:
                store.put_all(operations)
            return True

        return self._on_file(put) or False

    def _on_file(self, action: Callable[[Store], Result]) -> Result | None:
        """What ``action`` returns for the file, or None when it cannot be used. The lock is held."""
        for _attempt in range(2):
            try:
                return action(self._opened())
            except _Unusable:
                return None
            except (sqlite3.Error, OSError, OutboxTooNew) as error:
                broken = self._file
                self._close_file()
                if broken is None or not is_corrupt(error):
                    self._failed(error)
                    return None
                # A fresh file takes the place of a corrupt one, and the second attempt uses it.
                with self._alone():
                    if broken.is_at(self._path) and not self._set_aside(error):
                        return None
        return None

    def _opened(self) -> Store:
        if self._file is not None and self._file.is_at(self._path):
            return self._file
        if time.monotonic() < self._retry_at:
            raise _Unusable
        self._close_file()
        if not self._claims.held and self._claims.file is not None:
            # The folder was replaced: so was the file whose locks everybody looks at.
            os.close(self._claims.file)
            self._claims.file = None
        store = self._open_alone()
        if self._memory is not None:
            try:
                store.take_over(self._memory)
            except BaseException:
                store.close()
                raise
        if self._problem is not None:
            log.info("The outbox %s can be used again.", self._path)
            self._problem = None
        self._file = store
        return store

    def _open_alone(self) -> Store:
        with self._alone():
            try:
                return Store.open_file(self._path)
            except sqlite3.Error as error:
                if not is_corrupt(error) or not self._set_aside(error):
                    raise
                return Store.open_file(self._path)

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Keeps other processes from making or replacing the file meanwhile."""
        deadline = time.monotonic() + _OPENING_WAIT
        while not self._lock_byte("opening") and time.monotonic() < deadline:
            time.sleep(0.005)
        try:
            yield
        finally:
            self._unlock_byte("opening")

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _set_aside(self, error: BaseException) -> bool:
        """Rename a corrupt file, so that a new one can be made and somebody can look at the old one."""
        stamp = f"corrupt-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
        kept = self._path.with_name(f"{FILE}.{stamp}")
        try:
            self._path.rename(kept)
            for end in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    self._path.with_name(FILE + end).rename(kept.with_name(kept.name + end))
        except OSError as failure:
            self._failed(failure)
            return False
        log.warning(
            "The outbox %s is damaged (%s). It was set aside as %s and a new one is in use; operations in it"
            " were not sent.",
            self._path,
            error,
            kept.name,
        )
        return True

    def _failed(self, error: BaseException) -> None:
        self._retry_at = time.monotonic() + RETRY_AFTER
        if self._problem is None:
            log.warning(
                "The outbox %s cannot be used (%s). What is to be stored is kept in memory, and lost if this"
                " process ends before it is in the database. Check the folder's rights and the disk's space.",
                self._path,
                error,
            )
        self._problem = str(error) or type(error).__name__

    def _in_memory(self) -> Store:
        if self._memory is None:
            self._memory = Store.open_memory()
        return self._memory

    def _each(self, action: Callable[[Store], Result]) -> list[Result]:
        """What ``action`` returns for the file and for the memory, as far as they are there."""
        return [result for _store, result in self._stores(action)]

    def _stores(self, action: Callable[[Store], Result]) -> list[tuple[Store, Result]]:
        with self._lock:
            results: list[tuple[Store, Result]] = []
            on_file = self._on_file(lambda store: (store, action(store)))
            if on_file is not None:
                results.append(on_file)
            if self._memory is not None:
                results.append((self._memory, action(self._memory)))
            return results

    def _on(self, store: Store, action: Callable[[Store], Result]) -> Result | None:
        """What ``action`` returns for the store a batch came from; None when it is gone or unusable."""
        with self._lock:
            if store is self._memory:
                return action(store)
            return self._on_file(action)

    # Claims ------------------------------------------------------------

    def _lock_byte(self, name: str) -> bool:
        try:
            if self._claims.file is None:
                path = self._path.with_name(LOCK_FILE)
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._claims.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return True  # then there is no file to share either
        try:
            # Locks of this kind end with the process and are not inherited over a fork.
            fcntl.lockf(self._claims.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LOCK_BYTE[name])
        except OSError:
            return False
        return True

    def _unlock_byte(self, name: str) -> None:
        if self._claims.file is not None:
            with suppress(OSError):
                fcntl.lockf(self._claims.file, fcntl.LOCK_UN, 1, _LOCK_BYTE[name])

    # Forks ------------------------------------------------------------

    def before_fork(self) -> None:
        """Close the file: a child must not even have the connection, let alone use it."""
        self._lock.acquire()
        self._close_file()

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()
        if self._memory is not None:
            _inherited.append(self._memory)
            self._memory = None
        if self._claims.file is not None:
            with suppress(OSError):
                os.close(self._claims.file)
        self._claims = _Claims()
        self.meter.clear()


class _Unusable(Exception):  # noqa: N818 (a state of things rather than a mistake)
    """The file failed a moment ago and is not to be tried yet."""


def _operation(
    op: str,
    identity: str | None,
    arguments: Mapping[str, object],
    governance: Mapping[str, object] | None,
    file: str | None = None,
) -> Operation:
    if op == "append_turn" and arguments.get("ts") is None:
        arguments = {**arguments, "ts": datetime.now(UTC)}
    return Operation(
        op_id=str(uuid4()),
        op=op,
        identity=None if identity is None else cast("str", _plain(str(identity))),
        arguments=text_of(_plain_arguments(arguments)),
        governance=text_of(_plain_arguments(governance)) if governance else None,
        put_at=time.time(),
        file=file,
    )


def _plain(value: object) -> object:
    from hermes_pgsql.values import clean_json

    return clean_json(value)


def _plain_arguments(arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments as JSON. One that cannot be said in JSON is left out: the rest is worth keeping."""
    from hermes_pgsql.errors import InvalidArgument
    from hermes_pgsql.values import moment

    plain: dict[str, object] = {}
    for name, value in arguments.items():
        try:
            plain[name] = _plain(moment(value) if isinstance(value, datetime) else value)
        except (InvalidArgument, RecursionError):
            log.warning("The argument %s of an operation was left out: it is nested too deeply.", name)
    return plain


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _shown(refusal: Refusal, failed_at: float) -> Poison:
    operation = refusal.operation
    try:
        arguments = cast("object", json.loads(operation.arguments))
    except ValueError:
        arguments = None
    return Poison(
        op_id=UUID(operation.op_id),
        op=operation.op,
        identity=operation.identity,
        arguments=cast("dict[str, object]", arguments) if isinstance(arguments, dict) else {},
        put_at=_moment(operation.put_at),
        code=refusal.code,
        message=refusal.message,
        failed_at=_moment(failed_at),
    )


def _before_fork() -> None:
    _registry_lock.acquire()
    for outbox in _registry.values():
        outbox.before_fork()


def _after_fork_in_parent() -> None:
    for outbox in _registry.values():
        outbox.after_fork_in_parent()
    _registry_lock.release()


def _after_fork_in_child() -> None:
    global _registry_lock
    _registry_lock = threading.Lock()
    for outbox in _registry.values():
        outbox.after_fork_in_child()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
