"""``erase``: one person, or one theme, without a trace in the database and in this home's outbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hermes_pgsql.cli.batches import Done, Line, Step, carry_out, open_admin, planned, report
from hermes_pgsql.cli.options import AdminDsn, AsJson, Batch, Dsn, Execute, HermesHome
from hermes_pgsql.cli.output import note
from hermes_pgsql.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_pgsql.client import Memvec
    from hermes_pgsql.outbox import Outbox
    from hermes_pgsql.results import Identity

# How long another process of the home may take to finish the batch it is sending, in seconds.
_SENDING_WAIT = 30.0


def erase(
    person: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            show_default=False,
            help="The session key of the person's chat, in any spelling. - reads it from standard input,"
            " which keeps it out of the shell's history.",
        ),
    ] = None,
    theme: Annotated[str | None, typer.Option(show_default=False, help="The name of a theme.")] = None,
    hermes_home: HermesHome = None,
    execute: Execute = False,
    batch: Batch = 5000,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Erase a person or a theme: notes, turns, vectors, history, edges, counts, outbox.

    Shows what would go unless --execute, and counts again afterwards.

    \b
    Examples:
      hermes-pgsql erase --person - --execute < key.txt
      hermes-pgsql erase --theme old-project --execute
    """
    if (person is None) == (theme is None):
        raise typer.BadParameter("give either --person KEY or --theme NAME")
    if person == "-":
        person = typer.get_text_stream("stdin").readline().rstrip("\n")
    memvec = open_admin(dsn, admin_dsn)
    step = _step(memvec, person, theme)
    plan = step(True, None)  # refuses what is no person or theme before anything else is looked at
    queue = _outbox_of(hermes_home)
    meant = _meant(memvec, person if person is not None else str(theme), person=person is not None)
    if person is not None and (led := memvec.canonical_identity(person)).person_key is None:
        note(
            f'An alias leads that key to theme "{led.agent_identity}": what was written since is the theme\'s'
            " and stays."
        )
    waiting = 0 if queue is None else queue.count_of(_keys(queue, meant))
    if theme is not None and not waiting and not any(change.rows for change in plan):
        raise ConfigError(
            f'There is no theme "{theme}": no row, history or registry has it, nor this home\'s outbox.',
            hint="hermes-pgsql stats lists the themes.",
        )
    if not execute:
        lines = planned(plan)
        if queue is not None:
            lines.append(Line("outbox of this home", "deleted", waiting, waiting, 0))
        report(_and_notes(Done(lines)), executed=False, as_json=as_json)
        return
    report(_erase(step, batch, queue, meant), executed=True, as_json=as_json)


def _erase(
    step: Step, batch: int, queue: Outbox | None, meant: Callable[[str | None, str | None], bool]
) -> Done:
    if queue is None:
        return _and_notes(carry_out(step, batch, "erasing"))
    with queue.kept_from_sending(_SENDING_WAIT) as kept:
        if not kept:
            raise ConfigError(
                "Another process of this home has been sending its outbox all the time; nothing was erased.",
                hint="Try again, or stop the host first.",
            )
        keys = _keys(queue, meant)
        before = queue.count_of(keys)
        gone = queue.erase(keys)
        left = queue.count_of(keys)
        done = carry_out(step, batch, "erasing")
    for path in queue.set_aside_files():
        note(f"A damaged outbox may still hold texts; delete it when it is not needed: {path}")
    return _and_notes(
        Done([*done.lines, Line("outbox of this home", "deleted", before, gone, left)], done.error)
    )


def _and_notes(done: Done) -> Done:
    if any(line.table_name == "entry_sources" and line.before for line in done.lines):
        note(
            "Some notes are also in the memory files of homes (MEMORY.md, USER.md). Delete them there too,"
            " or those homes store them again."
        )
    note("Outboxes of other homes, backups and the server's write-ahead log are not touched.")
    return done


def _step(memvec: Memvec, person: str | None, theme: str | None) -> Step:
    if person is not None:
        key = person
        return lambda dry, limit: memvec.erase_person(key, dry_run=dry, limit=limit)
    name = str(theme)
    return lambda dry, limit: memvec.erase_theme(name, dry_run=dry, limit=limit)


def _outbox_of(hermes_home: Path | None) -> Outbox | None:
    from hermes_pgsql.config import hermes_home as default_home
    from hermes_pgsql.outbox import Outbox

    home = hermes_home or default_home()
    if not home.is_dir():
        if hermes_home is not None:
            raise ConfigError(f"There is no home {home}.", hint="Name it with --hermes-home or HERMES_HOME.")
        return None
    queue = Outbox.open(home)
    return queue if queue.path.exists() else None


def _keys(
    queue: Outbox, meant: Callable[[str | None, str | None], bool]
) -> Sequence[tuple[str | None, str | None]]:
    return [key for key in queue.keys() if meant(*key)]  # noqa: SIM118 (no mapping)


def _meant(memvec: Memvec, key: str, *, person: bool) -> Callable[[str | None, str | None], bool]:
    """Whether an operation put with an identity and a governance is of the theme, or of the person, ``key``
    stands for. A person is meant by their own key as well, whatever aliases make of it."""

    def ends(found: Identity, own: Identity) -> frozenset[object]:
        return frozenset({found.person_key, own.person_key} - {None} if person else {found.agent_identity})

    whose = ends(memvec.canonical_identity(key), memvec.canonical_identity(key, {}))

    def meant(identity: str | None, governance: str | None) -> bool:
        found = _acting_as(memvec, identity, governance)
        own = memvec.canonical_identity(identity, {}) if person else found
        return not whose.isdisjoint(ends(found, own))

    return meant


def _acting_as(memvec: Memvec, identity: str | None, governance: str | None) -> Identity:
    """The theme and person that the database would find, the host's own aliases included."""
    import json

    found = memvec.canonical_identity(identity)
    aliases = json.loads(governance).get("aliases") if governance else None
    if found.kind != "theme" or found.reason == "alias" or not isinstance(aliases, dict):
        return found
    hosts = memvec.canonical_identity(identity, aliases)  # pyright: ignore[reportUnknownArgumentType]
    if hosts.reason == "alias" or hosts.person_key is not None or hosts.kind == "bench":
        return memvec.canonical_identity(hosts.agent_identity) if hosts.kind == "theme" else hosts
    return found
