BEGIN;
SELECT plan(8);
SELECT memvec_tests.alone();

SELECT is(pg_get_function_result('memvec.pending_embeddings'::regproc), 'record', 'returns one row');
SELECT volatility_is('memvec', 'pending_embeddings', 'stable', 'is stable');
SELECT is_definer('memvec', 'pending_embeddings', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.pending_embeddings'), '{tap_admin,tap_embedder}', 'only embedder and admin may call it');

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('pending_embeddings', 8) AS space \gset
RESET SESSION AUTHORIZATION;
SELECT set_config('pending.space', :'space', true);
SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    PERFORM memvec.add_memory('pending_embeddings', 'memory', 'one');
    PERFORM memvec.add_memory('pending_embeddings', 'memory', 'two');
    PERFORM memvec.add_memory('pending_embeddings', 'memory', 'never embed this', p_embed => false);
    PERFORM memvec.append_turn('pending_embeddings', 's', 'user', 'three');
    PERFORM memvec.add_memory('pending_embeddings', 'memory', 'done', p_embedding => memvec_tests.vec(1), p_space => current_setting('pending.space')::int);
END
$$;
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_embedder');
SELECT results_eq(
    format('SELECT * FROM memvec.pending_embeddings(%s)', :space), $$ VALUES (now(), 3::bigint, 0::bigint, 0::bigint, 0::bigint) $$,
    'rows without a vector that shall have one, of both kinds'
);
SELECT count(*) FROM memvec.claim_pending(:space, 2) \gset
SELECT results_eq(
    format('SELECT pending, leased FROM memvec.pending_embeddings(%s)', :space), $$ VALUES (3::bigint, 2::bigint) $$, 'those that a worker has'
);
SELECT memvec.report_embedding_failure(:space, '{entry}', array_agg(f.id), '{no}', '{true}')
  FROM (SELECT min(w.id) AS id FROM memvec.claim_pending(:space, 9) AS w) AS f;
RESET SESSION AUTHORIZATION;
UPDATE memvec.embedding_work SET attempts = 5, leased_until = now() WHERE space_id = :space AND kind = 'entry';
UPDATE memvec.embedding_work SET attempts = 4
 WHERE space_id = :space AND row_id = (SELECT max(row_id) FROM memvec.embedding_work WHERE space_id = :space AND kind = 'entry');
SELECT memvec_tests.act_as('tap_embedder');
SELECT results_eq(
    format('SELECT pending, leased, failed, given_up FROM memvec.pending_embeddings(%s)', :space), $$ VALUES (3::bigint, 1::bigint, 1::bigint, 1::bigint) $$,
    'those that failed, and those that were given up'
);
SELECT throws_ok($$ SELECT memvec.pending_embeddings(0) $$, 'MV004', NULL, 'an unknown space is refused');

SELECT * FROM finish();
ROLLBACK;
