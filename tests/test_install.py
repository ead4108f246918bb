"""The folder by which the host finds us, the setup wizard, and writing the host's configuration."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from provider_support import HomeUnderTest, ModelServer

from hermes_pgsql.config import load_settings
from hermes_pgsql.errors import ConfigError
from hermes_pgsql.host import shim
from hermes_pgsql.host.config_file import activate, read_config, save_settings, set_env
from hermes_pgsql.host.setup import run
from hermes_pgsql.host.shim import ShimError, install, remove
from hermes_pgsql.installing import source
from hermes_pgsql.provider import PgvectorProvider

CONFIG = """\
# The household's agent.
model:
  default: big   # the big one
memory:
  provider: ''
  pgvector:
    embed_dim: 768        # measured
    favourite: blue       # nobody knows this key
    hybrid_search: true
terminal: {cwd: "~"}
"""


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    server = ModelServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host itself is asked in tests/host."""
    monkeypatch.setattr(shim, "host_python", lambda: None)
    monkeypatch.delenv("HERMES_PGSQL_DSN", raising=False)


# The shim ------------------------------------------------------------


def test_install_writes_once_and_remove_takes_away(tmp_path: Path) -> None:
    done = install(tmp_path)
    assert done.written
    assert done.checked_with is None
    assert "hermes-agent was not found" in done.warnings[0]
    assert not install(tmp_path).written
    (done.folder / "__pycache__").mkdir()
    (done.folder / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert remove(tmp_path).removed
    assert not done.folder.exists()
    assert not remove(tmp_path).removed


def test_an_older_shim_is_brought_up_to_date(tmp_path: Path) -> None:
    folder = install(tmp_path).folder
    (folder / "plugin.yaml").write_text(f"{shim.MARK}\nname: pgvector\nversion: 0.0.1\n")
    assert shim.state(tmp_path) == "old"
    assert install(tmp_path).written
    assert shim.state(tmp_path) == "current"
    # Written from another environment, which had the package from elsewhere: no other version.
    init = folder / "__init__.py"
    init.write_text(re.sub("^_SOURCE = .*$", '_SOURCE = "/srv/x.whl"', init.read_text(), flags=re.MULTILINE))
    assert "/srv/x.whl" in init.read_text()
    assert shim.state(tmp_path) == "current"
    assert not install(tmp_path).written
    assert yaml.safe_load((folder / "plugin.yaml").read_text())["kind"] == "exclusive"


def test_what_the_host_looks_for_is_in_its_first_bytes(tmp_path: Path) -> None:
    text = (install(tmp_path).folder / "__init__.py").read_text()
    assert "register_memory_provider" in text[:8192]
    assert len(text) < 8192


@pytest.mark.parametrize("how", ["file", "other", "more", "changed", "link"])
def test_what_others_made_is_not_touched(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "plugins" / "pgvector"
    folder.parent.mkdir()
    if how == "file":
        folder.write_text("mine")
    elif how == "link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    elif how == "other":
        folder.mkdir()
        (folder / "__init__.py").write_text("mine")
    else:
        install(tmp_path)
        name = "notes.txt" if how == "more" else "__init__.py"
        (folder / name).write_text("mine")
    with pytest.raises(ShimError, match=r"holds more than|not ours") as caught:
        remove(tmp_path)
    assert "--force" in caught.value.hint
    with pytest.raises(ShimError, match="not ours"):
        install(tmp_path)
    done = install(tmp_path, force=True)
    assert done.written
    assert done.moved is not None
    assert done.moved.name.startswith(".")
    assert not done.folder.is_symlink()
    assert remove(tmp_path).removed
    if how == "link":
        assert (tmp_path / "elsewhere").is_dir()


def test_a_copy_beside_ours_is_pointed_out(tmp_path: Path) -> None:
    """Case X13: a backup, or a second folder with the same tools."""
    folder = install(tmp_path).folder
    copy = folder.with_name("pgvector.bak")
    copy.mkdir()
    (copy / "__init__.py").write_text((folder / "__init__.py").read_text())
    assert any("pgvector.bak" in warning for warning in install(tmp_path).warnings)


def test_the_shim_without_the_package_says_what_is_missing(tmp_path: Path) -> None:
    """In an interpreter that has the host and not this package (case X13)."""
    install(tmp_path / "home")
    agent = tmp_path / "agent"
    agent.mkdir()
    (agent / "__init__.py").write_text("")
    (agent / "memory_provider.py").write_text("class MemoryProvider:\n    pass\n")
    program = f"""
import importlib.util, sys
sys.path.insert(0, {str(tmp_path)!r})
sys.modules["hermes_pgsql"] = None
file = {str(tmp_path / "home/plugins/pgvector/__init__.py")!r}
spec = importlib.util.spec_from_file_location("_hermes_user_memory.pgvector", file)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
class Context:
    def register_memory_provider(self, provider):
        print(provider.name, provider.is_available(), provider.get_status_config({{}})["problem"])
module.register(Context())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("pgvector False")
    # From where it came when the folder was written, which somebody may have to type now.
    command = f"run: {sys.executable} -m pip install {source()}"
    assert command in done.stdout
    assert command in done.stderr


@pytest.mark.parametrize("name", ["another.name", "_hermes_user_memory.pgvector", "pgvector_plugin"])
def test_the_shim_loads_under_any_name(tmp_path: Path, name: str) -> None:
    """Case X13: as a package under somebody's name, whose modules the loader also sets as attributes; beside
    the package ``pgvector`` of others, which has nothing to do with the folder's name."""
    folder = install(tmp_path).folder
    program = f"""
import importlib.util, sys, types
parent = {name!r}.rpartition(".")[0]
if parent:
    sys.modules[parent] = types.ModuleType(parent)
    sys.modules[parent].__path__ = []
file = {str(folder / "__init__.py")!r}
spec = importlib.util.spec_from_file_location({name!r}, file, submodule_search_locations=[{str(folder)!r}])
module = importlib.util.module_from_spec(spec)
sys.modules[{name!r}] = module
if parent:
    setattr(sys.modules[parent], "pgvector", module)
spec.loader.exec_module(module)
import hermes_pgsql.prefetch, hermes_pgsql.redact  # named like a hook, and like a function of theirs
provider = module.PgvectorProvider()
import pgvector
from hermes_pgsql.values import half_vector
print(provider.name, provider.prefetch("x") == "", hermes_pgsql.redact.redact("x"), pgvector.__name__)
print(half_vector([1.0, 2.0]).dimensions())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["pgvector True ('x', 0) pgvector", "2"]


def test_command_line(tmp_path: Path) -> None:
    def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-m",
            "hermes_pgsql",
            "install",
            "--hermes-home",
            str(tmp_path),
            *arguments,
        ]
        path = "/usr/bin:/bin"
        return subprocess.run(
            command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )

    done = run_command("--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["written"] is True
    told = run_command().stdout
    assert "Next: hermes memory setup pgvector" in told
    assert "hermes config set memory.provider pgvector" in told
    (tmp_path / "plugins" / "pgvector" / "mine").write_text("")
    refused = run_command("--remove")
    assert refused.returncode == 1
    assert "holds more than" in refused.stderr
    assert run_command("--remove", "--force").returncode == 0


# The configuration ------------------------------------------------------------


def test_saving_keeps_comments_order_and_keys_nobody_knows(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    path.chmod(0o640)
    PgvectorProvider().save_config(
        {"hybrid_search": "false", "prefetch_limit": "7", "embed_url": "", "scope_default": "all"},
        str(tmp_path),
    )
    text = path.read_text()
    for kept in (
        "# The household's agent.",
        "# the big one",
        "# measured",
        "# nobody knows this key",
        '{cwd: "~"}',
    ):
        assert kept in text
    assert text.index("model:") < text.index("memory:") < text.index("terminal:")
    assert yaml.safe_load(text)["memory"]["pgvector"] == {
        "embed_dim": 768,
        "favourite": "blue",
        "hybrid_search": False,
        "prefetch_limit": 7,
        "scope_default": "all",
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert load_settings(tmp_path, {}).hybrid_search is False
    activate(tmp_path)
    assert yaml.safe_load(path.read_text())["memory"]["provider"] == "pgvector"
    assert [entry.name for entry in tmp_path.iterdir()] == ["config.yaml"]


def test_a_form_that_sends_back_what_it_showed_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "memory:\n  pgvector:\n    allowed_themes: [a, b]\n    identity_aliases: {x: y}\n    ttl_days: 3\n"
    )
    before = path.read_text()
    shown = {key: str(value) for key, value in yaml.safe_load(before)["memory"]["pgvector"].items()}
    save_settings(tmp_path, shown)
    assert yaml.safe_load(path.read_text()) == yaml.safe_load(before)
    save_settings(tmp_path, {"allowed_themes": "c, d"})
    assert load_settings(tmp_path, {}).allowed_themes == ("c", "d")


def test_saving_unsets_what_was_emptied(tmp_path: Path) -> None:
    save_settings(tmp_path, {"embed_url": "http://x:1", "prefetch_limit": 3})
    save_settings(tmp_path, {"embed_url": "  "})
    assert read_config(tmp_path) == {"prefetch_limit": 3}


def test_a_password_goes_into_the_env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_PGSQL_DSN", "")
    (tmp_path / ".env").write_text("OTHER=1\nHERMES_PGSQL_DSN=old\n")
    (tmp_path / ".env").chmod(0o644)
    save_settings(tmp_path, {"dsn": "postgresql://hermes:s3cret$x@db/m", "prefetch_limit": 3})
    assert "s3cret" not in (tmp_path / "config.yaml").read_text()
    assert (
        tmp_path / ".env"
    ).read_text() == "OTHER=1\nHERMES_PGSQL_DSN='postgresql://hermes:s3cret$x@db/m'\n"
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600
    assert load_settings(tmp_path).dsn == "postgresql://hermes:s3cret$x@db/m"
    monkeypatch.delenv("HERMES_PGSQL_DSN")
    # Also by a program that the host did not start, and for a home that is not this process's.
    assert load_settings(tmp_path).dsn == "postgresql://hermes:s3cret$x@db/m"


@pytest.mark.parametrize("content", ["memory: [", "- a\n- list\n", b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_not_overwritten(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="not changed"):
        save_settings(tmp_path, {"prefetch_limit": 3})
    assert path.read_bytes() == before


def test_a_link_is_followed_and_a_line_break_refused(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text("a: 1\n")
    (tmp_path / "config.yaml").symlink_to(tmp_path / "real.yaml")
    save_settings(tmp_path, {"prefetch_limit": 3})
    assert (tmp_path / "config.yaml").is_symlink()
    assert "prefetch_limit" in (tmp_path / "real.yaml").read_text()
    with pytest.raises(ConfigError, match="line break"):
        set_env(tmp_path, "X", "a\nb")


# The wizard ------------------------------------------------------------


class Dialogue:
    """Answers in order; what was said and asked is kept."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.lines: list[str] = []

    def ask(self, question: str) -> str:
        self.lines.append(question)
        if not self.answers:
            raise EOFError
        return self.answers.pop(0)

    def say(self, text: str) -> None:
        self.lines.append(text)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def test_setup_tries_both_and_writes_at_the_end(tmp_path: Path, database: Any, model: ModelServer) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    config: dict[str, Any] = {"memory": {"provider": "", "pgvector": {"embed_dim": 768}}}
    url = model.url.removesuffix("/v1")
    talk = Dialogue(database.runtime_dsn, url, "words", "")
    assert run(tmp_path, config, talk.ask, talk.say)
    assert "schema version" in talk.text
    assert "256 dimensions" in talk.text
    written = yaml.safe_load((tmp_path / "config.yaml").read_text())["memory"]
    assert written["provider"] == "pgvector"
    assert written["pgvector"]["embed_url"] == url
    assert written["pgvector"]["favourite"] == "blue"
    assert "embed_dim" not in written["pgvector"]
    assert config["memory"]["provider"] == "pgvector"
    assert config["memory"]["pgvector"]["embed_model"] == "words"
    # A second run offers what is there; Enter keeps it.
    again = Dialogue("", "", "", "")
    assert run(tmp_path, None, again.ask, again.say)
    assert read_config(tmp_path)["embed_url"] == url


def test_setup_says_what_is_wrong_and_asks_again(
    tmp_path: Path, empty_database: Any, database: Any, model: ModelServer
) -> None:
    talk = Dialogue(
        "host=127.0.0.1 port=1 dbname=x user=u password=s3cretpw",
        "n",
        empty_database.runtime_dsn,
        "n",
        database.runtime_dsn,
        "http://127.0.0.1:1",
        "words",
        "",
        "n",
        model.url.removesuffix("/v1"),
        "words",
        "",
    )
    assert run(tmp_path, {}, talk.ask, talk.say)
    assert "cannot be reached" in talk.text
    assert "hermes-pgsql migrate" in talk.text
    assert "No vector from" in talk.text
    assert "s3cretpw" not in talk.text
    assert read_config(tmp_path)["dsn"] == database.runtime_dsn


def test_leaving_setup_changes_nothing(tmp_path: Path, database: Any) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    talk = Dialogue(database.runtime_dsn)
    assert not run(tmp_path, {}, talk.ask, talk.say)
    assert (tmp_path / "config.yaml").read_text() == CONFIG
    assert "Nothing was changed" in talk.text


# The status ------------------------------------------------------------


def test_status_shows_settings_and_outbox_and_no_password(tmp_path: Path) -> None:
    home = HomeUnderTest(tmp_path, "postgresql://hermes:hunter2@127.0.0.1:1/x", "")
    home.configure(prefetch_limit="99", embed_url="http://me:pw9@127.0.0.1:1/v1?api_key=pw9x")
    provider = home.provider()
    provider.on_memory_write("add", "memory", "waits")
    shown = provider.get_status_config({"dsn": home.dsn})
    assert shown["database"] == "postgresql://hermes:****@127.0.0.1:1/x"
    assert shown["schema"].startswith("not ready: The database cannot be reached")
    assert shown["prefetch_limit"] == 50
    assert "prefetch_limit" in shown["warnings"]
    assert re.match(r"\d+ waiting, 0 without vector yet, 0 set aside", shown["outbox"])
    assert "hunter2" not in str(shown)
    assert "pw9" not in str(shown)
