"""The command that shows a home's outbox, on an operation that the database really refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Database
from drain_support import LocalEmbedder, wait_until

from hermes_pgsql.config import settings_from_mapping
from hermes_pgsql.doctor import queue
from hermes_pgsql.doctor.finding import State
from hermes_pgsql.drain import Drain
from hermes_pgsql.embedding import EmbeddingFailure
from hermes_pgsql.outbox import Outbox

KEY = "agent:main:whatsapp:dm:15550100123"


def run(home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hermes_pgsql", "outbox", "--hermes-home", str(home), *options],
        env=os.environ | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def refused(database: Database, tmp_path: Path) -> tuple[Path, str]:
    """A home with a turn whose role the database does not know, and the id of it."""
    outbox = Outbox.open(tmp_path)
    op_id = outbox.put("append_turn", KEY, {"session_id": "s", "role": "bogus", "content": "hello there"})
    drain = Drain(database.runtime_dsn)
    drain.attach(outbox, None)
    drain.flush(30)
    drain.stop(10)
    assert outbox.counts().poison == 1
    return tmp_path, str(op_id)


def test_it_lists_what_was_refused_and_why_but_not_for_whom(refused: tuple[Path, str]) -> None:
    home, op_id = refused
    text = run(home)
    assert text.returncode == 0, text.stderr
    assert op_id in text.stdout
    assert "role" in text.stdout
    shown: dict[str, Any] = json.loads(run(home, "--json").stdout)
    assert shown["counts"] == {"waiting": 0, "sent": 0, "poison": 1}
    assert shown["refused"][0]["code"] == "MV001"
    assert "15550100123" not in text.stdout + json.dumps(shown)


def test_a_refused_operation_is_sent_again_or_forgotten(refused: tuple[Path, str]) -> None:
    home, op_id = refused
    assert json.loads(run(home, "--retry", op_id, "--json").stdout)["counts"]["waiting"] == 1
    again = run(home, "--retry", op_id)
    assert again.returncode == 1
    assert "set aside" in again.stderr


def test_forgetting(refused: tuple[Path, str]) -> None:
    home, op_id = refused
    assert json.loads(run(home, "--drop", op_id, "--json").stdout)["counts"]["poison"] == 0


def test_why_vectors_are_outstanding_is_shown_on_the_host(database: Database, tmp_path: Path) -> None:
    """By outbox, stats and doctor, each a process of its own that never asked the endpoint."""
    outbox = Outbox.open(tmp_path)
    embedder = LocalEmbedder()
    embedder.fails = lambda _text: EmbeddingFailure(
        "http://gpu:1/v1/embeddings cannot be reached", kind="unreachable", unavailable=True
    )
    outbox.put("append_turn", "outstanding", {"session_id": "s", "role": "user", "content": "hello there"})
    drain = Drain(database.runtime_dsn)
    drain.attach(outbox, embedder)
    assert wait_until(lambda: outbox.vector_trouble() is not None)
    drain.stop(10)

    said = "cannot be reached"
    assert said in run(tmp_path).stdout
    shown: dict[str, Any] = json.loads(run(tmp_path, "--json").stdout)
    assert shown["counts"]["sent"] == 1
    assert said in shown["vector_trouble"]["message"]

    stats = [sys.executable, "-m", "hermes_pgsql", "stats", "--dsn", database.runtime_dsn]
    here = os.environ | {"HERMES_HOME": str(tmp_path)}
    told = subprocess.run([*stats, "--json"], env=here, capture_output=True, text=True, check=True)
    assert json.loads(told.stdout)["this_home"]["vectors"] == 1
    assert said in json.loads(told.stdout)["this_home"]["last_error"]
    told = subprocess.run(stats, env=here, capture_output=True, text=True, check=True)
    assert "1 row of this home's agents waits for a vector" in told.stderr
    assert said in told.stderr

    # Somebody else sees to the vector: the home's list is not looked through yet, the database knows.
    with database.admin() as admin:
        admin.execute("SELECT memvec.add_embedding_space('somebody else''s', 3)")
        admin.execute("UPDATE memvec.conversations SET embed = false WHERE agent_identity = 'outstanding'")
    told = subprocess.run([*stats, "--json"], env=here, capture_output=True, text=True, check=True)
    assert json.loads(told.stdout)["this_home"] == {"vectors": 0, "last_error": None, "failed_at": None}
    told = subprocess.run(stats, env=here, capture_output=True, text=True, check=True)
    assert "for a vector" not in told.stderr

    (finding,) = [one for one in queue.checks(tmp_path, settings_from_mapping({})) if one.name == "vectors"]
    assert finding.state == State.WARNING
    assert said in finding.message

    outbox.erase([("outstanding", None)])  # an error may quote a text
    assert outbox.vector_trouble() is None


def test_a_home_that_is_not_there(tmp_path: Path) -> None:
    done = run(tmp_path / "none")
    assert done.returncode == 1
    assert "There is no home" in done.stderr
