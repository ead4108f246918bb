"""The host's memory files, read as the host reads them."""

from __future__ import annotations

import fcntl
import logging
import threading
import time
from pathlib import Path

import pytest

from hermes_pgsql import memory_file
from hermes_pgsql.memory_file import read_entries


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "MEMORY.md"


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        (b"one\n\xc2\xa7\ntwo", ["one", "two"]),
        (b"", []),
        (b" \n ", []),
        (b"  one  \n\xc2\xa7\n\n\xc2\xa7\n two\n", ["one", "two"]),
        (b"one\n\xc2\xa7\ntwo\n\xc2\xa7\n one", ["one", "two"]),
        (b"several\nlines\n\nof one", ["several\nlines\n\nof one"]),
        (b"a \xc2\xa7 inside\n\xc2\xa7 and at the start", ["a § inside\n§ and at the start"]),
        (b"one\r\n\xc2\xa7\r\ntwo\r\nlines", ["one", "two\nlines"]),
        (b"\xef\xbb\xbfone", ["\ufeffone"]),
    ],
)
def test_entries_are_what_the_host_takes_them_for(file: Path, text: bytes, entries: list[str]) -> None:
    file.write_bytes(text)
    assert read_entries(file) == entries


def test_a_missing_file_is_an_empty_memory_and_a_missing_folder_says_nothing(file: Path) -> None:
    assert read_entries(file) == []
    assert read_entries(file.parent / "missing" / "MEMORY.md") is None


def test_what_cannot_be_read_is_an_error(file: Path) -> None:
    file.mkdir()
    with pytest.raises(OSError):
        read_entries(file)


def test_bytes_that_are_not_utf8_cost_no_entry(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    file.write_bytes(b"caf\xe9\n\xc2\xa7\ntwo")
    assert read_entries(file) == ["caf�", "two"]
    assert read_entries(file) == ["caf�", "two"]
    assert len(caplog.records) == 1


def test_nothing_is_written_beside_the_file(file: Path) -> None:
    file.write_text("one")
    read_entries(file)
    assert list(file.parent.iterdir()) == [file]


def test_a_change_under_the_hosts_lock_is_waited_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_file, "LOCK_WAIT", 60)
    file.write_text("before")
    lock = file.with_name("MEMORY.md.lock")
    held = threading.Event()

    def change() -> None:
        with lock.open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            held.set()
            # Long enough for the reader to come, whom nothing tells apart from one who has not come yet.
            time.sleep(0.3)
            file.write_text("after")

    host = threading.Thread(target=change)
    host.start()
    assert held.wait(60)
    assert read_entries(file) == ["after"]
    host.join()


def test_a_host_that_hangs_with_the_lock_delays_us_only_so_long(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_file, "LOCK_WAIT", 0.05)
    file.write_text("one")
    with file.with_name("MEMORY.md.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert read_entries(file) == ["one"]
