BEGIN;
SELECT plan(14);
SELECT memvec_tests.alone();

SELECT is(pg_get_function_arguments('memvec.embedding_coverage'::regproc), '', 'takes nothing');
SELECT is(
    pg_get_function_result('memvec.embedding_coverage'::regproc),
    'TABLE(space_id integer, model text, dim integer, kind text, rows bigint, embedded bigint, pending bigint, failed bigint, '
    'oldest_pending timestamp with time zone, last_error text)', 'returns these columns'
);
SELECT volatility_is('memvec', 'embedding_coverage', 'stable', 'is stable');
SELECT is_definer('memvec', 'embedding_coverage', 'runs as its owner');
SELECT is(
    memvec_tests.callers('memvec.embedding_coverage'), '{hermes,tap_admin,tap_embedder,tap_reader}', 'every group may call it'
);
SELECT memvec_tests.act_as('tap_nobody');
SELECT throws_ok($$ SELECT * FROM memvec.embedding_coverage() $$, '42501', NULL, 'a stranger is refused');
RESET SESSION AUTHORIZATION;

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('embedding_coverage', 8) AS space \gset
RESET SESSION AUTHORIZATION;
SELECT set_config('coverage.space', :'space', true);
SELECT memvec_tests.act_as('hermes');
SELECT is(
    (SELECT count(*) FROM memvec.embedding_coverage() WHERE space_id = :space), 0::bigint, 'without rows there is nothing to cover'
);
DO $$
BEGIN
    PERFORM memvec.add_memory('embedding_coverage', 'memory', 'with', p_embedding => memvec_tests.vec(1), p_space => current_setting('coverage.space')::int);
    PERFORM memvec.add_memory('embedding_coverage', 'memory', 'without');
    PERFORM memvec.add_memory('embedding_coverage', 'memory', 'failing');
    PERFORM memvec.add_memory('embedding_coverage', 'memory', 'never embed this', p_embed => false);
    PERFORM memvec.append_turn('embedding_coverage', 's', 'user', 'turn', p_ts => '2026-01-01Z');
END
$$;
SELECT results_eq(
    format('SELECT model, dim, kind, rows, embedded, pending, failed FROM memvec.embedding_coverage() WHERE space_id = %s', :space),
    $$ VALUES ('embedding_coverage', 8, 'entry', 3::bigint, 1::bigint, 2::bigint, 0::bigint), ('embedding_coverage', 8, 'turn', 1, 0, 1, 0) $$,
    'rows that should have a vector, that have one, that wait'
);
SELECT is(
    (SELECT oldest_pending FROM memvec.embedding_coverage() WHERE space_id = :space AND kind = 'turn'), now(),
    'since when the oldest waits, which is not before the space was there'
);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_embedder');
CREATE TEMP TABLE claimed AS SELECT * FROM memvec.claim_pending(:space);
SELECT memvec.report_embedding_failure(:space, ARRAY[kind], ARRAY[id], '{HTTP 400: failing}') FROM claimed WHERE content = 'failing';
SELECT results_eq(
    format('SELECT kind, pending, failed, last_error FROM memvec.embedding_coverage() WHERE space_id = %s', :space),
    $$ VALUES ('entry', 2::bigint, 1::bigint, 'HTTP 400: failing'), ('turn', 1, 0, NULL) $$, 'an embedder sees failures and why'
);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
SELECT results_eq(
    format('SELECT kind, failed, last_error FROM memvec.embedding_coverage() WHERE space_id = %s', :space),
    $$ VALUES ('entry', 1::bigint, NULL::text), ('turn', 0, NULL) $$, 'the runtime login only that there are some: an error may quote a text'
);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_reader');
SELECT is(
    (SELECT count(last_error) FROM memvec.embedding_coverage()), 0::bigint, 'a reader neither'
);

RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.bind_role('tap_bound', 'embedding_coverage bound');
SELECT memvec.set_setting('require_binding', 'true');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT memvec.add_memory('embedding_coverage bound', 'memory', 'one row');
SELECT results_eq(
    format('SELECT kind, rows FROM memvec.embedding_coverage() WHERE space_id = %s', :space),
    $$ VALUES ('entry', 1::bigint) $$, 'a bound role is told of its own theme only'
);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_embedder');
SELECT results_eq(
    format('SELECT kind, rows FROM memvec.embedding_coverage() WHERE space_id = %s', :space),
    $$ VALUES ('entry', 4::bigint), ('turn', 1) $$, 'an embedder of all, bound or not'
);

SELECT * FROM finish();
ROLLBACK;
