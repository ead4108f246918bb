#!/bin/sh
# Make a virtual environment in $1 with $2, or with a Python 3.11 or newer that is found. An existing one is kept.
set -eu
venv=$1
wanted=${2:-}

recent='import sys; sys.exit(sys.version_info < (3, 11))'

if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c "$recent" 2>/dev/null &&
    "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi

found=
for candidate in $wanted python3 python3.13 python3.12 python3.11 python3.14 python; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c "$recent" >/dev/null 2>&1; then
        found=$candidate
        break
    fi
done
if [ -z "$found" ]; then
    echo "Python 3.11 or newer was not found (looked for: ${wanted:+$wanted, }python3, python3.11 to python3.14)." >&2
    echo "Install one (Debian 12+: apt-get install python3 python3-venv), or name it: make … PYTHON=/path/to/python3.11" >&2
    exit 1
fi
if ! "$found" -c 'import venv, ensurepip' >/dev/null 2>&1; then
    echo "$found has no venv module. On Debian and Ubuntu it is a package of its own: apt-get install python3-venv" >&2
    exit 1
fi
rm -rf "$venv"
mkdir -p "$(dirname "$venv")"
"$found" -m venv "$venv"
