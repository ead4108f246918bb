"""Run the benchmarks: `python -m bench [NAME …]`, all of them without a name. Each prints Markdown."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path


def main(names: list[str]) -> int:
    known = sorted(
        module.name
        for module in pkgutil.iter_modules([str(Path(__file__).parent)])
        if not module.name.startswith("_") and module.name != "server"
    )
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"There is no benchmark {', '.join(unknown)}. There are: {', '.join(known)}.", file=sys.stderr)
        return 2
    for name in names or known:
        importlib.import_module(f"bench.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
