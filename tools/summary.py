"""Add up the results of the test suites that are named, and end with one line for all of them.

The exit code is 1 when a test failed, when a suite left no result, or when one ran no test.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree


@dataclass(frozen=True)
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def plus(self, other: Counts) -> Counts:
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)


def read(file: Path) -> Counts:
    """The counts in a file of tools/tap.py (JSON) or of pytest (JUnit XML)."""
    if file.suffix == ".json":
        return Counts(**json.loads(file.read_text()))
    suites = [element.attrib for element in ElementTree.parse(file).iter("testsuite")]  # noqa: S314

    def total(name: str) -> int:
        return sum(int(suite.get(name, 0)) for suite in suites)

    failed, skipped = total("failures") + total("errors"), total("skipped")
    return Counts(max(0, total("tests") - failed - skipped), failed, skipped)


def main() -> int:
    whole = Counts()
    complete = True
    for file in map(Path, sys.argv[1:]):
        if not file.exists():
            print(f"{file.stem}: no result")
            complete = False
            continue
        counts = read(file)
        print(f"{file.stem}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
        complete = complete and counts.passed + counts.failed > 0
        whole = whole.plus(counts)
    if not complete:
        print("A suite is missing or ran no test: this run has failed.")
        whole = whole.plus(Counts(failed=1))
    closing = f"{whole.passed} passed, {whole.failed} failed"
    print(f"{closing}, {whole.skipped} skipped" if whole.skipped else closing)
    return 1 if whole.failed else 0


if __name__ == "__main__":
    sys.exit(main())
