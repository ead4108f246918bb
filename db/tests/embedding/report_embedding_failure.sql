BEGIN;
SELECT plan(15);
SELECT memvec_tests.alone();

SELECT is(
    pg_get_function_arguments('memvec.report_embedding_failure'::regproc),
    'p_space integer, p_kinds text[], p_ids bigint[], p_errors text[], p_permanent boolean[] DEFAULT NULL::boolean[]', 'takes arrays'
);
SELECT is(pg_get_function_result('memvec.report_embedding_failure'::regproc), 'bigint', 'returns how many were noted');
SELECT volatility_is('memvec', 'report_embedding_failure', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'report_embedding_failure', 'runs as its owner');
SELECT is(
    memvec_tests.callers('memvec.report_embedding_failure'), '{tap_admin,tap_embedder}', 'only embedder and admin may call it'
);

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('report_embedding_failure', 8) AS space \gset
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    $$ SELECT memvec.report_embedding_failure(1, '{}', '{}', '{}') $$, '42501', NULL, 'the runtime login is refused'
);
DO $$
BEGIN
    FOR i IN 1..3 LOOP
        PERFORM memvec.add_memory('report_embedding_failure', 'memory', 'note ' || i);
    END LOOP;
END
$$;
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_embedder');
CREATE TEMP TABLE claimed AS SELECT * FROM memvec.claim_pending(:space, 2);

SELECT is(
    (SELECT memvec.report_embedding_failure(:space, array_agg(kind), array_agg(id), array_agg('HTTP 400 ' || repeat('x', 1000))) FROM claimed),
    2::bigint, 'failures of claimed rows are noted'
);
SELECT is(
    memvec.report_embedding_failure(:space, '{entry,turn,note}', '{-1,-1,-1}', '{a,b,c}'), 0::bigint, 'of others they are not'
);
SELECT is(memvec.report_embedding_failure(:space, '{}', '{}', '{}'), 0::bigint, 'nothing to report is no error');
SELECT throws_ok(
    $$ SELECT memvec.report_embedding_failure(0, '{}', '{}', '{}') $$, 'MV004', NULL, 'an unknown space is refused'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    format('SELECT DISTINCT attempts, length(last_error), leased_until - now(), failed_at - now() FROM memvec.embedding_work WHERE space_id = %s', :space),
    $$ VALUES (1, 500, interval '0', interval '0') $$, 'one failure more, the error cut, given back, the moment noted'
);
SELECT memvec_tests.act_as('tap_embedder');
SELECT is(
    (SELECT memvec.report_embedding_failure(:space, array_agg(kind), array_agg(id), array_agg('again'::text)) FROM claimed), 2::bigint,
    'a second failure'
);
RESET SESSION AUTHORIZATION;

-- The pause, as memvec.claim_pending keeps it.
CREATE FUNCTION pg_temp.comes_after(p_attempts int, p_pause interval) RETURNS boolean
LANGUAGE sql
AS $$
    SELECT memvec.may_embed(ROW(1, 'entry', 1, '\x01', now(), p_attempts, now() - p_pause, 'x')::memvec.embedding_work, '\x01', NULL, 1000)
$$;
SELECT results_eq(
    $$ SELECT p.attempts, pg_temp.comes_after(p.attempts, p.pause - interval '1 ms'), pg_temp.comes_after(p.attempts, p.pause)
         FROM (VALUES (1, interval '1 min'), (2, '2 min'), (6, '32 min'), (11, '1024 min'), (12, '1 day'), (900, '1 day')) AS p (attempts, pause) $$,
    $$ VALUES (1, false, true), (2, false, true), (6, false, true), (11, false, true), (12, false, true), (900, false, true) $$,
    'each failure doubles the pause, up to a day'
);
SELECT memvec_tests.act_as('tap_embedder');
SELECT is(
    (SELECT memvec.report_embedding_failure(:space, array_agg(kind), array_agg(id), array_agg('never'::text), array_agg(id = (SELECT min(id) FROM claimed)))
       FROM claimed), 2::bigint, 'some may be permanent'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    format('SELECT attempts FROM memvec.embedding_work WHERE space_id = %s ORDER BY row_id', :space),
    $$ VALUES (5), (3) $$, 'a permanent failure counts as embed_max_attempts'
);

SELECT * FROM finish();
ROLLBACK;
