"""``reindex``: search vectors after a change of language or version."""

from __future__ import annotations

import typer

from hermes_pgsql.cli.batches import PARTLY, open_admin
from hermes_pgsql.cli.options import AdminDsn, AsJson, Batch, Dsn
from hermes_pgsql.cli.output import counted, progress_bar, say, show_error, show_json, show_json_error
from hermes_pgsql.errors import HermesPgsqlError


def reindex(
    batch: Batch = 1000,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Renew the words by which rows are found, after search_language or turn_date_words was changed.
    Agents go on meanwhile.

    \b
    Examples:
      psql "$DSN" -c "SELECT memvec.set_setting('search_language', 'german')"
      hermes-pgsql reindex
    """
    memvec = open_admin(dsn, admin_dsn)
    whole = left = memvec.reindex_search(0)
    error: HermesPgsqlError | None = None
    with progress_bar() as move:
        while left:
            before = left
            try:
                left = memvec.reindex_search(batch)
            except HermesPgsqlError as failure:
                if left == whole:
                    raise
                error = failure
                break
            move("search vectors", 1 - min(1.0, left / whole))
            if left >= before:  # others hold the rest, or write as fast as this renews
                break
    if error is not None and as_json:
        show_json_error(error)
    elif as_json:
        show_json({"renewed": max(0, whole - left), "remaining": left})
    else:
        say(f"{counted(max(0, whole - left), 'row', 'rows')} renewed." if whole else "Nothing to do.")
        if error is not None:
            show_error(error)
        if left:
            say(f"{counted(left, 'row is', 'rows are')} left. Run the same command again for the rest.")
    if left:
        raise typer.Exit(PARTLY)
