"""``bind-role`` and ``unbind-role``: which themes a login role may act as."""

from __future__ import annotations

from typing import Annotated

import typer

from hermes_pgsql.cli.options import AdminDsn, AsJson, Dsn, settings_with
from hermes_pgsql.cli.output import note, say, show_json


def bind_role(
    role: Annotated[str, typer.Argument(metavar="ROLE", show_default=False, help="The login role.")],
    theme: Annotated[str, typer.Argument(metavar="THEME", show_default=False, help="The theme it acts as.")],
    read_all: Annotated[
        bool, typer.Option("--read-all", help="Let it read every ordinary theme, not only its own.")
    ] = False,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Tie a login role to a theme, or to one more: it can act as no other.

    \b
    Examples:
      hermes-pgsql bind-role hermes_sales sales
      hermes-pgsql bind-role hermes_lead lead --read-all
    """
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.opening import admin_dsn as find_admin_dsn

    memvec = Memvec(find_admin_dsn(settings_with(dsn=dsn, admin_dsn=admin_dsn)))
    memvec.bind_role(role, theme, read_all)
    agent_identity = memvec.canonical_identity(theme).agent_identity
    if as_json:
        show_json({"role": role, "agent_identity": agent_identity, "read_all": read_all})
        return
    reads = "reads every ordinary theme" if read_all else "reads its own themes only"
    say(f"{role} acts as {agent_identity} and {reads}.")


def unbind_role(
    role: Annotated[str, typer.Argument(metavar="ROLE", show_default=False, help="The login role.")],
    theme: Annotated[
        str | None,
        typer.Argument(metavar="[THEME]", show_default=False, help="The theme to take away. Default: all."),
    ] = None,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Undo bind-role, for one theme or for all. A role without any may act as every theme again.

    \b
    Examples:
      hermes-pgsql unbind-role hermes_sales
      hermes-pgsql unbind-role hermes_sales marketing
    """
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.opening import admin_dsn as find_admin_dsn

    memvec = Memvec(find_admin_dsn(settings_with(dsn=dsn, admin_dsn=admin_dsn)))
    gone = memvec.unbind_role(role, theme)
    if as_json:
        show_json({"role": role, "agent_identity": theme, "unbound": gone})
        return
    if not gone:
        say(f"{role} was not bound to {'any theme' if theme is None else theme}.")
        return
    say(f"Took {gone} binding{'' if gone == 1 else 's'} from {role}.")
    if theme is None:
        note(f"{role} may act as any theme now, unless the setting require_binding is on.")
