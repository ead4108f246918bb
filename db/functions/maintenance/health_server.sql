CREATE OR REPLACE FUNCTION memvec.health_server()
RETURNS SETOF memvec.finding
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c_newest_known CONSTANT integer[] := '{0,8,4}';
    v_folds boolean := false;
    v_extension record;
    v_free integer;
BEGIN
    RETURN NEXT ROW('server', 'clock', 'ok', 'the server''s clock', NULL,
                    jsonb_build_object('epoch', extract(epoch FROM clock_timestamp())))::memvec.finding;

    RETURN QUERY SELECT 'server', 'version',
        CASE WHEN current_setting('server_version_num')::integer < 160000 THEN 'failure' ELSE 'ok' END,
        format('PostgreSQL %s', current_setting('server_version')),
        'Upgrade the server to PostgreSQL 16 or newer.',
        to_jsonb(current_setting('server_version_num')::integer);

    RETURN QUERY SELECT 'server', 'encoding',
        CASE WHEN getdatabaseencoding() = 'UTF8' THEN 'ok' ELSE 'failure' END,
        format('the database is encoded in %s', getdatabaseencoding()),
        'Make a database with CREATE DATABASE ... ENCODING ''UTF8'' TEMPLATE template0; and move there.', NULL::jsonb;

    BEGIN
        v_folds := lower((chr(1046) || chr(192) || 'I') COLLATE memvec.folding) = chr(1078) || chr(224) || 'i';
    EXCEPTION WHEN OTHERS THEN
        v_folds := false;  -- the locale is gone from the system
    END;
    RETURN QUERY SELECT 'server', 'ctype',
        CASE WHEN v_folds THEN 'ok' ELSE 'failure' END,
        CASE WHEN v_folds THEN 'the collation memvec.folding folds letters of every script'
             ELSE 'the collation memvec.folding no longer folds letters of every script' END,
        'Install the locale it was made with again (Debian: package locales), then run: hermes-pgsql migrate --admin-dsn DSN',
        NULL::jsonb;

    RETURN QUERY SELECT 'server', 'collation version',
        CASE WHEN d.datcollversion IS DISTINCT FROM pg_database_collation_actual_version(d.oid) THEN 'warning' ELSE 'ok' END,
        CASE WHEN d.datcollversion IS DISTINCT FROM pg_database_collation_actual_version(d.oid)
             THEN 'the operating system sorts text otherwise than when the database was made, so indexes on text may be wrong'
             ELSE 'the database sorts text as when it was made' END,
        format('REINDEX DATABASE %1$I; ALTER DATABASE %1$I REFRESH COLLATION VERSION;', d.datname), NULL::jsonb
      FROM pg_database AS d WHERE d.datname = current_database();

    SELECT e.extversion, string_to_array(regexp_replace(e.extversion, '[^0-9.].*$', ''), '.')::integer[] AS parts,
           a.default_version
      INTO v_extension
      FROM pg_extension AS e LEFT JOIN pg_available_extensions AS a ON a.name = e.extname
     WHERE e.extname = 'vector';
    RETURN QUERY SELECT 'server', 'extension',
        CASE WHEN v_extension.parts < '{0,8,0}' THEN 'failure'
             WHEN v_extension.parts < c_newest_known OR v_extension.extversion <> v_extension.default_version THEN 'warning'
             ELSE 'ok' END,
        format('pgvector %s', v_extension.extversion)
            || CASE WHEN v_extension.parts < '{0,8,0}' THEN ', and 0.8.0 or newer is needed'
                    WHEN v_extension.parts < c_newest_known THEN ', and 0.8.4 mends bugs of it'
                    WHEN v_extension.extversion <> v_extension.default_version
                    THEN format(', and %s is installed on the server', v_extension.default_version)
                    ELSE '' END,
        CASE WHEN v_extension.extversion IS DISTINCT FROM v_extension.default_version THEN 'ALTER EXTENSION vector UPDATE;'
             ELSE 'Upgrade pgvector on the server, then run: ALTER EXTENSION vector UPDATE;' END,
        to_jsonb(v_extension.extversion);

    RETURN QUERY SELECT 'server', 'writes',
        CASE WHEN pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean THEN 'failure' ELSE 'ok' END,
        CASE WHEN pg_is_in_recovery() THEN 'the server is a standby and takes no writes'
             WHEN current_setting('transaction_read_only')::boolean THEN 'sessions are read-only here (default_transaction_read_only)'
             ELSE 'the database takes writes' END,
        CASE WHEN pg_is_in_recovery() THEN 'Name the primary in the dsn; of several hosts, target_session_attrs=read-write finds it.'
             ELSE format('ALTER DATABASE %I RESET default_transaction_read_only; ALTER ROLE %I RESET default_transaction_read_only;',
                         current_database(), session_user) END,
        NULL::jsonb;

    RETURN QUERY SELECT 'server', 'durability',
        CASE WHEN s.off IS NULL THEN 'ok' ELSE 'warning' END,
        coalesce('a crash of the server can lose what was accepted: ' || s.off, 'what is committed survives a crash'),
        s.fix || ' SELECT pg_reload_conf();', NULL::jsonb
      FROM (SELECT string_agg(c.name || ' is off', ', ') AS off, string_agg(format('ALTER SYSTEM SET %s = on;', c.name), ' ') AS fix
              FROM pg_settings AS c
             WHERE c.name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND c.setting = 'off') AS s;

    RETURN QUERY SELECT 'server', 'autovacuum',
        CASE WHEN current_setting('autovacuum')::boolean THEN 'ok' ELSE 'warning' END,
        format('autovacuum is %s', current_setting('autovacuum')),
        'ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf();', NULL::jsonb;

    v_free := current_setting('max_connections')::integer
              - (SELECT count(*)::integer FROM pg_stat_activity AS a WHERE a.datid IS NOT NULL AND a.usesysid IS NOT NULL);
    RETURN QUERY SELECT 'server', 'connections',
        CASE WHEN v_free <= 3 OR v_free < 0.1 * current_setting('max_connections')::integer THEN 'warning' ELSE 'ok' END,
        format('%s of %s connections are free', v_free, current_setting('max_connections')),
        'ALTER SYSTEM SET max_connections = 200; then restart the server, or put a pooler before it.', to_jsonb(v_free);
END;
$$;

COMMENT ON FUNCTION memvec.health_server IS
'Returns what memvec.health says of the server: version, encoding, ctype, extension, writability, durability, connections, clock. Internal.';
REVOKE ALL ON FUNCTION memvec.health_server FROM public;
