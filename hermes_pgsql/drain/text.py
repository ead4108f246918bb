"""The text side of a drain: operations from the outboxes to the database, a batch of each home at a time."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

from hermes_pgsql.drain.requests import FRESH_FILE, before_fresh_file, outstanding, prepare
from hermes_pgsql.drain.state import BATCH, CLAIM_POLL, IDLE, Home, State, is_about_values, rotated
from hermes_pgsql.drain.worker import UNAVAILABLE_CAP, Worker
from hermes_pgsql.errors import (
    ConfigError,
    DatabaseUnavailable,
    HermesPgsqlError,
    NotMigrated,
    failure_kind,
    is_retryable_sqlstate,
)
from hermes_pgsql.outbox import Batch
from hermes_pgsql.outbox_store import Operation, Refusal, VectorJob

if TYPE_CHECKING:
    from hermes_pgsql.results import OpResult

__all__ = ["TextCarrier"]

BATCH_CHARS: Final = 4_000_000
#: New work does not wait longer than this for the next attempt.
_EAGER_PAUSE: Final = 2.0
_REVIVE_EVERY: Final = 15.0
_HOUSEKEEPING_EVERY: Final = 600.0
_METER_EVERY: Final = 1.0
LONE_TIMEOUTS: Final = 20
_GIVE_WAY: Final = 0.0003
_TIMEOUT_STATE: Final = "57014"

log = logging.getLogger(__name__)


class TextCarrier:
    """Wakes ``vectors`` when a row was written whose vector is outstanding."""

    def __init__(self, state: State, vectors: Worker) -> None:
        self._state: State = state
        self._vectors: Worker = vectors
        self._revived_at: float = 0.0
        self._new_work: bool = False
        self._worked: bool = False
        self._turn: int = 0
        #: How often the database could not be reached or used.
        self.outages: int = 0
        self.worker: Worker = Worker("hermes-pgsql-drain", self._round)

    def new_work(self) -> None:
        self._new_work = True
        self.worker.wake()

    def hurry(self) -> None:
        """Try at once, also during a pause."""
        self._state.database.hurry(0.0)
        self.worker.wake()

    def _round(self) -> float:
        """One batch of each home; returns how long to pause."""
        for home in self._state.homes.values():
            home.outbox.write_meter(_METER_EVERY)
        if self._new_work:
            self._new_work = False
            self._state.database.hurry(_EAGER_PAUSE)
        pause = self._state.database.wait()
        if pause > 0:
            return pause
        self._turn += 1
        pause = IDLE
        for home in rotated(self._state.homes.values(), self._turn):
            if not home.outbox.has_waiting():
                continue
            if not home.outbox.claim("text"):
                pause = min(pause, CLAIM_POLL)
                continue
            try:
                pause = min(pause, self._carry(home))
            except HermesPgsqlError as error:
                self._database_failed(home, error)
                return self._state.database.wait()
            finally:
                home.outbox.release("text")
        if pause > 0 and not self._new_work:
            self._rest()
        return pause

    def _carry(self, home: Home) -> float:
        """Send one batch; returns how long to pause. Raises what the database's failures are."""
        batch = home.outbox.take(home.batch, BATCH_CHARS)
        self._state.behind = batch is not None and len(batch.operations) >= home.batch
        if batch is None:
            return IDLE
        operations = before_fresh_file(batch.operations)
        if not operations:
            return FRESH_FILE / 2
        _give_way()
        settled = self._apply(home, batch, operations)
        home.batch = min(BATCH, home.batch * 2)
        self._database_works()
        self._worked = True
        self._state.moved()
        if home.embedder is not None and home.outbox.next_vector() is not None:
            self._vectors.wake()
        if not settled:
            # The file cannot be written now; whatever is in memory gets its turn meanwhile.
            time.sleep(CLAIM_POLL)
        return 0.0

    def _apply(self, home: Home, batch: Batch, operations: Sequence[Operation]) -> bool:
        """Send these operations and settle them; False when that could not be noted.

        When the database refuses them as a whole, they are sent in halves, until the guilty one is alone.
        """
        ready, refused, skipped = prepare(operations, home.redact)
        if refused or skipped:
            self._set_aside(home, batch, skipped, refused)
        if not ready:
            return True
        _give_way()
        try:
            results = self._state.memvec().apply_ops([request for _operation, request in ready])
        except HermesPgsqlError as error:
            if not self._is_guilty(home, error, [operation for operation, _request in ready]):
                raise
            if len(ready) == 1:
                code = str(getattr(error, "sqlstate", None) or "")
                return self._set_aside(home, batch, [], [Refusal(ready[0][0], code, error.message)])
            operations = [operation for operation, _request in ready]
            middle = len(operations) // 2
            first = self._apply(home, batch, operations[:middle])
            return self._apply(home, batch, operations[middle:]) and first
        return self._settle(home, batch, ready, results)

    def _settle(
        self,
        home: Home,
        batch: Batch,
        ready: Sequence[tuple[Operation, dict[str, object]]],
        results: Sequence[OpResult],
    ) -> bool:
        outcomes = {str(result.op_id): result for result in results}
        done: list[Operation] = []
        refused: list[Refusal] = []
        vectors: list[VectorJob] = []
        postponed: str | None = None
        for operation, request in ready:
            result = outcomes.get(str(request["op_id"]))
            if result is None:
                postponed = "The database gave no answer for an operation."
            elif result.outcome != "error":
                done.append(operation)
                if home.embedder is not None and request.get("embed") is not False:
                    vectors += outstanding(operation, request, result)
            elif is_retryable_sqlstate(result.error_code):
                postponed = result.message or "The database could not do an operation now."
            else:
                refused.append(Refusal(operation, result.error_code or "", result.message or ""))
        _give_way()
        noted = home.outbox.settle(batch, done, vectors, refused, home.model())
        _give_way()
        if noted:
            self._state.tally.sent += len(done)
            self._count_poison(home, refused)
        if postponed is not None:
            self._state.moved()
            raise DatabaseUnavailable(postponed)
        return noted

    def _set_aside(
        self, home: Home, batch: Batch, skipped: Sequence[Operation], refused: Sequence[Refusal]
    ) -> bool:
        noted = home.outbox.settle(batch, skipped, (), refused)
        if noted:
            self._count_poison(home, refused)
        return noted

    def _count_poison(self, home: Home, refused: Sequence[Refusal]) -> None:
        self._state.tally.poisoned += len(refused)
        for refusal in refused:
            home.outbox.meter.failure("write", "operation_refused")
            log.warning(
                "An operation (%s) was refused and set aside: %s (%s). See: hermes-pgsql outbox",
                refusal.operation.op,
                refusal.message,
                refusal.code,
            )

    def _is_guilty(self, home: Home, error: HermesPgsqlError, operations: Sequence[Operation]) -> bool:
        """Whether one of these operations is to blame for the failure of them all."""
        state = getattr(error, "sqlstate", None)
        if state == _TIMEOUT_STATE:
            return self._too_slow(home, operations)
        return is_about_values(error)

    def _too_slow(self, home: Home, operations: Sequence[Operation]) -> bool:
        """Smaller batches after a timeout; one that times out alone again and again is set aside."""
        home.batch = max(1, len(operations) // 4)
        if len(operations) > 1:
            return False
        name, times = home.lone_timeouts
        times = times + 1 if name == operations[0].op_id else 1
        home.lone_timeouts = (operations[0].op_id, times)
        return times >= LONE_TIMEOUTS

    def _database_failed(self, home: Home, error: HermesPgsqlError) -> None:
        unreachable = isinstance(error, DatabaseUnavailable)
        home.outbox.meter.failure("write", failure_kind(error))
        if isinstance(error, DatabaseUnavailable | NotMigrated | ConfigError):
            self.outages += 1
        if self._state.database.error is None:
            log.warning(
                "Nothing can be stored in the database now; it is kept in the outbox and sent later. %s%s",
                error,
                "\nTo see whether it is back, run: hermes memory status" if unreachable else "",
            )
        self._state.database.fail(str(error), UNAVAILABLE_CAP if unreachable else None)
        self._state.behind = False
        self._state.moved()
        if unreachable and home.revive is not None and monotonic() - self._revived_at > _REVIVE_EVERY:
            self._revived_at = monotonic()
            try:
                home.revive()
            except Exception as failure:  # noqa: BLE001 (somebody else's code, and the next try may work)
                log.debug("The database could not be revived: %s", type(failure).__name__)

    def _database_works(self) -> None:
        if self._state.database.error is not None:
            log.info("The database takes what is in the outbox again.")
        self._state.database.succeed()

    def _rest(self) -> None:
        """What is to be done when there is nothing to send."""
        for home in self._state.homes.values():
            home.outbox.tidy()
            if home.embedder and not self._vectors.started() and home.outbox.next_vector() is not None:
                self._vectors.wake()
        if not self._worked:
            return
        self._worked = False
        due = [home.outbox.due("housekeeping", _HOUSEKEEPING_EVERY) for home in self._state.homes.values()]
        if any(due):
            try:
                self._state.memvec().housekeeping()
            except HermesPgsqlError as error:
                log.debug("Housekeeping has to wait: %s", error)


def _give_way() -> None:
    """Let the host's threads in: between stretches of work here that keep the interpreter to themselves."""
    time.sleep(_GIVE_WAY)
