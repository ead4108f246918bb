#!/bin/sh
# Install or upgrade the schema memvec with psql alone:
#
#     sh db/migrate.sh DSN [RUNTIME_ROLE [EMBEDDER_ROLE]]
#
# DSN is an administrator's (postgresql://admin@host/database; '' = the PG* variables). Keep its password out of the
# command line, where other users could read it: use ~/.pgpass or PGPASSWORD. RUNTIME_ROLE is the login role of the
# agents, by default hermes; '' = none. The result and the ledger are those of `hermes-pgsql migrate`; either can follow
# the other. Exit code: 0 done, 2 usage, otherwise nothing was changed and the message names the file (only files marked
# "-- migrate: no-transaction" run after the rest was committed).
set -eu

if [ $# -lt 1 ] || [ $# -gt 3 ] || [ "$1" = -h ] || [ "$1" = --help ]; then
    echo "usage: sh $0 DSN [RUNTIME_ROLE [EMBEDDER_ROLE]]" >&2
    exit 2
fi
dsn=$1
runtime_role=${2-hermes}
embedder_role=${3-}
db=$(cd "$(dirname "$0")" && pwd)

if command -v sha256sum >/dev/null 2>&1; then
    sha256() { sha256sum | cut -c 1-64; }
elif command -v shasum >/dev/null 2>&1; then
    sha256() { shasum -a 256 | cut -c 1-64; }
else
    echo "migrate.sh needs sha256sum or shasum." >&2
    exit 1
fi
if ! command -v psql >/dev/null 2>&1; then
    echo "migrate.sh needs psql. Install the PostgreSQL client, or use: hermes-pgsql migrate" >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

export PGCLIENTENCODING=UTF8 PGCONNECT_TIMEOUT="${PGCONNECT_TIMEOUT:-10}" PGAPPNAME="memvec migrate.sh"
run_psql() {
    psql -X -q -v ON_ERROR_STOP=1 -o /dev/null -v memvec_schema="$schema" -v memvec_runtime_role="$runtime_role" \
        -v memvec_embedder_role="$embedder_role" -v memvec_migrations="$(cat "$work/listing")" -d "$dsn" -f "$1"
}

# The files say "public" for the schema of the extension; they are copied with its true name. A name that bootstrap.sql
# refuses is not written into anything.
schema_query="SELECT quote_ident(n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
              WHERE e.extname = 'vector'"
schema=$(psql -X -A -t -q -v ON_ERROR_STOP=1 -d "$dsn" -c "$schema_query")
case $schema in
'') schema=public ;; # bootstrap.sql creates it there
esac
case $schema in
*[!A-Za-z0-9_\"\ -]*) written=public ;;
*) written=$schema ;;
esac

# Carriage returns do not count, so that a checkout on another system has the same checksums.
copy() {
    mkdir -p "$work/$(dirname "$1")"
    tr -d '\r' <"$db/$1" >"$work/$1.plain"
    LC_ALL=C sed -e "s/^public\.\([a-z_<+*|=>-]\)/$written.\1/" \
        -e "s/\([^A-Za-z0-9_.\"\$]\)public\.\([a-z_<+*|=>-]\)/\1$written.\2/g" "$work/$1.plain" >"$work/$1"
}
sql_files() {
    (cd "$db" && find "$1" -type f -name '*.sql') | LC_ALL=C sort
}
in_transaction() {
    [ "$(head -n 1 "$work/$1.plain")" != '-- migrate: no-transaction' ]
}
# not echo, which takes some backslashes for its own
line() { printf '%s\n' "$1"; }
record() {
    line "INSERT INTO memvec.schema_migrations (version, name, sha256) VALUES ($version, '$name', '$checksum');"
    line "\\echo applied $name"
    line "\\endif"
}

tr -d '\r' <"$db/bootstrap.sql" >"$work/bootstrap.sql"
tr -d '\r' <"$db/verify.sql" >"$work/verify.sql"
: >"$work/listing"
: >"$work/afterwards.list"
: >"$work/views.list"

# One psql session does it all: it waits for the lock in bootstrap.sql, asks the ledger, and commits at the very end.
cat >"$work/main.sql" <<'SQL'
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SELECT set_config('memvec.runtime_role', :'memvec_runtime_role', true),
       set_config('memvec.embedder_role', :'memvec_embedder_role', true),
       set_config('memvec.migrations', :'memvec_migrations', true);
\ir bootstrap.sql
SELECT quote_ident(n.nspname) = :'memvec_schema' AS memvec_as_expected
  FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
 WHERE e.extname = 'vector' \gset
\if :memvec_as_expected
\else
DO $$ BEGIN RAISE EXCEPTION 'the extension vector was moved to another schema meanwhile' USING HINT = 'Migrate again.'; END $$;
\endif
SET LOCAL ROLE memvec_owner;
SQL

sql_files migrations >"$work/migrations.list"
while IFS= read -r file; do
    copy "$file"
    name=$(basename "$file")
    version=${name%%_*}
    checksum=$(sha256 <"$work/$file.plain")
    line "$checksum  $name" >>"$work/listing"
    if ! in_transaction "$file"; then
        line "$file" >>"$work/afterwards.list"
        continue
    fi
    {
        line "SELECT $version = ANY (current_setting('memvec.pending_migrations')::int[]) AS memvec_apply \\gset"
        line "\\if :memvec_apply"
        line "\\ir '$file'"
        record
    } >>"$work/main.sql"
done <"$work/migrations.list"

sql_files functions >"$work/functions.list"
while IFS= read -r file; do
    copy "$file"
    line "\\ir '$file'" >>"$work/main.sql"
done <"$work/functions.list"

[ ! -d "$db/views" ] || sql_files views >"$work/views.list"
while IFS= read -r file; do
    copy "$file"
    line "\\ir '$file'" >>"$work/main.sql"
done <"$work/views.list"

cat >>"$work/main.sql" <<'SQL'
RESET ROLE;
\ir verify.sql
COMMIT;
SQL

# What cannot run in a transaction, each file alone, under a lock of its own: CREATE INDEX CONCURRENTLY waits for every
# older transaction to end, so nobody may wait for this lock inside one. The poll commits between its tries.
# hermes_pgsql/migrate.py has the same number.
cat >"$work/afterwards.sql" <<'SQL'
SET statement_timeout = 0;
DO $wait$
BEGIN
    WHILE NOT pg_try_advisory_lock(7236547102) LOOP
        COMMIT;
        PERFORM pg_sleep(0.2);
    END LOOP;
END
$wait$;
SET lock_timeout = '5min';
SET search_path = pg_catalog, pg_temp;
SET ROLE memvec_owner;
SQL
while IFS= read -r file; do
    name=$(basename "$file")
    version=${name%%_*}
    checksum=$(sha256 <"$work/$file.plain")
    # An interrupted run leaves an index that is not valid.
    index=$(tr 'A-Z\n\t' 'a-z  ' <"$work/$file.plain" | tr -s ' ' |
        sed -n 's/.*index concurrently \(if not exists \)\{0,1\}\([a-z_][a-z0-9_]*\) .*/\2/p')
    {
        line "SELECT NOT EXISTS (SELECT FROM memvec.schema_migrations WHERE version = $version) AS memvec_apply,"
        line "       EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('memvec.$index') AND NOT indisvalid)"
        line "       AS memvec_leftover \\gset"
        line "\\if :memvec_apply"
        if [ -n "$index" ]; then
            line "\\if :memvec_leftover"
            line "DROP INDEX CONCURRENTLY memvec.$index;"
            line "\\endif"
        fi
        line "\\ir '$file'"
        record
    } >>"$work/afterwards.sql"
done <"$work/afterwards.list"

run_psql "$work/main.sql"
if [ -s "$work/afterwards.list" ]; then
    run_psql "$work/afterwards.sql" || {
        status=$?
        echo "Everything before this file was committed. Run the migration again to try it." >&2
        exit "$status"
    }
fi
echo "The schema memvec is up to date: $(wc -l <"$work/migrations.list" | tr -d ' ') migrations," \
    "$(wc -l <"$work/functions.list" | tr -d ' ') functions."
