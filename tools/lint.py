"""Run every linter over the tree, show what they find, and fail when one of them finds anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def commands() -> dict[str, list[str]]:
    return {
        "ruff check": [str(BIN / "ruff"), "check", "--quiet", "--output-format=concise", "."],
        "ruff format": [str(BIN / "ruff"), "format", "--check", "--quiet", "."],
        "basedpyright": [str(BIN / "basedpyright")],
        "sqruff": [
            str(BIN / "sqruff"),
            "lint",
            "db/bootstrap.sql",
            "db/migrations",
            "db/functions",
            "db/views",
            "db/verify.sql",
        ],
        "pgspot": [sys.executable, "tools/lint_pgspot.py"],
        "lint_plpgsql": [sys.executable, "tools/lint_plpgsql.py"],
    }


def main() -> int:
    failed: list[str] = []
    for name, command in commands().items():
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            print(f"{name}: ok", flush=True)
            continue
        failed.append(name)
        print(f"{name}: failed\n{done.stdout}{done.stderr}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
