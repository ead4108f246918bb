"""``import``: bring in what is kept elsewhere: the older plugin's tables, memory files, lines of JSON."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from hermes_pgsql.cli.add import Target
from hermes_pgsql.cli.options import AdminDsn, AsJson, Dsn, not_blank, settings_with
from hermes_pgsql.cli.output import (
    counted,
    note,
    plain,
    progress_bar,
    row_counter,
    say,
    show,
    show_json,
    table,
    warn,
)
from hermes_pgsql.cli.spaces import when_free

if TYPE_CHECKING:
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.config import Settings
    from hermes_pgsql.importing import Incoming, Report
    from hermes_pgsql.older_plugin import OlderTables

app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})

DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Store nothing; say what would be stored.")
]

_PARTLY: Final = 3
_MOST_SHOWN: Final = 20


@app.callback()
def _root() -> None:  # pyright: ignore[reportUnusedFunction]
    """Bring in what is kept elsewhere. Doing it twice stores nothing twice."""


@app.command()
def pgvector(
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="DSN",
            show_default=False,
            help="Connection string of the older plugin's database (plugins.pgvector.dsn). It is only read.",
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            show_default=False,
            help="The model that made the older vectors, for example nomic-embed-text. Default: embed_model"
            " of config.yaml, if it is set there; else the vectors are left out.",
        ),
    ] = None,
    no_vectors: Annotated[
        bool, typer.Option("--no-vectors", help="Leave the vectors out, to have the text embedded anew.")
    ] = False,
    schema: Annotated[
        str | None, typer.Option(show_default=False, help="Schema of the older tables. Default: found.")
    ] = None,
    dry_run: DryRun = False,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Take over the entries, turns, agents and delegations of hermes-memory-pgvector 0.3 to 1.0.

    Rows of chats become rows of the sinks whatsapp-dm and external-group, each of its own person. Times,
    metadata and sessions are kept, and vectors as they are where the model is known.

    \b
    Examples:
      hermes-pgsql import pgvector --from "$OLD_DSN" --model nomic-embed-text --dry-run
      hermes-pgsql import pgvector --from "$OLD_DSN" --model nomic-embed-text
    """
    from hermes_pgsql.importing import Report, import_all
    from hermes_pgsql.older_plugin import open_older_tables
    from hermes_pgsql.whereabouts import remember

    remember(source, "--from")
    settings, memvec = _administrator(dsn, admin_dsn, dry_run)
    report = Report(dry_run)
    with open_older_tables(source, schema) as older:
        space = None if no_vectors else _space_of_older(older, model, settings, memvec, report)
        total = max(1, sum(older.counts().values()))
        with progress_bar() as bar:
            import_all(
                memvec,
                _with_policy(older.rows(space), settings),
                report,
                origin="hermes-memory-pgvector",
                mask=settings.redact_secrets,
                progress=lambda done: bar("import", done / total),
            )
    _finish(memvec, report, as_json=as_json)


@app.command()
def md(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", show_default=False, help="MEMORY.md, USER.md, or a home folder.")
    ],
    identity: Annotated[
        str | None,
        typer.Option(
            metavar="THEME",
            show_default=False,
            help="Theme (or session key) that the entries go to. Default: the theme of the home's profile.",
            callback=not_blank,
        ),
    ] = None,
    target: Annotated[
        Target | None,
        typer.Option(
            show_default=False, help="Which memory a file is. Default: user for USER.md, else memory."
        ),
    ] = None,
    dry_run: DryRun = False,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Take over the entries of the host's memory files. The files stay as they are.

    A home that uses this provider needs no import: its files are mirrored by themselves.

    \b
    Examples:
      hermes-pgsql import md ~/old-agent/.hermes --identity marketing
      hermes-pgsql import md notes/MEMORY.md --identity ops --dry-run
    """
    from hermes_pgsql.importing import Report, import_all

    files = _memory_files(path, target)
    settings, memvec = _administrator(dsn, admin_dsn, dry_run)
    report = Report(dry_run)
    theme = identity if identity is not None else _theme_of_home(path)
    if identity is None:
        report.notes.append(f"The entries go to the theme {theme}; --identity names another.")
    import_all(memvec, _entries(files, theme), report, origin="memory files", mask=settings.redact_secrets)
    _finish(memvec, report, as_json=as_json)


@app.command()
def jsonl(
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", show_default=False, help="The lines; - reads them in.")
    ],
    dry_run: DryRun = False,
    admin_dsn: AdminDsn = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Take over rows from lines of JSON: an export of hermes-pgsql, or lines of your own.

    \b
    Lines of your own:
      {"kind": "entry", "identity": "ops", "target": "memory", "content": "…"}
      {"kind": "turn", "identity": "ops", "session_id": "s1", "role": "user", "content": "…"}

    \b
    Examples:
      hermes-pgsql import jsonl memory.jsonl --dry-run
      hermes-pgsql export --all --admin-dsn "$OLD" | hermes-pgsql import jsonl - --admin-dsn "$NEW"
    """
    from hermes_pgsql.importing import Report, import_all
    from hermes_pgsql.jsonl import JsonLines, Space, lines_of

    settings, memvec = _administrator(dsn, admin_dsn, dry_run)
    report = Report(dry_run)

    def space_of(space: Space) -> int:
        if dry_run:
            return -1
        return when_free(
            lambda: memvec.add_embedding_space(
                space.model, space.dim, space.query_prefix, space.document_prefix, space.min_similarity
            )
        )

    with _opened(file) as lines, row_counter() as counter:
        reader = JsonLines(lines_of(lines), space_of, memvec.persons_mark())
        import_all(
            memvec,
            reader.rows(),
            report,
            origin="lines of JSON",
            mask=settings.redact_secrets,
            in_order=True,
            progress=counter,
        )
    for reason, count in reader.without_vector.items():
        report.notes.append(f"{count:,} vectors were left out: {reason}.")
    _finish(memvec, report, as_json=as_json)


# What the commands share ------------------------------------------------------------


def _administrator(dsn: str | None, admin_dsn: str | None, dry_run: bool) -> tuple[Settings, Memvec]:
    from hermes_pgsql.cli.making import made_if_absent
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.opening import admin_dsn as find_admin_dsn

    settings = settings_with(dsn=dsn, admin_dsn=admin_dsn)
    memvec = Memvec(find_admin_dsn(settings) if dry_run else made_if_absent(find_admin_dsn, settings))
    memvec.schema_version()  # so that a database that is not there, or not migrated, is noticed first
    return settings, memvec


def _finish(memvec: Memvec, report: Report, *, as_json: bool) -> None:
    if not report.dry_run:
        memvec.housekeeping()  # what recall plans by: how many rows a theme has, which words are common
    skipped = sum(counts.skipped for counts in report.kinds.values())
    if as_json:
        show_json(
            {
                "dry_run": report.dry_run,
                "kinds": report.kinds,
                "into_sinks": report.into_sinks,
                "of_nobody": report.of_nobody,
                "of_strangers": report.of_strangers,
                "not_allowed": report.not_allowed,
                "masked": report.masked,
                "skipped": [{"place": place, "reason": reason} for place, reason in report.skipped],
                "reasons": report.reasons,
                "notes": report.notes,
            }
        )
    else:
        _show_report(report)
    if skipped:
        raise typer.Exit(_PARTLY)


def _show_report(report: Report) -> None:
    if not report.kinds:
        say("There was nothing to import.")
    else:
        numbers = ("read", "would add" if report.dry_run else "added", "already there", "skipped", "vectors")
        shown = table("rows", *numbers, numbers=numbers)
        for kind, counts in report.kinds.items():
            shown.add_row(
                _PLURAL.get(kind, plain(kind)),
                *(
                    f"{number:,}"
                    for number in (
                        counts.read,
                        counts.added,
                        counts.duplicates,
                        counts.skipped,
                        counts.vectors,
                    )
                ),
            )
        show(shown)
    for sink, count in sorted(report.into_sinks.items()):
        say(
            f"{counted(count, 'row', 'rows')} named a chat or a benchmark as theme: they belong to the sink"
            f" {sink}."
        )
    if report.of_nobody:
        say(
            f"{counted(report.of_nobody, 'row of a sink does', 'rows of sinks do')} not say whose chat it"
            " was: kept, and recalled for nobody."
        )
    if report.of_strangers:
        warn(
            f"{counted(report.of_strangers, 'row belongs', 'rows belong')} to chat contacts as another"
            " database names them: kept, and recalled for nobody here. pg_dump moves a database with its"
            " contacts."
        )
    if report.not_allowed:
        say(
            f"{counted(report.not_allowed, 'row is', 'rows are')} of themes that allowed_themes does not"
            " list, and went to default."
        )
    if report.masked:
        say(
            f"{counted(report.masked, 'secret was', 'secrets were')} masked; rows that held one are embedded"
            " anew."
        )
    rows = [counts for kind, counts in report.kinds.items() if kind in ("entry", "turn")]
    if not report.dry_run and sum(counts.added for counts in rows) > sum(counts.vectors for counts in rows):
        note("what came without a vector is found by its words; by meaning too after: hermes-pgsql backfill")
    for sentence in report.notes:
        note(sentence)
    for place, reason in report.skipped[:_MOST_SHOWN]:
        warn(f"skipped {place}: {reason}")
    skipped = sum(report.reasons.values())
    if skipped > _MOST_SHOWN:
        warn(f"skipped {skipped - _MOST_SHOWN:,} more; --json names the first 1,000.")
    if report.dry_run:
        say("Nothing was stored (--dry-run).")


_PLURAL: Final = {
    "agent": "themes",
    "entry": "entries",
    "turn": "turns",
    "edge": "delegations",
    "row": "others",
}


# The older plugin ------------------------------------------------------------


def _space_of_older(
    older: OlderTables, model: str | None, settings: Settings, memvec: Memvec, report: Report
) -> int | None:
    """The space for the older vectors; None, with a note why, when they cannot be taken."""
    held = older.vectors()
    if not held:
        return None
    dim = older.dim
    if model is None and "embed_model" in settings.model_fields_set and settings.embed_dim in (None, dim):
        model = settings.embed_model
        report.notes.append(
            f"The vectors are taken for those of {model}, the embed_model of the configuration."
        )
    if model is None or not model.strip():
        report.notes.append(
            f"{held:,} vectors were left out, because the older tables do not say which model made them: name"
            " it with --model and import again, or have the text embedded anew with hermes-pgsql backfill."
        )
        return None
    if dim is None:
        report.notes.append(f"{held:,} vectors were left out: their columns have no one width.")
        return None
    # The older plugin embedded every text as it was, without the prefixes that some models are given.
    report.notes += _advice(model, dim, settings)
    return -1 if report.dry_run else when_free(lambda: memvec.add_embedding_space(model, dim))


def _advice(model: str, dim: int, settings: Settings) -> list[str]:
    """What a host of this configuration must know to recall by the older vectors."""
    from hermes_pgsql.opening import open_embedder

    embedder = open_embedder(settings).embedder
    if embedder is None:
        return []
    prefixes = (embedder.query_prefix, embedder.document_prefix)
    same_model = embedder.model == model
    embedder.close()
    if same_model and prefixes == ("", ""):
        return []
    if same_model:
        return [
            f"The older vectors were made without task prefixes, this home's {model} uses some: set"
            " embed_query_prefix and embed_document_prefix to none to recall by the older vectors at once, or"
            " add the space with prefixes and embed the text anew with hermes-pgsql backfill."
        ]
    return [
        f"This home embeds with another model: to recall by the older vectors set embed_model to {model} and"
        f" embed_dim to {dim}, embed_query_prefix and embed_document_prefix to none; or embed the text anew"
        " with hermes-pgsql backfill."
    ]


def _with_policy(rows: Iterator[Incoming], settings: Settings) -> Iterator[Incoming]:
    """Turns without a vector get one later only if this home's policy says so."""
    from hermes_pgsql.turns import wants_vector

    for incoming in rows:
        row = incoming.row
        if not incoming.vectors and row["kind"] == "turn":
            text, role = str(row.get("content") or ""), str(row.get("role"))
            if not wants_vector(role, text, settings.conversation_embed_policy):
                row["embed"] = False
        yield incoming


# Memory files ------------------------------------------------------------


def _memory_files(path: Path, target: Target | None) -> list[tuple[Path, str]]:
    """The files that are meant, each with its target."""
    from hermes_pgsql.host.home import MEMORY_FILES

    if path.is_file():
        by_name = Target.user if path.name == MEMORY_FILES["user"] else Target.memory
        return [(path, str(target or by_name))]
    if not path.exists():
        raise typer.BadParameter(f"there is no {path}.")
    if target is not None:
        raise typer.BadParameter("--target is for a single file.")
    folder = path / "memories" if (path / "memories").is_dir() else path
    found = [(folder / name, kind) for kind, name in MEMORY_FILES.items() if (folder / name).is_file()]
    if not found:
        raise typer.BadParameter(f"there is no MEMORY.md or USER.md in {folder}.")
    return found


def _entries(files: Sequence[tuple[Path, str]], theme: str) -> Iterator[Incoming]:
    from hermes_pgsql.importing import Incoming
    from hermes_pgsql.memory_file import read_entries

    for path, target in files:
        # The files say nothing of when an entry was written, but that it was by then.
        written = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()
        for number, content in enumerate(read_entries(path) or [], start=1):
            row: dict[str, object] = {
                "kind": "entry",
                "identity": theme,
                "target": target,
                "content": content,
                "created_at": written,
                "metadata": {"origin": "import", "file": path.name},
            }
            yield Incoming(f"{path.name} entry {number}", row)


def _theme_of_home(path: Path) -> str:
    """The theme of a profile's home, as the host names it; its default profile has the theme hermes."""
    parts = path.resolve().parts
    for before, name in pairwise(parts):
        if before == "profiles":
            return name
    return "hermes"


# JSONL ------------------------------------------------------------


@contextmanager
def _opened(file: str) -> Generator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as lines:
        yield lines
