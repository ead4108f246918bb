"""The background worker of one database: carries what the outboxes hold to it, text first, vectors later.

One drain per DSN and process, shared by every home and provider. Its daemon threads start with the first work
and hold nobody alive; nothing depends on their being stopped, since what is not carried out stays in the
outbox for the next process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from hermes_pgsql.embedding import Embedder
from hermes_pgsql.outbox import Outbox

__all__ = ["Drain", "DrainStatus"]


@dataclass(frozen=True, slots=True)
class DrainStatus:
    """How the drain is doing. Counts of ``sent`` to ``given_up`` are of this process, the rest is now."""

    waiting: int  # operations the database does not have yet, over all attached outboxes
    vectors_waiting: int
    poison: int
    in_memory: int
    oldest: datetime | None
    sent: int
    poisoned: int
    embedded: int
    given_up: int  # rows that will get no vector from here (permanent failures)
    retry_in: float | None  # seconds until the database is tried again, None when it is not failing
    last_error: str | None  # of the database; None once it works
    embed_retry_in: float | None
    embed_error: str | None


class Drain:
    """The drain of one DSN. Get it with ``Drain.for_dsn``; it contacts nobody until there is work."""

    @classmethod
    def for_dsn(cls, dsn: str) -> Drain:
        """This process's drain for ``dsn`` (the resolved one, never ``embedded``). Never fails."""
        raise NotImplementedError

    def attach(
        self,
        outbox: Outbox,
        embedder: Embedder | None,
        *,
        embed_timeout: float = 30.0,
        redact: Callable[[str], str] | None = None,
        revive: Callable[[], object] | None = None,
    ) -> Embedder | None:
        """Serve ``outbox`` from now on; a later call for the same one replaces these settings.

        ``embedder`` None: rows get no vector from here. ``redact`` is applied to entries of memory files (all
        else is redacted before ``put``). ``revive`` is called now and then, in the drain's thread, while the
        database cannot be reached (to start an embedded server). The callables must not hold a provider.
        Returns the embedder in use: an equal one attached earlier is kept, with its connections.
        """
        raise NotImplementedError

    def wake(self) -> None:
        """Look for work now. ``Outbox.put`` does this by itself."""
        raise NotImplementedError

    def flush(self, timeout: float, outbox: Outbox | None = None) -> bool:
        """Wait until the text of everything put before is in the database; False when it is not.

        Tries at once even during a back-off, and returns early when that fails. ``outbox`` None: all.
        """
        raise NotImplementedError

    def flush_vectors(self, timeout: float, outbox: Outbox | None = None) -> bool:
        """Like ``flush``, for text and vectors: True when nothing waits for either."""
        raise NotImplementedError

    def status(self) -> DrainStatus:
        raise NotImplementedError
