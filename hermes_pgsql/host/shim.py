"""The folder ``$HERMES_HOME/plugins/pgvector`` by which the host finds this provider.

hermes-agent 0.19 looks for memory providers in folders only, so an installed package needs one that points to
it. Ours holds two small files that carry a mark; a folder with anything else in it is somebody's and is
neither changed nor removed, unless it is told to be moved aside.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, cast

from hermes_pgsql import __version__
from hermes_pgsql.errors import HermesPgsqlError
from hermes_pgsql.installing import PACKAGE, install_again, source
from hermes_pgsql.rights import READ, WRITE, hint, mend

__all__ = [
    "NAME",
    "Installed",
    "Removed",
    "ShimError",
    "ask_host",
    "host_python",
    "install",
    "others",
    "remove",
    "state",
]

NAME: Final = "pgvector"
MARK: Final = "# Written by `hermes-pgsql install`; `hermes-pgsql install --remove` takes it away."
_CHECK_SECONDS: Final = 60.0

# Before it imports anything, the host looks for "register_memory_provider" in the first 8 KiB. Where the
# package came from stands in a line of its own: once the package is missing, nobody else knows.
_INIT: Final = f'''"""Long-term memory in PostgreSQL: the provider "pgvector" of the package hermes-pgsql."""
{MARK}

_SOURCE = "{PACKAGE}"

try:
    from hermes_pgsql.provider import PgvectorProvider
except ImportError as error:
    import logging
    import shlex
    import sys

    from agent.memory_provider import MemoryProvider

    _WHY = f"{{error}}; run: {{shlex.quote(sys.executable)}} -m pip install {{shlex.quote(_SOURCE)}}"
    logging.getLogger(__name__).warning("Memory provider pgvector is off: %s", _WHY)

    class PgvectorProvider(MemoryProvider):
        """Stands in for the missing package, so that the status command can say what is missing."""

        name = "pgvector"

        def is_available(self):
            return False

        def unavailable_reason(self):
            return _WHY

        def initialize(self, session_id="", **kwargs):
            pass

        def get_tool_schemas(self):
            return []

        def get_status_config(self, provider_config=None):
            return {{"problem": _WHY}}


def register(ctx):
    ctx.register_memory_provider(PgvectorProvider())
'''
_MANIFEST: Final = f"""{MARK}
name: {NAME}
version: {__version__}
description: "Long-term memory in PostgreSQL, shared by a fleet of agents (hermes-pgsql)"
kind: exclusive
"""
_FILES: Final = {"__init__.py": _INIT, "plugin.yaml": _MANIFEST}
_SOURCE_LINE: Final = re.compile(r"^_SOURCE = .*$", re.MULTILINE)

_CHECK: Final = """
import json, sys
from pathlib import Path
try:
    import plugins.memory as loader
except ImportError as error:
    print(json.dumps({"host": None, "error": str(error)}))
    sys.exit()
name = sys.argv[1]
found = loader.find_provider_dir(name)
provider = loader.load_memory_provider(name)
base = None
if provider is not None:
    from agent.memory_provider import MemoryProvider
    base = isinstance(provider, MemoryProvider)
print(json.dumps({
    "host": loader.__file__,
    "folder": None if found is None else str(Path(found).resolve()),
    "class": None if provider is None else type(provider).__module__,
    "base": base,
    "available": None if provider is None else bool(provider.is_available()),
    "reason": "" if provider is None else str(getattr(provider, "unavailable_reason", lambda: "")()),
}))
"""


class ShimError(HermesPgsqlError):
    """The folder could not be written, removed or loaded; the message says why."""


@dataclass(frozen=True, slots=True)
class Installed:
    """Where the shim is, whether it was written now, what was moved aside, and what the host said to it."""

    folder: Path
    written: bool
    moved: Path | None
    checked_with: str | None
    warnings: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Removed:
    """Where the shim was, and whether there was one."""

    folder: Path
    removed: bool


def install(home: Path, *, force: bool = False) -> Installed:
    """Write the shim into ``home`` and let the host load it in a fresh interpreter.

    Raises ``ShimError`` when the place is taken by something else (``force`` moves that aside), cannot be
    written, or the host does not load the provider from there.
    """
    folder = home / "plugins" / NAME
    moved = None
    if _is_taken(folder):
        if not force:
            raise ShimError(
                f"{folder} exists and is not ours.",
                hint="Look at it, then move it away, or let --force move it aside.",
            )
        moved = _move_aside(folder)
    written = _write(folder)
    warnings = others(home)
    checked = _check(home, folder, warnings)
    return Installed(folder, written, moved, checked, warnings)


def remove(home: Path, *, force: bool = False) -> Removed:
    """Take the shim away. Raises ``ShimError`` for a folder that holds more than we wrote."""
    folder = home / "plugins" / NAME
    if fix := mend(folder, READ):
        raise ShimError(f"{folder} cannot be looked at.", hint=f"To mend it: {fix}")
    if not os.path.lexists(folder):
        return Removed(folder, removed=False)
    if folder.is_symlink() and force:
        folder.unlink()
        return Removed(folder, removed=True)
    if _is_taken(folder):
        if not force:
            raise ShimError(
                f"{folder} holds more than `hermes-pgsql install` wrote, so it was left alone.",
                hint="Look at it and remove it yourself, or let --force move it aside.",
            )
        _move_aside(folder)
        return Removed(folder, removed=True)
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise _unwritable(folder, "removed", error) from None
    return Removed(folder, removed=True)


def state(home: Path) -> Literal["absent", "taken", "old", "current"]:
    """What is in the place of the shim: nothing, somebody else's, ours of another version, or ours."""
    folder = home / "plugins" / NAME
    if not os.path.lexists(folder):
        return "absent"
    if _is_taken(folder):
        return "taken"
    return "old" if _stale(folder) else "current"


def _stale(folder: Path) -> list[str]:
    """The files that are missing or of another version; one from another place is not another version."""
    stale: list[str] = []
    for name, text in _FILES.items():
        try:
            there = (folder / name).read_text(encoding="utf-8")
        except OSError:
            there = ""
        if _SOURCE_LINE.sub("", there) != _SOURCE_LINE.sub("", text):
            stale.append(name)
    return stale


def _is_taken(folder: Path) -> bool:
    """Whether something is there that we did not write."""
    if not os.path.lexists(folder):
        return False
    if folder.is_symlink() or not folder.is_dir():
        return True
    for path in folder.iterdir():
        if path.name == "__pycache__":
            continue
        if path.name not in _FILES or path.is_symlink() or not path.is_file():
            return True
        try:
            if MARK not in path.read_text(encoding="utf-8"):
                return True
        except (OSError, UnicodeDecodeError):
            return True
    return False


def _move_aside(folder: Path) -> Path:
    """To a hidden name beside it: the host would take a visible one for another provider."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = folder.with_name(f".{NAME}.bak-{stamp}")
    number = 1
    while os.path.lexists(aside):
        number += 1
        aside = folder.with_name(f".{NAME}.bak-{stamp}-{number}")
    try:
        folder.rename(aside)
    except OSError as error:
        raise _unwritable(folder, "moved aside", error) from None
    return aside


def _unwritable(folder: Path, what: str, error: OSError) -> ShimError:
    # To be removed or moved aside takes rights to the folder above.
    at = folder if what == "written" else folder.parent
    return ShimError(f"{folder} cannot be {what}: {error.strerror or error}.", hint=hint(error, at, WRITE))


def _write(folder: Path) -> bool:
    """Make the folder as it should be; whether anything had to be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stale = _stale(folder)
        line = f"_SOURCE = {json.dumps(source())}"
        for name in stale:
            fresh = folder / f".{name}.{os.getpid()}"
            fresh.write_text(_SOURCE_LINE.sub(lambda _: line, _FILES[name]), encoding="utf-8")
            fresh.replace(folder / name)
    except OSError as error:
        raise _unwritable(folder, "written", error) from None
    except UnicodeDecodeError as error:
        raise ShimError(f"{folder} cannot be written: {error}.") from None
    return bool(stale)


def others(home: Path) -> list[str]:
    """Folders beside ours that the host would take for the same provider's copies."""
    warnings: list[str] = []
    plugins = home / "plugins"
    for folder in sorted(plugins.iterdir()) if plugins.is_dir() else ():
        if folder.name == NAME or folder.name.startswith((".", "_")) or not folder.is_dir():
            continue
        try:
            head = (folder / "__init__.py").read_text(encoding="utf-8", errors="replace")[:8192]
        except OSError:
            continue
        if folder.name.startswith(NAME) or "hermes_pgsql" in head or "recall_memory" in head:
            warnings.append(
                f"{folder} looks like a copy of this provider; the host lists it as one of its own."
                " Remove it, or hide it with a dot before its name."
            )
    return warnings


# Asking the host ------------------------------------------------------------


def host_python() -> str | None:
    """The interpreter that runs hermes-agent: this one, else that of the ``hermes`` command."""
    import importlib.util

    if importlib.util.find_spec("hermes_cli") is not None:
        return sys.executable
    command = shutil.which("hermes")
    if command is None:
        return None
    try:
        with Path(command).open("rb") as file:
            line = file.readline(512).decode("utf-8", "replace").strip()
    except OSError:
        return None
    words = line.removeprefix("#!").split()
    if not line.startswith("#!") or not words or "python" not in words[-1]:
        return None
    return shutil.which(words[-1]) if words[0].endswith("env") else words[0]


def _check(home: Path, folder: Path, warnings: list[str]) -> str | None:
    python = host_python()
    if python is None:
        warnings.append("hermes-agent was not found, so nobody could say whether it loads the provider.")
        return None
    said = ask_host(python, home)
    if said.get("host") is None:
        warnings.append(
            f"hermes-agent cannot be imported by {python}, so nobody could say whether it loads the provider."
        )
        return None
    if said.get("folder") != str(folder.resolve()):
        raise ShimError(
            f"The host takes another folder for {NAME}: {said.get('folder') or 'none'}.",
            hint="Rename or remove that one; a provider that comes with the host hides ours.",
        )
    if not said.get("available"):
        raise ShimError(
            f"The host finds the provider and cannot use it: {said.get('reason') or 'it does not load'}.",
            hint=f"Run: {install_again(python)}",
        )
    if not said.get("base"):
        warnings.append("The provider is not of the host's own base class; newer hosts may refuse it.")
    return python


def ask_host(python: str, home: Path) -> dict[str, object]:
    """What the host's own loader makes of the provider, in a fresh interpreter. Raises ``ShimError``."""
    try:
        done = subprocess.run(
            [python, "-c", _CHECK, NAME],
            env={**os.environ, "HERMES_HOME": str(home)},
            # Not here: the folder one stands in must not add modules of its own.
            cwd="/",
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_CHECK_SECONDS,
            check=False,
        )
        return cast("dict[str, object]", json.loads(done.stdout.strip().splitlines()[-1]))
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError):
        raise ShimError(
            f"The host could not be asked whether it loads the provider ({python}).",
            hint="Try: hermes memory status",
        ) from None
