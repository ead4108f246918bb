"""A home or a file that this user may not read or write: what commands say, and that they say it at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes_pgsql import pool
from hermes_pgsql.cli import main
from hermes_pgsql.host import shim

NOBODY = 65534
DSN = "host=127.0.0.1 port=9 dbname=memory"
Command = Callable[..., tuple[int, str, str]]


@contextmanager
def ordinary_user() -> Generator[None]:
    """The rights of a user who is not root, whom no file keeps out."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A folder that everybody may enter (pytest's own are their owner's), in it a home."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    home = made / "home"
    (home / "hermes-pgsql").mkdir(parents=True)
    (home / "config.yaml").write_text("memory: {provider: pgvector}\n")
    for name in [name for name in os.environ if name.startswith(("HERMES_", "PG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.setenv("HERMES_PGSQL_DSN", DSN)  # or a command would start this user's own server
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(shim, "host_python", lambda: None)
    yield made
    pool.close_all()
    for path in [made, *made.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    shutil.rmtree(made)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert isinstance(stopped.value.code, int)
        written = capsys.readouterr()
        return stopped.value.code, written.out, written.err

    def twice(*arguments: str) -> tuple[int, str, str]:
        call(*arguments)  # loads what an ordinary user might not load from root's Python
        with ordinary_user():
            return call(*arguments)

    return twice


def give(home: Path, mode: int, *, own: bool) -> None:
    if own and not os.geteuid():
        for path in [home, *home.rglob("*")]:
            os.chown(path, NOBODY, NOBODY)
    home.chmod(mode)


def checks(command: Command, *more: str) -> dict[tuple[str, str], dict[str, Any]]:
    code, out, _err = command("doctor", "--json", "--dsn", DSN, *more)
    assert code == 1
    return {(one["area"], one["name"]): one for one in json.loads(out)["checks"]}


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="takes a folder of somebody else")


@pytest.mark.parametrize("own", [True, pytest.param(False, marks=root_only)])
def test_doctor_names_the_obstacle_of_a_home_that_cannot_be_read(
    folder: Path, command: Command, own: bool
) -> None:
    home = folder / "home"
    give(home, 0o700 if not own else 0, own=own)
    found = checks(command)
    here = found["configuration", "home"]
    assert here["state"] == "failure"
    assert (f"chmod u+rx {home}" if own else f"sudo chown -R nobody {home}") in here["fix"]
    assert not [one for one in found.values() if "failed itself" in one["message"]]
    assert found["host", "shim"]["state"] == found["outbox", "file"]["state"] == "unknown"
    assert found["database", "connection"]["state"] == "failure"


@root_only
def test_a_home_behind_somebodys_folder_is_to_be_another(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.joinpath("home").chmod(0o700)
    monkeypatch.setenv("HERMES_HOME", str(folder / "home" / "deeper"))
    fix = checks(command)["configuration", "home"]["fix"]
    assert "HERMES_HOME" in fix
    assert f"{folder / 'home'} belongs to root" in fix
    assert "chown" not in fix


@pytest.mark.parametrize(
    "arguments",
    [["outbox"], ["stats"], ["install", "--remove"], ["export", "--all", "HOME/x.jsonl"]],
    ids=" ".join,
)
def test_without_rights_every_command_says_what_to_do_and_json_stays_json(
    folder: Path, command: Command, arguments: list[str]
) -> None:
    home = folder / "home"
    give(home, 0, own=True)
    arguments = [word.replace("HOME", str(home)) for word in arguments]
    code, _out, err = command(*arguments)
    assert code == 1
    assert len(err.strip().splitlines()) >= 2, err
    code, out, _err = command(*arguments, "--json")
    assert code == 1
    assert json.loads(out)["error"]["hint"]


def test_a_file_that_cannot_be_read_is_to_be_made_readable(folder: Path, command: Command) -> None:
    home = folder / "home"
    give(home, 0o755, own=True)
    (home / "config.yaml").chmod(0)
    found = checks(command)
    assert found["configuration", "values"]["fix"] == f"chmod u+r {home / 'config.yaml'}"
    assert found["host", "provider"]["state"] == "unknown"


@pytest.mark.parametrize("own", [True, pytest.param(False, marks=root_only)])
def test_a_home_that_cannot_be_written_gets_a_fix_that_mends_it(
    folder: Path, command: Command, own: bool
) -> None:
    home = folder / "home"
    give(home, 0o555 if own else 0o755, own=own)
    wanted = f"chmod u+wx {home}" if own else f"sudo chown -R nobody {home}   (it belongs to root)"
    assert wanted in checks(command)["configuration", "home"]["fix"]
    with ordinary_user(), pytest.raises(shim.ShimError) as refused:
        shim.install(home)
    assert str(home / "plugins" / "pgvector") in refused.value.message
    assert "Errno" not in refused.value.message
    assert wanted in refused.value.hint


def test_export_names_the_file_that_was_asked_for(folder: Path) -> None:
    from hermes_pgsql.cli.export import _opened  # pyright: ignore[reportPrivateUsage]
    from hermes_pgsql.errors import ConfigError

    give(folder / "home", 0o555, own=True)
    for place, advice in (("home/x.jsonl", "chmod u+wx"), ("none/x.jsonl", "mkdir -p")):
        with ordinary_user(), pytest.raises(ConfigError) as refused, _opened(str(folder / place)):
            pass
        assert str(folder / place) in refused.value.message
        assert ".part" not in str(refused.value)
        assert advice in refused.value.hint
