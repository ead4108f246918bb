"""``index``: the HNSW indexes of large tables of vectors."""

from __future__ import annotations

from hermes_pgsql.cli.options import AdminDsn, AsJson, Dsn, settings_with
from hermes_pgsql.cli.output import counted, progress_bar, say, show_json


def index(
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Make the vector indexes that large tables lack, while agents go on reading and writing.

    \b
    Examples:
      hermes-pgsql index --admin-dsn postgresql://postgres@db/fleet
    """
    from hermes_pgsql.indexing import build_indexes, index_states
    from hermes_pgsql.opening import admin_dsn as find_admin_dsn

    administrator = find_admin_dsn(settings_with(dsn=dsn, admin_dsn=admin_dsn))
    with progress_bar() as bar:
        made = build_indexes(administrator, lambda state, share: bar(state.index_name, share))
    states = index_states(administrator)
    if as_json:
        show_json({"made": [state.index_name for state in made], "indexes": states})
        return
    for state in states:
        note = "made" if state.index_name in {one.index_name for one in made} else state.state
        say(f"{note:8}  {state.index_name}  {counted(state.rows, 'row', 'rows')}")
    if not states:
        say("There are no embedding spaces yet.")
