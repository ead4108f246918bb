"""Write tests/data/calls-VERSION.json: how a release's clients call the functions of schema memvec.

    python tools/freeze_calls.py 0.1

For each function that anybody but the owner may execute: its arguments by name with their types, the columns
of its result, and the role groups that may call it. The file is written when a release is made and never
again; tests/test_upgrade.py asserts that each of those calls is still possible.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psycopg
from psycopg.rows import dict_row

from pgserver import run_sql, throwaway_server

ROOT = Path(__file__).resolve().parent.parent
DATABASE = "memvec_calls"
CALLS = """
SELECT p.proname AS name,
       coalesce((SELECT jsonb_object_agg(a.name, format_type(a.type, NULL))
                   FROM unnest(p.proargnames[1:p.pronargs], p.proargtypes::oid[]) AS a (name, type)),
                '{}') AS arguments,
       coalesce((SELECT jsonb_object_agg(a.name, format_type(a.type, NULL))
                   FROM unnest(p.proargnames, p.proallargtypes, p.proargmodes) AS a (name, type, mode)
                  WHERE a.mode IN ('o', 't')), '{}') AS columns,
       array(SELECT g.rolname::text
               FROM pg_roles AS g
              WHERE g.rolname = ANY ('{memvec_runtime,memvec_embedder,memvec_reader,memvec_admin}')
                AND has_function_privilege(g.oid, p.oid, 'EXECUTE')
              ORDER BY g.rolname) AS groups
  FROM pg_proc AS p
 WHERE p.pronamespace = 'memvec'::regnamespace
 ORDER BY p.proname COLLATE "C"
"""


def calls(dsn: str) -> list[dict[str, object]]:
    """The calls that the database of ``dsn`` (a superuser's) takes."""
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        return [row for row in connection.execute(CALLS).fetchall() if row["groups"]]


def main() -> int:
    from hermes_pgsql.migrate import migrate

    if len(sys.argv) != 2:
        print("Which release? python tools/freeze_calls.py 0.1", file=sys.stderr)
        return 2
    target = ROOT / "tests" / "data" / f"calls-{sys.argv[1]}.json"
    with throwaway_server() as server:
        run_sql(server.dsn(), f"CREATE DATABASE {DATABASE}")
        migrate(server.dsn(DATABASE))
        lines = [json.dumps(call, sort_keys=True) for call in calls(server.dsn(DATABASE))]
    target.parent.mkdir(exist_ok=True)
    target.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(f"wrote {target.relative_to(ROOT)}: {len(lines)} functions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
