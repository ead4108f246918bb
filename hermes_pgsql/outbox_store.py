"""The tables of an outbox in SQLite, and every statement on them. Locks and fallbacks are ``outbox.py``'s.

Three tables hold what is on its way: ``waiting`` (the database does not have it yet, in order), ``vectors``
(rows the database has and that still lack a vector) and ``poison`` (operations the database refused).
``settled`` remembers which entries of memory files have their vector, because a file is sent whole each time.
``metrics`` holds counters and gauges, ``troubles`` the last error of what goes wrong now. Operations that
leave ``waiting`` are counted in the same transaction, so that the account of what was accepted
balances (see ``Store.account``).
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hermes_pgsql.meter import Sample

__all__ = [
    "Operation",
    "OutboxTooNew",
    "Refusal",
    "Store",
    "VectorJob",
    "is_corrupt",
]

VERSION: Final = 3
BUSY_TIMEOUT: Final = 1.0  # seconds
# Pages of 4 kB that may wait in the write-ahead log before a commit has to clear it (and wait for the disk).
# The drain clears it earlier, when there is nothing else to do.
_CHECKPOINT_PAGES: Final = 8000
_SETTLED_KEPT: Final = 2000
_OF_SOMEBODY: Final = ("waiting", "vectors", "poison")

_SCHEMA: Final = """
CREATE TABLE waiting (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    op_id TEXT NOT NULL,
    op TEXT NOT NULL,
    identity TEXT,
    arguments TEXT NOT NULL,
    governance TEXT,
    file TEXT,
    put_at REAL NOT NULL
);
CREATE INDEX waiting_file ON waiting (file) WHERE file IS NOT NULL;
CREATE TABLE vectors (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    row_id INTEGER NOT NULL,
    content_hash BLOB NOT NULL,
    content TEXT NOT NULL,
    identity TEXT,
    governance TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    due REAL NOT NULL DEFAULT 0,
    UNIQUE (kind, row_id)
);
CREATE INDEX vectors_due ON vectors (due, id);
CREATE TABLE poison (
    op_id TEXT PRIMARY KEY,
    op TEXT NOT NULL,
    identity TEXT,
    arguments TEXT NOT NULL,
    governance TEXT,
    file TEXT,
    put_at REAL NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    failed_at REAL NOT NULL
);
CREATE TABLE settled (
    row_id INTEGER NOT NULL,
    content_hash BLOB NOT NULL,
    model TEXT NOT NULL,
    PRIMARY KEY (row_id, model)
);
CREATE TABLE last_done (task TEXT PRIMARY KEY, at REAL NOT NULL);
"""
_SCHEMA_2: Final = """
CREATE TABLE metrics (
    name TEXT NOT NULL,
    labels TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (name, labels)
);
INSERT INTO metrics (name, labels, value)
SELECT 'operations', '{"outcome":"sent"}',
       coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'waiting'), 0) - (SELECT count(*) FROM waiting);
"""

_SCHEMA_3: Final = """
CREATE TABLE troubles (part TEXT PRIMARY KEY, message TEXT NOT NULL, at REAL NOT NULL);
"""

_ADD: Final = (
    "INSERT INTO metrics (name, labels, value) VALUES (?, ?, ?)"
    " ON CONFLICT (name, labels) DO UPDATE SET value = value + excluded.value"
)
_SET: Final = "INSERT OR REPLACE INTO metrics (name, labels, value) VALUES (?, ?, ?)"


class OutboxTooNew(Exception):  # noqa: N818 (says what happened)
    """The file was made by a newer version of this package."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An accepted operation. ``arguments`` and ``governance`` are JSON; ``file`` is set for file markers.

    ``seq`` is its place, 0 until it has one.
    """

    op_id: str
    op: str
    identity: str | None
    arguments: str
    governance: str | None
    put_at: float
    file: str | None = None
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an operation is set aside."""

    operation: Operation
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class VectorJob:
    """A row (``kind``: entry or turn) that lacks the vector of ``content``. ``id`` is 0 until stored."""

    kind: str
    row_id: int
    content_hash: bytes
    content: str
    identity: str | None
    governance: str | None
    attempts: int = 0
    id: int = 0


def is_corrupt(error: BaseException) -> bool:
    """Whether the file itself is damaged, or is no SQLite file."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def _connect(name: str) -> sqlite3.Connection:
    return sqlite3.connect(
        name, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, cached_statements=64
    )


class Store:
    """One connection to an outbox file, or to one in memory. For one thread at a time."""

    def __init__(self, connection: sqlite3.Connection, inode: tuple[int, int] | None) -> None:
        self._db: sqlite3.Connection = connection
        self._inode: tuple[int, int] | None = inode

    @classmethod
    def open_file(cls, path: Path) -> Store:
        """Opens the file, made if need be. Raises ``sqlite3.Error``, ``OSError`` and ``OutboxTooNew``."""
        _make_private(path)
        db = _connect(str(path))
        try:
            found = path.stat()
            mode = db.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != ("wal",):
                raise sqlite3.OperationalError(f"the file system allows no write-ahead log ({mode})")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA secure_delete = FAST")
            db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            store = cls(db, (found.st_dev, found.st_ino))
            store._create()
        except BaseException:
            db.close()
            raise
        return store

    @classmethod
    def open_memory(cls) -> Store:
        """An outbox that lives as long as the process."""
        store = cls(_connect(":memory:"), None)
        store._create()
        return store

    def is_at(self, path: Path) -> bool:
        """Whether the file this is a connection to is still the one at ``path``."""
        try:
            found = os.stat(path)  # noqa: PTH116 (half the time of Path.stat, and every put asks)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._inode

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._db.close()

    def _create(self) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version == VERSION:
            return
        with self._transaction():
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version > VERSION:
                raise OutboxTooNew(f"it has format {version}, and this version knows {VERSION}")
            for schema in (_SCHEMA, _SCHEMA_2, _SCHEMA_3)[version:]:
                for statement in schema.split(";\n"):
                    self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    # Waiting ------------------------------------------------------------

    def put(self, operation: Operation) -> None:
        if operation.file is None:
            self._insert(operation)
            return
        with self._transaction():
            self._replace_marker(operation.file)
            self._insert(operation)

    def put_all(self, operations: Iterable[Operation]) -> None:
        with self._transaction():
            for operation in operations:
                if operation.file is not None:
                    self._replace_marker(operation.file)
                self._insert(operation)

    def _replace_marker(self, file: str) -> None:
        gone = self._db.execute("DELETE FROM waiting WHERE file = ?", (file,)).rowcount
        self._count("operations", '{"outcome":"replaced"}', gone)

    def _insert(self, o: Operation) -> None:
        self._db.execute(
            "INSERT INTO waiting (op_id, op, identity, arguments, governance, file, put_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (o.op_id, o.op, o.identity, o.arguments, o.governance, o.file, o.put_at),
        )

    def take(self, limit: int, max_chars: int) -> list[Operation]:
        """The first operations in order, at most ``limit`` and about ``max_chars``; they stay here."""
        taken: list[Operation] = []
        chars = 0
        rows = self._db.execute(
            "SELECT op_id, op, identity, arguments, governance, put_at, file, seq FROM waiting"
            " ORDER BY seq LIMIT ?",
            (limit,),
        )
        for row in rows:
            operation = Operation(*row)
            chars += len(operation.arguments)
            if taken and chars > max_chars:
                break
            taken.append(operation)
        rows.close()
        return taken

    def settle(
        self, done: Sequence[Operation], vectors: Sequence[VectorJob], refused: Sequence[Refusal]
    ) -> None:
        """Take ``done`` and ``refused`` out of the queue, and note the vectors that are outstanding."""
        now = time.time()
        with self._transaction():
            # By both, because a newer marker for the same file must stay.
            for outcome, leaving in (("sent", done), ("refused", [r.operation for r in refused])):
                gone = self._db.executemany(
                    "DELETE FROM waiting WHERE seq = ? AND op_id = ?", [(o.seq, o.op_id) for o in leaving]
                ).rowcount
                self._count("operations", f'{{"outcome":"{outcome}"}}', gone)
            # A file that has been sent answers for every earlier attempt at it.
            files = {o.file for o in [*done, *(r.operation for r in refused)] if o.file is not None}
            self._db.executemany("DELETE FROM poison WHERE file = ?", [(file,) for file in files])
            self._db.executemany(
                "INSERT OR REPLACE INTO vectors (kind, row_id, content_hash, content, identity, governance)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [(v.kind, v.row_id, v.content_hash, v.content, v.identity, v.governance) for v in vectors],
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO poison"
                " (op_id, op, identity, arguments, governance, file, put_at, code, message, failed_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (o.op_id, o.op, o.identity, o.arguments, o.governance, o.file, o.put_at, code, text, now)
                    for o, code, text in ((r.operation, r.code, r.message) for r in refused)
                ],
            )

    def first(self) -> tuple[int, float] | None:
        """The place of the oldest waiting operation and when it was put."""
        return self._db.execute("SELECT seq, put_at FROM waiting ORDER BY seq LIMIT 1").fetchone()

    def file_waits(self, file: str) -> bool:
        """Whether a marker for ``file`` waits."""
        return (
            self._db.execute("SELECT 1 FROM waiting WHERE file = ? LIMIT 1", (file,)).fetchone() is not None
        )

    def last(self) -> int:
        """The place of the newest waiting operation, or 0."""
        (seq,) = self._db.execute("SELECT coalesce(max(seq), 0) FROM waiting").fetchone()
        return seq

    def counts(self) -> tuple[int, int, int]:
        return self._db.execute(
            "SELECT (SELECT count(*) FROM waiting), (SELECT count(*) FROM vectors),"
            " (SELECT count(*) FROM poison)"
        ).fetchone()

    def everything(self) -> tuple[list[Operation], list[VectorJob], list[Refusal]]:
        """All there is, in order: to move an outbox out of memory."""
        return (
            self.take(-1, 2**62),
            self.take_vectors(-1, 2**62, float("inf")),
            [refusal for refusal, _at in self.poison(-1)],
        )

    def take_over(self, other: Store) -> None:
        """Put everything of ``other`` behind what is here, and empty it."""
        operations, vectors, refused = other.everything()
        if operations:
            self.put_all(replace(operation, seq=0) for operation in operations)
        if vectors or refused:
            self.settle([], vectors, refused)
        other.clear()

    def clear(self) -> None:
        with self._transaction():
            for table in ("waiting", "vectors", "poison"):
                self._db.execute(f"DELETE FROM {table}")  # noqa: S608 (names from the line above)

    # Vectors ------------------------------------------------------------

    def take_vectors(self, limit: int, max_chars: int, now: float) -> list[VectorJob]:
        """Rows whose vector is due, those never tried first; they stay in the table."""
        taken: list[VectorJob] = []
        chars = 0
        rows = self._db.execute(
            "SELECT kind, row_id, content_hash, content, identity, governance, attempts, id FROM vectors"
            " WHERE due <= ? ORDER BY due, id LIMIT ?",
            (now, limit),
        )
        for row in rows:
            job = VectorJob(*row)
            chars += len(job.content)
            if taken and chars > max_chars:
                break
            taken.append(job)
        rows.close()
        return taken

    def settle_vectors(
        self, done: Sequence[VectorJob], later: Sequence[tuple[VectorJob, float]], model: str | None
    ) -> None:
        """Forget what is done; try the others again when they are due, which counts as an attempt.

        ``model`` names the space whose vectors of entries are settled from now on.
        """
        with self._transaction():
            # By id: a row whose text changed meanwhile has a new one, and stays.
            self._db.executemany("DELETE FROM vectors WHERE id = ?", [(job.id,) for job in done])
            self._db.executemany(
                "UPDATE vectors SET attempts = attempts + 1, due = ? WHERE id = ?",
                [(due, job.id) for job, due in later],
            )
            entries = [job for job in done if job.kind == "entry"]
            if model is None or not entries:
                return
            self._db.executemany(
                "INSERT OR REPLACE INTO settled (row_id, content_hash, model) VALUES (?, ?, ?)",
                [(job.row_id, job.content_hash, model) for job in entries],
            )
            self._db.execute(
                "DELETE FROM settled WHERE rowid <= (SELECT max(rowid) FROM settled) - ?", (_SETTLED_KEPT,)
            )

    def unsettled(self, jobs: Sequence[VectorJob], model: str) -> list[VectorJob]:
        """Those of ``jobs`` that are not known to have their vector in the space of ``model``."""
        known = "SELECT 1 FROM settled WHERE row_id = ? AND model = ? AND content_hash = ?"
        return [
            job
            for job in jobs
            if self._db.execute(known, (job.row_id, model, job.content_hash)).fetchone() is None
        ]

    def next_vector(self) -> float | None:
        """When the next vector is due (0: now), or None when none is outstanding."""
        row = self._db.execute("SELECT due FROM vectors ORDER BY due, id LIMIT 1").fetchone()
        return None if row is None else row[0]

    def drop_vectors(self) -> int:
        """Forget all outstanding vectors; how many there were."""
        return self._db.execute("DELETE FROM vectors").rowcount

    # Poison ------------------------------------------------------------

    def poison(self, limit: int) -> list[tuple[Refusal, float]]:
        """What is set aside and when, oldest first."""
        rows = self._db.execute(
            "SELECT op_id, op, identity, arguments, governance, put_at, file, code, message, failed_at"
            " FROM poison ORDER BY failed_at, put_at LIMIT ?",
            (limit,),
        )
        return [(Refusal(Operation(*row[:7]), row[7], row[8]), row[9]) for row in rows.fetchall()]

    def retry(self, op_id: str) -> bool:
        with self._transaction():
            moved = self._db.execute(
                "INSERT INTO waiting (op_id, op, identity, arguments, governance, file, put_at)"
                " SELECT op_id, op, identity, arguments, governance, file, put_at FROM poison"
                " WHERE op_id = ?",
                (op_id,),
            )
            self._db.execute("DELETE FROM poison WHERE op_id = ?", (op_id,))
            return moved.rowcount > 0

    def drop(self, op_id: str) -> bool:
        return self._db.execute("DELETE FROM poison WHERE op_id = ?", (op_id,)).rowcount > 0

    # Erasing ------------------------------------------------------------

    def keys(self) -> list[tuple[str | None, str | None]]:
        """Whom the operations and vectors here are for: identity and governance, each pair once."""
        return self._db.execute(
            " UNION ".join(f"SELECT identity, governance FROM {table}" for table in _OF_SOMEBODY)  # noqa: S608
        ).fetchall()

    def count_of(self, keys: Sequence[tuple[str | None, str | None]]) -> int:
        """How many rows are for these."""
        return sum(
            self._db.execute(
                f"SELECT count(*) FROM {table} WHERE identity IS ? AND governance IS ?",  # noqa: S608
                key,
            ).fetchone()[0]
            for table in _OF_SOMEBODY
            for key in keys
        )

    def erase(self, keys: Sequence[tuple[str | None, str | None]]) -> int:
        """Delete what is for these, and every trace of it and of earlier texts in the file; how many rows.

        What is known of settled vectors goes altogether: it is not kept for whom they are.
        """
        with self._transaction():
            gone = {
                table: sum(
                    self._db.execute(
                        f"DELETE FROM {table} WHERE identity IS ? AND governance IS ?",  # noqa: S608
                        key,
                    ).rowcount
                    for key in keys
                )
                for table in _OF_SOMEBODY
            }
            self._count("operations", '{"outcome":"erased"}', gone["waiting"])
            self._db.execute("DELETE FROM settled")
            self._db.execute("DELETE FROM troubles")  # an error may quote a text
        if self._inode is not None:
            # Free pages and the log still hold texts that were sent long ago.
            self._db.execute("PRAGMA temp_store = MEMORY")
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return sum(gone.values())

    # Troubles ------------------------------------------------------------

    def note_trouble(self, part: str, message: str | None, now: float) -> None:
        """What went wrong last; None: it works now."""
        if message is None:
            self._db.execute("DELETE FROM troubles WHERE part = ?", (part,))
        else:
            self._db.execute(
                "INSERT OR REPLACE INTO troubles (part, message, at) VALUES (?, ?, ?)", (part, message, now)
            )

    def trouble(self, part: str) -> tuple[str, float] | None:
        return self._db.execute("SELECT message, at FROM troubles WHERE part = ?", (part,)).fetchone()

    # Metrics ------------------------------------------------------------

    def _count(self, name: str, labels: str, amount: float) -> None:
        if amount > 0:
            self._db.execute(_ADD, (name, labels, amount))

    def note_metrics(self, samples: Iterable[Sample]) -> None:
        """Add to counters and set gauges."""
        with self._transaction():
            for sample in samples:
                self._db.execute(_ADD if sample.adds else _SET, (sample.name, sample.labels, sample.value))

    def metrics(self) -> list[tuple[str, str, float]]:
        """Name, labels (JSON) and value of each counter and gauge."""
        return self._db.execute("SELECT name, labels, value FROM metrics ORDER BY name, labels").fetchall()

    def account(self) -> tuple[int, int]:
        """How many operations were ever accepted here, and how many of them nobody can account for."""
        return self._db.execute(
            "SELECT accepted, accepted - gone - waiting FROM (SELECT"
            " coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'waiting'), 0) AS accepted,"
            " (SELECT CAST(coalesce(sum(value), 0) AS INTEGER) FROM metrics"
            " WHERE name = 'operations') AS gone,"
            " (SELECT count(*) FROM waiting) AS waiting)"
        ).fetchone()

    # Upkeep ------------------------------------------------------------

    def due(self, task: str, every: float) -> bool:
        """Whether ``task`` was last done ``every`` seconds ago or longer; if so it counts as done now."""
        now = time.time()
        with self._transaction():
            row = self._db.execute("SELECT at FROM last_done WHERE task = ?", (task,)).fetchone()
            if row is not None and now - every < row[0] <= now:
                return False
            self._db.execute("INSERT OR REPLACE INTO last_done (task, at) VALUES (?, ?)", (task, now))
            return True

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file, unless somebody is in the way."""
        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _make_private(path: Path) -> None:
    """The folder and the file, for their owner only."""
    folder = path.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _narrow(folder, 0o700)
    try:
        # Never opened when it exists: closing it would free the locks of our own connections.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        for name in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
            _narrow(name, 0o600)


def _narrow(path: Path, mode: int) -> None:
    with suppress(OSError):
        if path.stat().st_mode & 0o777 & ~mode:
            path.chmod(mode)


def text_of(value: object) -> str:
    """JSON as it is kept in the tables."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
