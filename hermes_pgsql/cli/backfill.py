"""``backfill``: give the rows of an embedding space the vectors they lack."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hermes_pgsql.cli.options import AsJson, Dsn, refuse_unusable, settings_with
from hermes_pgsql.cli.output import counted, note, row_progress, say, show_json, warn
from hermes_pgsql.errors import ConfigError, DatabaseFailure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_pgsql.backfill import BackfillReport
    from hermes_pgsql.results import RowFailure

DONE, UNAVAILABLE, PARTLY = 0, 2, 3
_CODES: Final = {"done": DONE, "partly": PARTLY, "unavailable": UNAVAILABLE}
_IDS_SHOWN: Final = 8
_REASONS_SHOWN: Final = 10


def backfill(
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", show_default=False, help="Fill the space of this model. Default: the configured."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, max=32, help="Batches at a time.")] = 4,
    batch: Annotated[int, typer.Option(min=1, max=256, help="Texts in one request.")] = 32,
    retry: Annotated[
        bool, typer.Option("--retry", help="Try also the rows that were given up in earlier runs.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the rows without a vector.")] = False,
    embed_url: Annotated[
        str | None,
        typer.Option(metavar="URL", show_default=False, help="Address of the embedding service."),
    ] = None,
    embed_model: Annotated[
        str | None, typer.Option(metavar="NAME", show_default=False, help="The model to ask it for.")
    ] = None,
    embed_dim: Annotated[
        int | None, typer.Option(metavar="N", show_default=False, help="Width of the model's vectors.")
    ] = None,
    embed_api_key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", show_default=False, help="Environment variable that holds the service's key."
        ),
    ] = None,
    embed_protocol: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default=False, help="What it speaks: auto, openai or ollama."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="Another config.yaml than the one in the home."
        ),
    ] = None,
    admin_dsn: Annotated[
        str | None,
        typer.Option(
            envvar="HERMES_PGSQL_ADMIN_DSN",
            show_default=False,
            help="Connection string of an administrator, or of a login in memvec_embedder."
            " Default: --dsn. Not needed for the embedded server.",
        ),
    ] = None,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Embed what has no vector yet. Any number at a time, on any number of hosts; killed, it goes on later.

    Exit codes: 0 every row that shall have a vector has one, 3 some could not be embedded, 2 the endpoint
    cannot be used.

    \b
    Examples:
      hermes-pgsql backfill
      hermes-pgsql backfill --model bge-m3 --embed-url http://gpu:8080 --jobs 8
    """
    from hermes_pgsql import backfill as run
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.embedding import EmbeddingError
    from hermes_pgsql.opening import maintenance_dsn

    if model and embed_model and model != embed_model:
        raise typer.BadParameter(
            "--model and --embed-model name two models; vectors of one never go into the space of the other."
        )
    given = {
        "embed_url": embed_url,
        "embed_model": embed_model,
        "embed_dim": embed_dim,
        "embed_api_key_env": embed_api_key_env,
        "embed_protocol": embed_protocol,
    }
    refuse_unusable(**given)
    settings = settings_with(config, dsn=dsn, admin_dsn=admin_dsn, **given)
    if model is not None and embed_url is None and model == _builtin_model():
        settings = settings.model_copy(update={"embed_url": None})
    memvec = Memvec(maintenance_dsn(settings))
    try:
        target = run.find_target(settings, memvec, model, batch=batch)
        pending = memvec.pending_embeddings(target.space_id)
    except DatabaseFailure as error:
        if error.sqlstate != "42501":
            raise
        raise ConfigError(
            error.message,
            hint="A backfill sees the texts of all themes: give an administrator's login with --admin-dsn, or"
            " one that was granted the role memvec_embedder.",
        ) from None
    except EmbeddingError as error:
        warn(error.reason)
        if as_json:
            show_json({"outcome": "unavailable", "unavailable": error.reason})
        raise typer.Exit(UNAVAILABLE) from None
    if dry_run:
        if as_json:
            show_json({"space_id": target.space_id, "model": target.model, **_fields(pending)})
        else:
            lack = counted(pending.pending, "row has", "rows have")
            say(f"{lack} no vector of {target.model}; {pending.given_up:,} given up.")
        return
    try:
        with row_progress(target.model) as progress:
            report = run.backfill(
                memvec,
                target,
                jobs=jobs,
                batch=batch,
                timeout=settings.embed_write_timeout,
                given_up=retry,
                progress=progress,
            )
    finally:
        target.embedder.close()
    lost = [row for row in memvec.embedding_failures(target.space_id, 100_000) if row.given_up]
    if as_json:
        show_json({"outcome": report.outcome, **_fields(report), "given_up_rows": lost})
    else:
        _show(report, lost)
    raise typer.Exit(_CODES[report.outcome])


def _builtin_model() -> str | None:
    from hermes_pgsql.embedding.builtin import MODEL, missing_for_builtin

    return None if missing_for_builtin() else MODEL


def _fields(record: object) -> dict[str, object]:
    import dataclasses

    assert dataclasses.is_dataclass(record)  # noqa: S101 (for the type checker)
    return {item.name: getattr(record, item.name) for item in dataclasses.fields(record)}


def _show(report: BackfillReport, lost: list[RowFailure]) -> None:
    say(
        f"embedded      {counted(report.embedded, 'row', 'rows')} of {report.model} in {report.seconds:.0f} s"
    )
    if report.changed:
        say(f"changed       {counted(report.changed, 'row', 'rows')} got other words or went meanwhile")
    if report.failed:
        say(f"failed        {counted(report.failed, 'row', 'rows')}, tried again by the next run:")
        _show_reasons((one.reason, one.kind, one.id) for one in report.failures if not one.permanent)
    if lost:
        say(f"given up      {counted(len(lost), 'row', 'rows')}, found by words only; --retry tries again:")
        _show_reasons((one.last_error, one.kind, one.id) for one in lost)
    if report.unavailable is not None:
        warn(f"the endpoint cannot be used: {report.unavailable}")
    if report.left:
        fresh = report.left - report.failing - report.given_up
        meanwhile = f", {fresh:,} of them written meanwhile" if fresh and not report.unavailable else ""
        say(f"left          {counted(report.left, 'row', 'rows')} without a vector{meanwhile}")
        if report.unavailable is not None:
            note("Run it again when the endpoint works: it goes on where it was.")


def _show_reasons(rows: Iterable[tuple[str, str, int]]) -> None:
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for reason, kind, row_id in rows:
        by_reason[reason].append(f"{kind} {row_id}")
    groups = sorted(by_reason.items(), key=lambda group: -len(group[1]))
    for reason, names in groups[:_REASONS_SHOWN]:
        more = f" and {len(names) - _IDS_SHOWN:,} more" if len(names) > _IDS_SHOWN else ""
        say(f"  {reason}")
        say(f"    {', '.join(names[:_IDS_SHOWN])}{more}")
    if len(groups) > _REASONS_SHOWN:
        say(f"  and {len(groups) - _REASONS_SHOWN:,} more reasons (--json shows all)")
