"""Whether hermes-agent finds this provider, loads this package, and is told to use it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from hermes_pgsql import __version__
from hermes_pgsql.doctor.configuration import config_doubt, readable
from hermes_pgsql.doctor.finding import Finding, failure, fine, unknown, warning
from hermes_pgsql.installing import install_again

if TYPE_CHECKING:
    from hermes_pgsql.config import Settings

AREA: Final = "host"
_SECONDS: Final = 60.0
_FIRST: Final = "mend that first, then run: hermes-pgsql doctor"
_IMPORT: Final = (
    "import json, hermes_pgsql, hermes_pgsql.provider, psycopg, pydantic, httpx;"
    "print(json.dumps({'version': hermes_pgsql.__version__, 'file': hermes_pgsql.__file__}))"
)


def checks(home: Path, settings: Settings) -> Generator[Finding]:
    del settings
    from hermes_pgsql.host import shim

    if not readable(home):
        for name in ("provider", "shim"):
            yield unknown(AREA, name, "not looked at, because the home cannot be read", _FIRST)
        yield from _loading(home)
        return
    yield _chosen(home)
    for warned in shim.others(home):
        folder = warned.partition(" looks like")[0]
        yield warning(AREA, "copies", warned, f"rm -r {folder}   (after a look at it)")
    loading = list(_loading(home))
    # Hosts after 0.19 find the package by its entry point and need no folder.
    loads = any(finding.name == "discovery" and finding.state == "ok" for finding in loading)
    yield _shim(home, needed=not loads)
    yield from loading


def _loading(home: Path) -> Generator[Finding]:
    from hermes_pgsql.host import shim

    python = shim.host_python()
    if python is None:
        yield unknown(
            AREA,
            "discovery",
            "hermes-agent was not found, so nobody could say whether it loads the provider",
            "run hermes-pgsql doctor from the environment that hermes-agent is in",
        )
        return
    imported = _import(python)
    yield imported
    if imported.state != "failure":
        yield (
            _discovery(python, home)
            if readable(home)
            else unknown(AREA, "discovery", "not looked at, because the home cannot be read", _FIRST)
        )


def _chosen(home: Path) -> Finding:
    from hermes_pgsql.config import read_document

    document: Any
    document, doubts = read_document(home / "config.yaml")
    if doubts:
        return unknown(AREA, "provider", "not known, because config.yaml cannot be read", _FIRST)
    memory: Any = cast("Mapping[str, Any]", document).get("memory") if isinstance(document, Mapping) else None
    chosen: Any = cast("Mapping[str, Any]", memory).get("provider") if isinstance(memory, Mapping) else None
    if chosen == "pgvector":
        return fine(AREA, "provider", "memory.provider is pgvector")
    return warning(
        AREA,
        "provider",
        f"memory.provider is {chosen!r}, so agents do not use this memory"
        if chosen
        else "memory.provider is not set, so agents do not use this memory",
        "hermes config set memory.provider pgvector",
    )


def _shim(home: Path, *, needed: bool) -> Finding:
    """The folder by which hosts up to 0.19 find the provider."""
    from hermes_pgsql.host import shim

    state = shim.state(home)
    folder = home / "plugins" / shim.NAME
    if state == "current":
        return fine(AREA, "shim", str(folder))
    if state == "taken":
        return failure(
            AREA, "shim", f"{folder} is not ours and shadows the provider", "hermes-pgsql install --force"
        )
    if state == "old":
        return warning(AREA, "shim", f"{folder} is of another version", "hermes-pgsql install")
    if not needed:
        return fine(AREA, "shim", "the host needs none: it finds the package by itself")
    return failure(
        AREA, "shim", f"there is no {folder}, so hermes-agent finds no provider", "hermes-pgsql install"
    )


def _import(python: str) -> Finding:
    """Whether a fresh interpreter of the host imports this package, and this version of it."""
    try:
        done = subprocess.run(
            [python, "-c", _IMPORT],
            cwd="/",
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
            return failure(
                AREA,
                "import",
                f"{python} cannot import the package: {why}",
                install_again(python),
            )
        found = cast("dict[str, str]", json.loads(done.stdout.strip().splitlines()[-1]))
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        return failure(
            AREA, "import", f"{python} cannot be run: {type(error).__name__}", "hermes memory status"
        )
    if found["version"] != __version__:
        return warning(
            AREA,
            "import",
            f"the host runs hermes-pgsql {found['version']} ({found['file']}), this command is {__version__}",
            install_again(python),
        )
    return fine(AREA, "import", f"{python} imports hermes-pgsql {found['version']}")


def _discovery(python: str, home: Path) -> Finding:
    """Whether the host's own loader takes our provider, from our folder or from the package's entry point."""
    from hermes_pgsql.host import shim

    try:
        said = shim.ask_host(python, home)
    except shim.ShimError as error:
        return failure(AREA, "discovery", error.message, "hermes memory status")
    if said.get("host") is None:
        return unknown(
            AREA,
            "discovery",
            f"{python} has no hermes-agent, so nobody could say whether it loads the provider",
            "run hermes-pgsql doctor from the environment that hermes-agent is in",
        )
    ours = (home / "plugins" / shim.NAME).resolve()
    folder = said.get("folder")
    if folder is not None and folder != str(ours):
        return failure(
            AREA,
            "discovery",
            f"the host takes another folder for pgvector, which shadows ours: {folder}",
            f"mv {folder} {Path(str(folder)).with_name('.pgvector-aside')}",
        )
    if not said.get("available") and shim.state(home) in {"absent", "taken"}:
        # The fault is the folder's, and so is the fix.
        return unknown(AREA, "discovery", "not judged, because the shim is missing", _FIRST)
    if not said.get("available") and config_doubt(home):
        return unknown(AREA, "discovery", "not judged, because config.yaml cannot be read", _FIRST)
    if not said.get("available"):
        return failure(
            AREA,
            "discovery",
            f"the host finds the provider and cannot use it: {said.get('reason') or 'it does not load'}",
            f"{install_again(python)}; hermes-pgsql install",
        )
    return fine(AREA, "discovery", f"the host loads the provider ({said.get('host')})")
