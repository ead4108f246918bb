"""An embedding service for benchmarks: `python -m bench._endpoint DELAY` prints its port and serves on.

Speaks OpenAI's `/v1/embeddings`, waits DELAY seconds before each answer, and takes next to no time: the
vectors (768 numbers) are a few ready-made ones.
"""

from __future__ import annotations

import json
import random
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIM = 768


def main() -> None:
    delay = float(sys.argv[1])
    numbers = random.Random(7)
    ready = [
        "[" + ",".join(f"{numbers.gauss(0, 1):.5f}" for _number in range(DIM)) + "]" for _vector in range(64)
    ]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            count = 1 if isinstance(texts, str) else len(texts)
            time.sleep(delay)
            items = (f'{{"index":{at},"embedding":{ready[numbers.randrange(64)]}}}' for at in range(count))
            body = ('{"data":[' + ",".join(items) + "]}").encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
