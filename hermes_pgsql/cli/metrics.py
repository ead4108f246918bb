"""``metrics``: measurements for Prometheus, printed once or served over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hermes_pgsql.cli.options import AsJson, Dsn, settings_with
from hermes_pgsql.cli.output import note, say, show_json, warn
from hermes_pgsql.errors import ConfigError, MissingExtra
from hermes_pgsql.installing import install_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector

    from hermes_pgsql.exporter import Measurement


def metrics(
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            show_default=False,
            help="Serve them at http://HOST:PORT/metrics until stopped.",
        ),
    ] = None,
    hermes_home: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            show_default=False,
            help="A host's home whose outbox is measured; may be given several times. Default: $HERMES_HOME.",
        ),
    ] = None,
    database: Annotated[
        bool, typer.Option("--database/--no-database", help="Measure the database as well.")
    ] = True,
    themes: Annotated[
        int, typer.Option(min=0, max=10_000, help="How many of the largest themes are told apart.")
    ] = 50,
    dsn: Dsn = None,
    as_json: AsJson = False,
) -> None:
    """Print measurements of the database and of homes as Prometheus reads them, or serve them.

    Run it as the user that the agents run as: their outboxes are readable by nobody else. The login of the
    dsn needs memvec_reader or memvec_runtime.

    \b
    Examples:
      hermes-pgsql metrics --listen 127.0.0.1:9187
      hermes-pgsql metrics --no-database --hermes-home /srv/a --hermes-home /srv/b
      hermes-pgsql metrics --json
    """
    from hermes_pgsql.client import Memvec
    from hermes_pgsql.config import hermes_home as default_home
    from hermes_pgsql.exporter import measure
    from hermes_pgsql.opening import runtime_dsn

    homes = hermes_home or [default_home()]
    if as_json and listen is not None:
        raise typer.BadParameter("--json prints once and --listen serves; give one of them.")
    where = None if listen is None else _address(listen)
    memvec = Memvec(runtime_dsn(settings_with(dsn=dsn)), timeout=20.0) if database else None

    def measured() -> list[Measurement]:
        return measure(memvec, homes, themes)

    if as_json:
        show_json(measured())
    elif where is None:
        _print(measured)
    else:
        _serve(measured, *where)


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()):
        raise typer.BadParameter("--listen takes HOST:PORT, such as 127.0.0.1:9187.")
    if int(port) > 65535:
        raise typer.BadParameter(f"--listen names port {port}; ports go from 0 (any free one) to 65535.")
    return host.strip("[]") or "127.0.0.1", int(port)


def _collector(measured: Callable[[], list[Measurement]]) -> Collector:
    try:
        from prometheus_client.registry import Collector as Base
    except ImportError:
        raise MissingExtra(
            "The package prometheus-client is not installed.", hint=f"Run: {install_extra('metrics')}"
        ) from None
    from hermes_pgsql.exporter import prometheus_families

    class Measured(Base):
        def collect(self) -> Iterable[Metric]:
            return prometheus_families(measured())

    return Measured()


def _print(measured: Callable[[], list[Measurement]]) -> None:
    collector = _collector(measured)
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    say(generate_latest(registry).decode().rstrip("\n"))


def _serve(measured: Callable[[], list[Measurement]], host: str, port: int) -> None:
    collector = _collector(measured)
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise ConfigError(
            f"{host}:{port} cannot be listened on: {error.strerror or error}.", hint="Name another port."
        ) from None
    if host not in {"127.0.0.1", "::1", "localhost"}:
        warn("everybody who reaches this address can read names and sizes of themes")
    note(f"serving http://{host}:{server.server_port}/metrics")
    try:
        thread.join()
    finally:
        server.shutdown()
