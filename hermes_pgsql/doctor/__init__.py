"""``hermes-pgsql doctor``: looks at everything memory depends on, and names the fix for what is wrong.

One module for each group of checks; a check is a small function that returns a ``Finding`` (or several). None
changes anything, needs more than the agents' own rights, or raises: a check that cannot be done says so. What
the database is like is said by ``memvec.health()``, in SQL; here it is only asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_pgsql.doctor.finding import Finding, State

if TYPE_CHECKING:
    from hermes_pgsql.config import Settings

__all__ = ["Finding", "State", "examine", "exit_code"]


def examine(home: Path, settings: Settings) -> list[Finding]:
    """Every check of the home and of the database, endpoint and host that its settings name."""
    from hermes_pgsql.doctor import configuration, database, embedding, host, queue

    findings: list[Finding] = []
    for check in (configuration.checks, host.checks, queue.checks):
        findings += _safely(check.__module__.rpartition(".")[2], lambda check=check: check(home, settings))
    look = database.look(settings)
    findings += _safely("database", lambda: database.checks(look))
    findings += _safely("embedding", lambda: embedding.checks(settings, look.spaces))
    return [finding.without(_secrets(settings)) for finding in findings]


def exit_code(findings: Iterable[Finding]) -> int:
    """0 when nothing is wrong, 3 when there are only warnings, 1 when something does not work."""
    states = {finding.state for finding in findings}
    return 1 if State.FAILURE in states else 3 if State.WARNING in states else 0


def _safely(area: str, checks: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """What the checks find. An error of their own is a finding too, because doctor must not need a doctor."""
    found: list[Finding] = []
    try:
        found.extend(checks())
    except Exception as error:  # noqa: BLE001 (shown, with its kind; the other groups still have their say)
        found.append(
            Finding(area, "check", State.FAILURE, f"a check failed itself: {type(error).__name__}: {error}")
        )
    return found


def _secrets(settings: Settings) -> list[str]:
    import os

    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    secrets = [os.environ.get(settings.embed_api_key_env or "", ""), os.environ.get("PGPASSWORD", "")]
    for dsn in (settings.dsn, settings.admin_dsn):
        try:
            secrets.append(str(conninfo_to_dict(dsn or "").get("password") or ""))
        except ProgrammingError:
            continue
    return [secret for secret in secrets if len(secret) > 3]
