"""Every benchmark runs from end to end, at a size that says nothing about speed, so that none of them rots.

They run in databases of the tests' server. The peer is left out: it would have to be installed. Data and
model of the evaluation are made up.
"""

from __future__ import annotations

import importlib
import json
import re
import secrets
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from conftest import Database, TestServer

from bench import __main__ as bench
from bench._locomo import Question, scored
from bench._report import Report, options_of
from hermes_pgsql import pool
from hermes_pgsql.embedded import EmbeddedServer

TINY = {
    "apply_ops": ["--rounds", "1", "--batch", "2"],
    "backfill": ["--rows", "40", "--peer-rows", "4"],
    "filtered": ["--rows", "350", "600", "--questions", "2", "--rounds", "1"],
    "growth": ["--rows", "700", "760", "--calls", "12"],
    "hooks": ["--calls", "3"],
    "import_rows": ["--rows", "40"],
    "latency": ["--rows", "1500", "--calls", "2"],
    "maintenance": [
        *("--rows", "60", "--beside", "60", "--dim", "8"),
        *("--turns", "400", "--old", "90", "--seconds", "1"),
    ],
    "throughput": ["--part", "0.01", "--rows", "1000", "--clients", "1", "5", "--seconds", "0.2"],
    "write_path": ["--puts", "20"],
}
WITHOUT_PEER = ["--no-peer"]


class Words:
    """An embedder that counts words."""

    model, query_prefix, document_prefix, endpoint = "words", "", "", "here"
    dim, min_similarity = 32, None

    def embed_documents(self, texts: Sequence[str], _deadline: float | None = None) -> list[array[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str, _deadline: float | None = None) -> array[float]:
        vector = array("f", bytes(4 * self.dim))
        for word in text.casefold().strip(".?").split():
            vector[crc32(word.encode()) % self.dim] += 1
        return vector

    def close(self) -> None:
        pass


@pytest.fixture
def run(server: TestServer, template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Runs a benchmark in a database of its own and returns what it wrote."""
    names: list[str] = []

    @contextmanager
    def fresh_server(settings: Mapping[str, str] | None = None) -> Iterator[EmbeddedServer]:
        names.append(f"memvec_{secrets.token_hex(4)}")
        server.create_database(names[-1], template)
        here = Database(server, names[-1])
        nowhere = tmp_path / "none"
        yield EmbeddedServer(
            nowhere, nowhere, nowhere, 5432, server.bin_dir, here.admin_dsn, here.runtime_dsn
        )
        pool.close_all()

    def run_one(name: str, options: list[str]) -> dict[str, Any]:
        module = importlib.import_module(f"bench.{name}")
        monkeypatch.setattr(module, "fresh_server", fresh_server)
        file = tmp_path / f"{name}.json"
        module.main([*options, *WITHOUT_PEER, "--json", str(file)])
        return json.loads(file.read_text(encoding="utf-8"))

    yield run_one
    for name in names:
        server.drop_database(name)


@pytest.mark.parametrize("name", TINY)
def test_a_benchmark_runs(
    name: str, run: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_pgsql.embedded.down", lambda _root: None)  # it is the tests' server
    written = run(name, TINY[name])
    assert written["tables"]
    assert all(table["rows"] for table in written["tables"])
    if name == "filtered":
        assert {row[1] for table in written["tables"] for row in table["rows"]} == {1.0}
    assert f"| {' | '.join(written['tables'][0]['columns'])} |" in capsys.readouterr().out


def test_quality_scores_what_recall_finds(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.quality.BuiltinEmbedder", Words)
    monkeypatch.setattr("bench._models.BUILD", tmp_path)
    turns = [
        [f"D1:{at}", 1, "2023-05-08T13:56:00", name, text, None]
        for at, (name, text) in enumerate(
            [("Ann", "My dentist is in Kelso."), ("Bob", "Lovely weather."), ("Ann", "See you.")]
        )
    ]
    asked = [
        {"conv": "c", "cat": 1, "q": "Where is Ann's dentist?", "ev": ["D1:0"], "fold": fold}
        for fold in ("test", "tune")
    ]
    data = {"convs": [{"id": "c", "speakers": ["Ann", "Bob"], "turns": turns}], "questions": asked}
    (tmp_path / "locomo_turns.json").write_text(json.dumps(data), encoding="utf-8")
    written = run("quality", ["--data", str(tmp_path), "--models", "built-in"])
    ways = {row[0]: row[1:4] for row in written["tables"][0]["rows"]}
    assert ways["words only"] == ways["words and meaning"] == [1.0, 1.0, 1.0]
    assert ways["meaning only"][1] == 1.0


def test_quality_says_what_data_it_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quality = importlib.import_module("bench.quality")
    for options in ([], ["--data", str(tmp_path)], ["--data", str(tmp_path / "none")]):
        quality.main(options)
        said = capsys.readouterr().out
        assert "Skipped: " in said
        assert "locomo_turns.json" in said
        assert '"questions"' in said
    (tmp_path / "locomo_turns.json").write_text('{"convs": [{}]}', encoding="utf-8")
    with pytest.raises(SystemExit, match="is not what was expected"):
        quality.main(["--data", str(tmp_path)])


def test_every_benchmark_is_run_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["no-such"]) == 2
    known = capsys.readouterr().err.rpartition(": ")[2].strip(". \n").split(", ")
    # A change of models is run by test_model_change.py.
    assert set(known) == {*TINY, "quality", "model_change"}
    assert bench.main(["--help"]) == 0
    lines = dict(re.findall(r"^  (\w+) +(\S.+)$", capsys.readouterr().out, re.MULTILINE))
    assert set(lines) == set(known)


def test_options_belong_to_one_benchmark() -> None:
    assert bench.main(["hooks", "latency", "--calls", "2"]) == 2
    assert bench.main(["--calls", "2"]) == 2


@pytest.mark.parametrize("name", [*TINY, "quality", "model_change"])
def test_help_says_the_default_of_every_option(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main([name, "--help"])
    for option in capsys.readouterr().out.partition("\noptions:\n")[2].split("\n  -")[2:]:
        assert "default:" in " ".join(option.split()), option


@pytest.mark.parametrize(
    "options",
    [
        *(["filtered", "--rows", "10"], ["filtered", "--rows", "400", "349"], ["latency", "--rows", "0"]),
        *(["growth", "--calls", "0"], ["throughput", "--seconds", "0"], ["write_path", "--puts", "3"]),
        ["quality", "--conversations", "0"],
    ],
)
def test_a_size_that_is_too_small_is_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        bench.main(options)
    assert ended.value.code == 2
    assert re.search(rf"argument {options[1]}: must be at least [\d.]+, not {options[-1]}$",
                     capsys.readouterr().err.strip())  # fmt: skip


def test_scores() -> None:
    asked = [
        Question("c", "?", frozenset({"a", "b"}), "test"),
        Question("c", "?", frozenset({"z"}), "test"),
        Question("c", "?", frozenset({"a"}), "tune"),
    ]
    found = [[("other", "a"), ("c", "a"), *[("c", "n")] * 4, ("c", "b")], [], [("c", "a")]]
    score = scored(asked, found, "test")
    assert (score.recall_5, score.recall_10, score.mrr) == (0.25, 0.5, 0.25)


def test_a_bar_passes_or_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "r.json"
    report = Report("r", "R", options_of("r", "").parse_args(["--json", str(file)]))
    report.bar("enough", 0.99, least=0.99)
    report.bar("too slow", 4.1, most=4)
    report.close()
    shown = capsys.readouterr().out
    assert [bar["passed"] for bar in json.loads(file.read_text(encoding="utf-8"))["bars"]] == [True, False]
    assert "| too slow | 4.100 | at most 4 | **fail** |" in shown
    assert f"The same as JSON: {file})" in shown
