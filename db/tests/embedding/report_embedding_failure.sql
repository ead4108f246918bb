BEGIN;
SELECT plan(13);
SELECT memvec_tests.alone();

SELECT is(
    pg_get_function_arguments('memvec.report_embedding_failure'::regproc),
    'p_space integer, p_kinds text[], p_ids bigint[], p_errors text[]', 'takes three arrays'
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
    format('SELECT DISTINCT attempts, length(last_error), leased_until - now() FROM memvec.embedding_work WHERE space_id = %s', :space),
    $$ VALUES (1, 500, interval '1 minute') $$, 'one failure more, the error cut, a pause of a minute'
);
SELECT memvec_tests.act_as('tap_embedder');
SELECT is(
    (SELECT memvec.report_embedding_failure(:space, array_agg(kind), array_agg(id), array_agg('again'::text)) FROM claimed), 2::bigint,
    'a second failure'
);
RESET SESSION AUTHORIZATION;
CREATE TEMP TABLE pause AS
SELECT n.attempts, NULL::interval AS pause FROM (VALUES (0), (1), (5), (10), (11), (900)) AS n (attempts);
DO $$
DECLARE
    v_row record;
    v_work memvec.embedding_work;
BEGIN
    SELECT w.* INTO v_work FROM memvec.embedding_work AS w JOIN claimed AS c ON c.kind = w.kind AND c.id = w.row_id LIMIT 1;
    FOR v_row IN SELECT * FROM pause LOOP
        UPDATE memvec.embedding_work SET attempts = v_row.attempts WHERE (space_id, kind, row_id) = (v_work.space_id, v_work.kind, v_work.row_id);
        PERFORM memvec.report_embedding_failure(v_work.space_id, ARRAY[v_work.kind], ARRAY[v_work.row_id], '{again}');
        UPDATE pause SET pause = (SELECT w.leased_until - now() FROM memvec.embedding_work AS w
                                  WHERE (space_id, kind, row_id) = (v_work.space_id, v_work.kind, v_work.row_id))
        WHERE pause.attempts = v_row.attempts;
    END LOOP;
END
$$;
SELECT results_eq(
    $$ SELECT attempts, pause FROM pause ORDER BY attempts $$,
    $$ VALUES (0, interval '1 min'), (1, '2 min'), (5, '32 min'), (10, '1024 min'), (11, '1 day'), (900, '1 day') $$,
    'each failure doubles the pause, up to a day'
);

SELECT * FROM finish();
ROLLBACK;
