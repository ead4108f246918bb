"""What messages and pages tell people to type to install something: it must work wherever it came from."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT

from hermes_pgsql import installing
from hermes_pgsql.installing import EXTRAS, install_again, install_extra, install_newer, source

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# The name alone, which only an index could resolve: with or without extras, options or a version.
BY_NAME = re.compile(r"pip install (?:-\S+ )*['\"]?hermes-pgsql\b")


class Noted:
    def __init__(self, text: str | None) -> None:
        self.text = text

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.text


def noted(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    monkeypatch.setattr("importlib.metadata.distribution", lambda _name: Noted(text))


def test_no_message_and_no_page_relies_on_an_index() -> None:
    sources = [path for path in (ROOT / "hermes_pgsql").rglob("*.py") if path.name != "installing.py"]
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert len(sources) > 50
    assert [str(path) for path in [*sources, *pages] if BY_NAME.search(path.read_text())] == []


def test_an_extra_is_named_by_what_it_stands_for() -> None:
    for extra, requirement in EXTRAS.items():
        assert PYPROJECT["optional-dependencies"][extra] == [requirement]
        assert install_extra(extra) in (f"pip install '{requirement}'", f"pip install {requirement}")


def test_the_environment_of_these_tests_has_it_from_a_checkout() -> None:
    where = Path(source())
    assert (where / "pyproject.toml").is_file()
    assert install_again("/opt/my venv/bin/python") == (
        f"'/opt/my venv/bin/python' -m pip install --force-reinstall {where}"
    )


@pytest.mark.parametrize(
    ("url", "more", "where", "newer"),
    [
        (
            "file:///srv/check%20out",
            {"dir_info": {"editable": True}},
            "/srv/check out",
            "git -C '/srv/check out' pull && pip install '/srv/check out'",
        ),
        (
            "file:///srv/hermes_pgsql-0.1.0-py3-none-any.whl",
            {"archive_info": {}},
            "/srv/hermes_pgsql-0.1.0-py3-none-any.whl",
            "pip install the wheel of a newer version (this one was"
            " /srv/hermes_pgsql-0.1.0-py3-none-any.whl)",
        ),
        (
            "https://example.com/fleet/hermes-pgsql.git",
            {"vcs_info": {"vcs": "git", "commit_id": "0"}},
            "git+https://example.com/fleet/hermes-pgsql.git",
            "pip install --upgrade --force-reinstall git+https://example.com/fleet/hermes-pgsql.git",
        ),
        # Addresses that may carry a token are not repeated.
        ("https://me:t0ken@example.com/x.whl", {}, "hermes-pgsql", "pip install --upgrade hermes-pgsql"),
        ("https://example.com/x.whl?key=t0ken", {}, "hermes-pgsql", "pip install --upgrade hermes-pgsql"),
    ],
)
def test_where_it_came_from(
    monkeypatch: pytest.MonkeyPatch, url: str, more: dict[str, object], where: str, newer: str
) -> None:
    noted(monkeypatch, json.dumps({"url": url, **more}))
    assert source() == where
    assert install_newer() == newer


@pytest.mark.parametrize("text", [None, "", "no json", "[]", '{"url": 7}'])
def test_from_an_index_its_name_is_enough(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    noted(monkeypatch, text)
    assert install_again() == "pip install --force-reinstall hermes-pgsql"
    assert install_newer() == "pip install --upgrade hermes-pgsql"


def test_never_installed_it_runs_from_its_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from importlib.metadata import PackageNotFoundError

    def missing(_name: str) -> Noted:
        raise PackageNotFoundError

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    assert source() == str(ROOT)
    monkeypatch.setattr(installing, "__file__", str(tmp_path / "site-packages/hermes_pgsql/installing.py"))
    assert source() == "hermes-pgsql"
