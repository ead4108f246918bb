BEGIN;
SELECT plan(15);
SELECT memvec_tests.alone();

SELECT is(pg_get_function_arguments('memvec.metrics'::regproc), 'p_themes integer DEFAULT 50', 'takes how many themes');
SELECT is(
    pg_get_function_result('memvec.metrics'::regproc),
    'TABLE(name text, labels jsonb, value double precision, type text, help text)', 'returns these columns'
);
SELECT volatility_is('memvec', 'metrics', 'stable', 'is stable');
SELECT is_definer('memvec', 'metrics', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.metrics'), '{hermes,tap_admin,tap_reader}', 'runtime, reader and admin may call it');

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('metrics', 8) AS space \gset
SELECT memvec.bind_role('tap_bound', 'metrics-1');
RESET SESSION AUTHORIZATION;
SELECT set_config('metrics.space', :'space', true);
UPDATE memvec.embedding_spaces SET created_at = now() - interval '1 day';  -- nothing waits longer than its space exists
SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    PERFORM memvec.add_memory('metrics-1', 'memory', 'a', p_embedding => memvec_tests.vec(1), p_space => current_setting('metrics.space')::int);
    PERFORM memvec.add_memory('metrics-1', 'memory', 'b');
    PERFORM memvec.add_memory('metrics-2', 'memory', 'c');
    PERFORM memvec.append_turn('metrics-1', 's', 'user', 'd', p_ts => now() - interval '2 hours');
END
$$;
RESET SESSION AUTHORIZATION;
DELETE FROM memvec.theme_counts;
INSERT INTO memvec.theme_counts (kind, agent_identity, rows)
SELECT 'entry', 'metrics-' || n, 1000 - n FROM generate_series(1, 60) AS n;

SELECT memvec_tests.act_as('tap_reader');
SELECT is((SELECT count(*) FROM memvec.metrics() WHERE name = 'memvec_rows'), 51::bigint, 'fifty themes and the others');
SELECT results_eq(
    $$ SELECT labels ->> 'theme', value FROM memvec.metrics(2) WHERE name = 'memvec_rows' $$,
    $$ VALUES ('metrics-1', 999::double precision), ('metrics-2', 998), ('', 56173) $$,
    'the largest by name, the others together'
);
SELECT results_eq(
    $$ SELECT name, labels ->> 'kind', value FROM memvec.metrics() WHERE labels ->> 'space' = current_setting('metrics.space')
          AND name IN ('memvec_embedded_rows', 'memvec_pending_rows', 'memvec_oldest_pending_seconds') $$,
    $$ VALUES ('memvec_embedded_rows', 'entry', 1::double precision), ('memvec_embedded_rows', 'turn', 0),
              ('memvec_pending_rows', 'entry', 2), ('memvec_pending_rows', 'turn', 1),
              ('memvec_oldest_pending_seconds', 'entry', 0), ('memvec_oldest_pending_seconds', 'turn', 7200) $$,
    'how many rows of a space have a vector, how many wait, and since when'
);
SELECT is_empty(
    $$ SELECT name FROM memvec.metrics()
       WHERE name !~ '^memvec_[a-z_]+$' OR type NOT IN ('gauge', 'counter') OR help = '' OR value IS NULL
          OR (type = 'counter') <> (name LIKE '%\_total') $$,
    'names, types and values are what Prometheus takes'
);
SELECT is_empty(
    $$ SELECT name FROM memvec.metrics() GROUP BY name, labels HAVING count(*) > 1 $$, 'no series comes twice'
);
SELECT is(
    (SELECT count(DISTINCT (help, type)) - count(DISTINCT name) FROM memvec.metrics()), 0::bigint,
    'a metric has one type and one help'
);
SELECT ok((SELECT bool_or(name = 'memvec_table_bytes') FROM memvec.metrics()), 'sizes are told to who may see all themes');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT results_eq(
    $$ SELECT labels ->> 'theme' FROM memvec.metrics() WHERE name = 'memvec_rows' $$, $$ VALUES ('metrics-1') $$,
    'a bound login sees its own theme'
);
SELECT is_empty($$ SELECT 1 FROM memvec.metrics() WHERE name = 'memvec_table_bytes' $$, 'and no sizes');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_admin');
SELECT ok(
    (SELECT value >= 1 FROM memvec.metrics() WHERE name = 'memvec_maintenance_total' AND labels ->> 'operation' = 'bind_role'),
    'an administrator is told what was administered'
);
RESET SESSION AUTHORIZATION;

SELECT * FROM finish();
ROLLBACK;
