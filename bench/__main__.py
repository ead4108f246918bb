"""Run the benchmarks: python -m bench [NAME …] [--options]

Each prints Markdown and writes build/bench/NAME.json. Without a name all run, those that need data of yours
excepted. Options belong to one benchmark, so they need exactly one name; python -m bench NAME --help shows
them.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import pkgutil
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(arguments: list[str]) -> int:
    known = sorted(
        module.name for module in pkgutil.iter_modules([str(HERE)]) if not module.name.startswith("_")
    )
    if arguments in (["--help"], ["-h"]):
        print(__doc__)
        for name in known:
            print(f"  {name:12} {_first_line(name)}")
        return 0
    names = list(itertools.takewhile(lambda word: not word.startswith("-"), arguments))
    options = arguments[len(names) :]
    unknown = [name for name in names if name not in known]
    if unknown or (options and len(names) != 1):
        what = (
            f"There is no benchmark {', '.join(unknown)}."
            if unknown
            else "Options need one benchmark's name."
        )
        print(f"{what} There are (--help tells more): {', '.join(known)}.", file=sys.stderr)
        return 2
    for name in names or known:
        importlib.import_module(f"bench.{name}").main(options)
    return 0


def _first_line(name: str) -> str:
    """What a benchmark answers, read without importing it."""
    source = (HERE / f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
