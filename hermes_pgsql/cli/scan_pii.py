"""``scan-pii``: where personal data and secrets seem to be stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hermes_pgsql.cli.options import AdminDsn, AsJson, Dsn, settings_with
from hermes_pgsql.cli.output import note, plain, say, show, show_json, table, working

if TYPE_CHECKING:
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.results import PiiFound

# Rows a call: some seconds of work, so that no limit on a statement's time stops a large table.
_PAGE: Final = 2000


class Kind(StrEnum):
    phone = "phone"
    email = "email"
    card = "card"
    key = "key"
    pattern = "pattern"


def scan_pii(
    kind: Annotated[
        list[Kind] | None,
        typer.Option("--kind", show_default=False, help="Only this kind; may be given several times."),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            show_default=False,
            help="Look for this regular expression besides (alone with --kind pattern).",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many findings to show in the table.")] = 200,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Look for phone numbers, e-mail addresses, card numbers, keys and tokens in all that is stored.

    It finds shapes, not meaning, and shows where they are with the values masked.

    \b
    Examples:
      hermes-pgsql scan-pii
      hermes-pgsql scan-pii --kind phone --kind email --json
      hermes-pgsql scan-pii --kind pattern --pattern 'project (falcon|osprey)'
    """
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.opening import admin_dsn as find_admin_dsn

    if kind is not None and Kind.pattern in kind and pattern is None:
        raise typer.BadParameter("--kind pattern needs a --pattern.")
    memvec = Memvec(find_admin_dsn(settings_with(dsn=dsn, admin_dsn=admin_dsn)))
    kinds = None if kind is None else [str(one) for one in kind]
    if pattern is not None and kinds is not None and Kind.pattern not in kinds:
        kinds.append(Kind.pattern)
    with working("looking"):
        found = list(_all_pages(memvec, pattern, kinds))
    if as_json:
        show_json(found)
        return
    if not found:
        say("Nothing found that looks like personal data or a secret.")
        return
    _show_found(found[:limit])
    counts = Counter(row.pii for row in found)
    say(", ".join(f"{counts[name]:,} with {name}" for name in sorted(counts, key=str)) + ".")
    if len(found) > limit:
        note(f"{len(found) - limit:,} more are not shown; --json gives all")


def _all_pages(memvec: Memvec, pattern: str | None, kinds: list[str] | None) -> Generator[PiiFound]:
    name: str | None = None
    after = 0
    while True:
        page = memvec.scan_pii(pattern, kinds, table=name, after=after, limit=_PAGE)
        last = page.pop() if page and page[-1].pii is None else None
        yield from page
        if last is None:
            return
        name, after = last.table_name, last.id or 0


def _show_found(rows: Sequence[PiiFound]) -> None:
    from rich.text import Text

    shown = table("table", "id", "theme", "place", "kind", "masked", "times", numbers=("id", "times"))
    for row in rows:
        # A theme's name may be what was found.
        named = row.place == "agent_identity"
        shown.add_row(
            row.table_name,
            "-" if row.id is None else str(row.id),
            Text(plain(row.agent_identity or "-")),
            "name" if named else row.place or "-",
            row.pii or "-",
            Text(plain(row.sample or "-")),
            str(row.matches or 0),
        )
    show(shown)
