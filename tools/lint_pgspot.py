"""Run pgspot, which spots unsafe SQL in security definer functions, over db/functions.

Functions with an SQL-standard body are left out: pgspot cannot read them, and the server has bound every
name in them when they were created. A PL/pgSQL body that pgspot cannot follow (it knows no type of ours) is
checked from the outside only. PS002 and PS010 are ignored: they ask whether somebody could have made the
schema before us, which bootstrap.sql checks.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PGSPOT = ROOT / "build" / "pgspot" / "bin" / "pgspot"
CLEAN = "Errors: 0 Warnings: 0 Unknown: 0"


def reports(files: list[str], *options: str) -> dict[str, str]:
    """What pgspot says about each file."""
    # With a single file it leaves out the headings, so one is always given twice.
    command = [PGSPOT, "--ignore", "PS002", "--ignore", "PS010", *options, *files, files[0]]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    parts = re.split(r"^(db/functions/\S+\.sql): *$", output.partition("\nTOTAL:")[0], flags=re.MULTILINE)
    return dict(zip(parts[1::2], map(str.strip, parts[2::2]), strict=True))


def main() -> int:
    paths = [path for path in sorted(ROOT.glob("db/functions/*/*.sql")) if "plpgsql" in path.read_text()]
    files = [str(path.relative_to(ROOT)) for path in paths]
    said = reports(files)
    unread = [file for file, report in said.items() if report.startswith(CLEAN) and report != CLEAN]
    if unread:
        said |= reports(unread, "--no-plpgsql")
    findings = {file: report for file, report in said.items() if report != CLEAN}
    for file, report in findings.items():
        print(f"{file}:\n{report}")
    print(f"{len(said)} files, {len(findings)} with findings, {len(unread)} checked from the outside only")
    return 1 if findings or set(said) != set(files) or not files else 0


if __name__ == "__main__":
    sys.exit(main())
