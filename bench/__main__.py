"""Run the benchmarks: `python -m bench [NAME …] [--options]`.

Each prints Markdown and writes build/bench/NAME.json. Without a name all run, those that need data of yours
excepted. Options belong to one benchmark, so they need exactly one name; `python -m bench NAME --help` shows
them.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    known = sorted(
        module.name
        for module in pkgutil.iter_modules([str(Path(__file__).parent)])
        if not module.name.startswith("_")
    )
    names = list(itertools.takewhile(lambda word: not word.startswith("-"), arguments))
    options = arguments[len(names) :]
    unknown = [name for name in names if name not in known]
    if unknown or (options and len(names) != 1):
        what = (
            f"There is no benchmark {', '.join(unknown)}."
            if unknown
            else "Options need one benchmark's name."
        )
        print(f"{what} There are: {', '.join(known)}.", file=sys.stderr)
        return 2
    for name in names or known:
        importlib.import_module(f"bench.{name}").main(options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
