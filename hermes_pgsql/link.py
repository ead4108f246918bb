"""What all providers of one home share in a process: settings, outbox, drain, embedder, database handle.

Hosts make a provider per request. A link is made once per home and settings, contacts nobody by itself, and
holds no provider. With an embedded server it is started in the background; until it answers, writes go to the
outbox and recall says that memory is not there yet.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final, TypeVar

from hermes_pgsql.client import Memvec
from hermes_pgsql.config import ENVIRONMENT, Settings, load_settings, report_warnings
from hermes_pgsql.drain import Drain
from hermes_pgsql.embedding import Embedder, EmbedderUnavailable, Embedding, EmbeddingError
from hermes_pgsql.errors import (
    ConfigError,
    DatabaseUnavailable,
    HermesPgsqlError,
    MemvecError,
    MissingExtra,
    NotMigrated,
    UnknownSpace,
    failure_kind,
)
from hermes_pgsql.host.home import forget_changes
from hermes_pgsql.opening import open_embedder, runtime_dsn, start_embedded, wants_embedded
from hermes_pgsql.outbox import Outbox
from hermes_pgsql.redact import redact, redacted_text

__all__ = ["Breaker", "Link", "QuestionVector", "settings_of"]

Result = TypeVar("Result")

_CALLS_AT_ONCE: Final = 12  # also counts calls whose caller has given up
_SESSIONS: Final = 256
_SPACE_AGAIN: Final = 60.0  # seconds until a model without a space is looked up again
_OPEN_AGAIN: Final = 5.0
_ALMOST: Final = 0.5  # an error this close to the end of the time allowed was a wait for nothing

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QuestionVector:
    """The vector of a question and the space to compare it in."""

    embedding: Embedding
    space: int


class Breaker:
    """Stops asking what fails: after ``threshold`` failures in a row it is open for a pause that doubles.

    After the pause one caller is let through; its success closes the breaker.
    """

    def __init__(self, threshold: int, pause: float, longest: float) -> None:
        self._threshold = threshold
        self._pause = pause
        self._longest = longest
        self._failures = 0
        self._until = 0.0

    # Without a lock: two callers at the same moment are one attempt too many, a lock over a fork a deadlock.

    def allows(self) -> bool:
        if self._failures < self._threshold:
            return True
        if monotonic() < self._until:
            return False
        self._until = monotonic() + self._length()
        return True

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self, at_least: float | None = None) -> None:
        """Count a failure. ``at_least``: the pause in seconds that was asked for."""
        self._failures += 1
        self._until = monotonic() + max(self._length(), at_least or 0.0)

    def open_for(self) -> float:
        """How many seconds it stays open; 0 when it is closed."""
        return max(0.0, self._until - monotonic()) if self._failures >= self._threshold else 0.0

    @property
    def failing(self) -> bool:
        """Whether the last attempt failed."""
        return self._failures > 0

    def _length(self) -> float:
        return min(self._longest, self._pause * 2.0 ** min(10, max(0, self._failures - self._threshold)))


class Link:
    """The shared part of the providers of ``home``; get it with ``Link.of``."""

    def __init__(self, home: Path, settings: Settings) -> None:
        self.home = home
        self.settings = settings
        self.outbox = Outbox.open(home)
        self.problem: str | None = None
        self._key: tuple[str, str] = _key_of(home, settings)
        self._dsn: str | None = None
        self._memvec: Memvec | None = None
        self._drain: Drain | None = None
        choice = open_embedder(settings)
        self.embedder: Embedder | None = choice.embedder
        self._opened = threading.Event()
        self._lock = threading.Lock()
        self._embed_breaker = Breaker(2, 15.0, 60.0)
        self._database_breaker = Breaker(2, 5.0, 10.0)
        self._spaces: dict[int, tuple[int | None, float]] = {}
        self._calls = 0
        self._forked = False  # in a child whose parent's server was still starting
        self._last_turns: OrderedDict[str, str] = OrderedDict()
        self._registered: set[str] = set()
        # Targets whose file was queued by this process and may not have been read yet.
        self.marked_files: dict[str, bool] = {}
        self._lead()
        self._attach()

    @classmethod
    def of(cls, home: Path) -> Link:
        """The link of ``home`` under the settings its files hold now. Contacts nobody.

        Providers that exist keep the one they have; the next provider follows a changed configuration.
        """
        settings = settings_of(home)
        key = _key_of(home, settings)
        with _links_lock:
            link = _links.get(key)
            if link is None:
                link = _links[key] = Link(home, settings)
                while len(_links) > _LINKS:
                    _links.popitem(last=False)
            elif _newest.get(link.outbox.path) != key:
                link._come_back()
            return link

    # Getting there ------------------------------------------------------------

    def _attach(self) -> None:
        try:
            if wants_embedded(self.settings):
                threading.Thread(target=self._start_server, name="hermes-pgsql-open", daemon=True).start()
            else:
                self._serve(runtime_dsn(self.settings))
        except (ConfigError, MissingExtra) as error:
            self._note_problem(error)

    def _come_back(self) -> None:
        """Serve the home again, whose configuration was another one meanwhile."""
        self._lead()
        if self._dsn is not None:
            self._serve(self._dsn)

    def _lead(self) -> None:
        """From now on these settings say where the home's operations go; its files may not be there yet."""
        before = _newest.get(self.outbox.path, self._key)
        _newest[self.outbox.path] = self._key
        if before != self._key:
            forget_changes(self.home)

    def _start_server(self) -> None:
        pause = threading.Event()
        while True:
            try:
                self._serve(start_embedded()[0].runtime_dsn)  # made, if this is the first session
                return
            except (HermesPgsqlError, OSError, RuntimeError) as error:
                self._note_problem(error)
            pause.wait(_OPEN_AGAIN)

    def _serve(self, dsn: str) -> None:
        with _links_lock:
            drain = Drain.for_dsn(dsn)
            # A server may be up only when the configuration is another one already.
            if _newest.get(self.outbox.path) == self._key:
                self._carry_with(drain)
            self._drain = drain
            self._dsn = dsn
            self._memvec = Memvec(dsn, self.settings.governance())
        self.problem = None
        self._opened.set()

    def _carry_with(self, drain: Drain) -> None:
        """Have ``drain``, and no other, carry what is in the outbox, under these settings."""
        settings = self.settings
        used = drain.attach(
            self.outbox,
            self.embedder if settings.embed_on_write else None,
            embed_timeout=settings.embed_write_timeout,
            redact=redacted_text if settings.redact_secrets else None,
            revive=start_embedded if wants_embedded(settings) else None,
        )
        if used is not None:
            self.embedder = used

    def _note_problem(self, error: Exception) -> None:
        text = str(error)
        if text != self.problem:
            log.warning("Long-term memory is not available yet: %s", text)
        self.problem = text

    def flush(self, timeout: float) -> bool:
        """Wait until the text of everything written is in the database; False when it is not in time."""
        ends = monotonic() + timeout
        if self._drain is None and self.problem is None:
            self._opened.wait(timeout)
        return self._drain is not None and self._drain.flush(max(0.0, ends - monotonic()), self.outbox)

    def redact(self, text: str) -> tuple[str, int]:
        """``text`` without secrets, unless that is switched off, and how many were masked."""
        return redact(text) if self.settings.redact_secrets else (text, 0)

    def register(self, identity: str) -> None:
        """Have the theme known to the database, once per process."""
        if identity in self._registered:
            return
        self._registered.add(identity)
        self.outbox.put("register_agent", identity, {"attrs": {}}, self.settings.governance())

    # Asking ------------------------------------------------------------

    def ask(self, question: Callable[[Memvec], Result], seconds: float) -> Result:
        """The answer of the database, or an error within ``seconds``, whatever the network does.

        Raises the errors of ``Memvec``, and ``DatabaseUnavailable`` when there was no answer in time.
        """
        ends = monotonic() + seconds
        if self._forked:
            self._forked = False
            self._attach()
        # The first question may come while an embedded server starts.
        if self._memvec is None and not (self.problem is None and self._opened.wait(max(0.0, seconds - 0.5))):
            raise DatabaseUnavailable(self.problem or "The database is still being started.")
        memvec = self._memvec
        if memvec is None:
            raise DatabaseUnavailable("The database is still being started.")
        if not self._database_breaker.allows():
            raise DatabaseUnavailable("The database did not answer lately; it is asked again in a moment.")
        remaining = max(0.05, ends - monotonic())
        handle = memvec.with_timeout(max(0.05, remaining - 0.1))
        try:
            answer = self._within(lambda: question(handle), remaining)
        except _TooSlow:
            self._failed("database", self._database_breaker, "database_unavailable")
            raise DatabaseUnavailable(f"The database gave no answer within {seconds:.1f} seconds.") from None
        except HermesPgsqlError as error:
            if monotonic() > ends - _ALMOST:
                self._failed("database", self._database_breaker, failure_kind(error))
            elif not isinstance(error, MemvecError):
                self.outbox.meter.failure("recall", failure_kind(error))
            raise
        self._succeeded("database", self._database_breaker)
        return answer

    def ask_near(
        self,
        vector: QuestionVector | None,
        question: Callable[[Memvec, QuestionVector | None], Result],
        seconds: float,
    ) -> Result:
        """Like ``ask``, for a question by meaning: by words alone when its space was dropped meanwhile."""
        ends = monotonic() + seconds
        try:
            return self.ask(lambda memvec: question(memvec, vector), seconds)
        except (UnknownSpace, NotMigrated):
            # In the moment in which a space is dropped its tables are missed, as if there were no schema.
            if vector is None:
                raise
        self._spaces.pop(len(vector.embedding), None)
        return self.ask(lambda memvec: question(memvec, None), max(0.05, ends - monotonic()))

    def _within(self, work: Callable[[], Result], seconds: float) -> Result:
        """``work`` in a thread that is left behind when it takes longer; a few may be at a time."""
        results: list[Result] = []
        errors: list[BaseException] = []
        done = threading.Event()

        def run() -> None:
            try:
                results.append(work())
            except BaseException as error:  # noqa: BLE001 (raised again by the waiting caller)
                errors.append(error)
            finally:
                done.set()
                with self._lock:
                    self._calls -= 1

        with self._lock:
            if self._calls >= _CALLS_AT_ONCE:
                raise _TooSlow
            self._calls += 1
        try:
            threading.Thread(target=run, name="hermes-pgsql-ask", daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._calls -= 1
            raise DatabaseUnavailable("No thread can be started to ask the database.") from None
        if not done.wait(seconds):
            raise _TooSlow
        if errors:
            raise errors[0]
        return results[0]

    def question_vector(self, text: str, identity: str, seconds: float) -> QuestionVector | None:
        """The vector of a question, or None when there is none within ``seconds``: then words must do."""
        ends = monotonic() + seconds
        if self.embedder is None or not self._embed_breaker.allows():
            return None
        try:
            embedding = self.embedder.embed_query(text, seconds)
        except EmbedderUnavailable as error:
            self._failed("embedding", self._embed_breaker, failure_kind(error), error.retry_after)
            return None
        except EmbeddingError as error:
            self.outbox.meter.failure("recall", failure_kind(error))
            return None
        self._succeeded("embedding", self._embed_breaker)
        try:
            space = self._space(len(embedding), identity, max(0.3, ends - monotonic()))
        except HermesPgsqlError as error:
            # Perhaps only this was too slow, as the first call of a process is.
            log.debug("The space of the model is not known yet: %s", error)
            return None
        return None if space is None else QuestionVector(embedding, space)

    def _failed(self, name: str, breaker: Breaker, kind: str, at_least: float | None = None) -> None:
        breaker.failed(at_least)
        self.outbox.meter.failure("recall", kind)
        self.outbox.meter.breaker(name, breaker.open_for())

    def _succeeded(self, name: str, breaker: Breaker) -> None:
        if breaker.failing:
            self.outbox.meter.breaker(name, 0.0)
        breaker.succeeded()

    def _space(self, width: int, identity: str, seconds: float) -> int | None:
        """The embedding space of our model, looked up once; registered if it is the database's first."""
        known = self._spaces.get(width)
        if known is not None and (known[0] is not None or monotonic() < known[1]):
            return known[0]
        embedder = self.embedder
        assert embedder is not None  # noqa: S101 (it has just made a vector)
        hello = self.ask(
            lambda memvec: memvec.hello(
                identity,
                embedder.model,
                width,
                embedder.query_prefix,
                embedder.document_prefix,
                embedder.min_similarity,
            ),
            seconds,
        )
        for warning in hello.warnings:
            _warn_once(warning)
        self._spaces[width] = (hello.space_id, monotonic() + _SPACE_AGAIN)
        return hello.space_id

    # The last turn of each session, for questions that only make sense after it ------------------------

    def remember_turn(self, session: str, text: str) -> None:
        with self._lock:
            self._last_turns[session] = text
            self._last_turns.move_to_end(session)
            while len(self._last_turns) > _SESSIONS:
                self._last_turns.popitem(last=False)

    def last_turn(self, session: str) -> str | None:
        with self._lock:
            return self._last_turns.get(session)

    def forget_turn(self, session: str) -> None:
        with self._lock:
            self._last_turns.pop(session, None)

    def unlock(self) -> None:
        """For a forked child: nobody there will release what other threads of the parent held."""
        self._lock = threading.Lock()
        self._calls = 0
        self._forked = self._memvec is None


class _TooSlow(Exception):  # noqa: N818
    pass


# Settings ------------------------------------------------------------

_LINKS: Final = 16
_links: OrderedDict[tuple[str, str], Link] = OrderedDict()
# By outbox: the key of the link made or asked for last, whose settings say where its operations go.
_newest: dict[Path, tuple[str, str]] = {}
_links_lock = threading.RLock()
_read: dict[Path, tuple[object, Settings]] = {}
_warned: set[str] = set()


def _key_of(home: Path, settings: Settings) -> tuple[str, str]:
    return str(home), settings.model_dump_json()


def settings_of(home: Path) -> Settings:
    """The provider's settings in ``home``, read again only when its ``config.yaml`` changed."""
    path = home / "config.yaml"
    try:
        status = path.stat()
        mark: object = (status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError:
        mark = None
    mark = (mark, *(os.environ.get(name) for name in ENVIRONMENT))
    known = _read.get(home)
    if known is not None and known[0] == mark:
        return known[1]
    settings = load_settings(home)
    report_warnings(settings)
    _read[home] = (mark, settings)
    return settings


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        log.warning("%s", text)


def _after_fork() -> None:
    global _links_lock
    _links_lock = threading.RLock()
    for link in _links.values():
        link.unlock()


os.register_at_fork(after_in_child=_after_fork)
