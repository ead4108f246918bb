CREATE OR REPLACE FUNCTION memvec.health_tables()
RETURNS SETOF memvec.finding
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c_many CONSTANT bigint := 10000;
    v_bloated text;
    v_unknown text;
    v_fix text;
    v_late timestamptz;
BEGIN
    SELECT string_agg(format('%s (%s dead of %s rows)', t.relname, t.n_dead_tup, t.n_dead_tup + t.n_live_tup), ', '),
           string_agg(format('VACUUM (ANALYZE) memvec.%I;', t.relname), ' ')
      INTO v_bloated, v_fix
      FROM pg_stat_user_tables AS t
     WHERE t.schemaname = 'memvec' AND t.n_dead_tup > c_many AND t.n_dead_tup > 0.3 * t.n_live_tup;
    RETURN QUERY SELECT 'tables', 'bloat',
        CASE WHEN v_bloated IS NULL THEN 'ok' ELSE 'warning' END,
        coalesce('tables full of dead rows: ' || v_bloated, 'no table is full of dead rows'), v_fix, NULL::jsonb;

    SELECT string_agg(t.relname, ', '), string_agg(format('ANALYZE memvec.%I;', t.relname), ' ')
      INTO v_unknown, v_fix
      FROM pg_stat_user_tables AS t
     WHERE t.schemaname = 'memvec' AND t.n_live_tup > c_many AND t.last_analyze IS NULL AND t.last_autoanalyze IS NULL;
    RETURN QUERY SELECT 'tables', 'statistics',
        CASE WHEN v_unknown IS NULL THEN 'ok' ELSE 'warning' END,
        coalesce('large tables that were never analysed: ' || v_unknown, 'large tables are analysed'), v_fix, NULL::jsonb;

    SELECT min(a.applied_at) INTO v_late
      FROM memvec.applied_ops AS a
     WHERE a.applied_at < now() - make_interval(days => memvec.setting('applied_ops_days')::integer + 2);
    RETURN QUERY SELECT 'tables', 'housekeeping',
        CASE WHEN v_late IS NULL THEN 'ok' ELSE 'warning' END,
        CASE WHEN v_late IS NULL THEN 'old records are forgotten in time'
             ELSE format('nobody forgets old records: the oldest is of %s', v_late::date) END,
        'psql DSN -c ''SELECT * FROM memvec.housekeeping();''   (from cron, every ten minutes)', NULL::jsonb;
END;
$$;

COMMENT ON FUNCTION memvec.health_tables IS
'Returns what memvec.health says of tables: dead rows, missing statistics, and whether housekeeping runs. Internal.';
REVOKE ALL ON FUNCTION memvec.health_tables FROM public;
