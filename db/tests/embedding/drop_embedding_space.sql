BEGIN;
SELECT plan(15);
SELECT memvec_tests.alone();

SELECT is(pg_get_function_arguments('memvec.drop_embedding_space'::regproc), 'p_space integer', 'takes a space');
SELECT is(pg_get_function_result('memvec.drop_embedding_space'::regproc), 'boolean', 'returns whether it existed');
SELECT volatility_is('memvec', 'drop_embedding_space', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'drop_embedding_space', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.drop_embedding_space'), '{tap_admin}', 'only an admin may call it');

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('drop_embedding_space', 8) AS space \gset
SELECT memvec.add_embedding_space('drop_embedding_space other', 8) AS other \gset
RESET SESSION AUTHORIZATION;
SELECT set_config('drop.space', :'space', true), set_config('drop.other', :'other', true);
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    $$ SELECT memvec.drop_embedding_space(current_setting('drop.space')::int) $$, '42501', NULL, 'the runtime login is refused'
);
DO $$
BEGIN
    PERFORM memvec.add_memory('drop_embedding_space', 'memory', 'harbour', p_embedding => memvec_tests.vec(1), p_space => current_setting('drop.space')::int);
    PERFORM memvec.add_memory('drop_embedding_space', 'memory', 'harbour', p_embedding => memvec_tests.vec(1), p_space => current_setting('drop.other')::int);
END
$$;
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_embedder');
SELECT ok((SELECT count(*) >= 0 FROM memvec.claim_pending(current_setting('drop.space')::int)), 'rows may be claimed');
RESET SESSION AUTHORIZATION;

SELECT memvec_tests.act_as('tap_admin');
SELECT is(memvec.drop_embedding_space(:space), true, 'the space is gone');
SELECT is(memvec.drop_embedding_space(:space), false, 'it cannot be dropped twice');
SELECT is(memvec.drop_embedding_space(NULL), false, 'NULL is no space');
RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT count(*) FROM pg_class WHERE relname IN ('entry_embeddings_' || :space, 'turn_embeddings_' || :space)), 0::bigint,
    'its tables too'
);
SELECT is((SELECT count(*) FROM memvec.embedding_work WHERE space_id = :space), 0::bigint, 'and its leases');
SELECT results_eq(
    $$ SELECT acted_by, parameters ->> 'model' FROM memvec.maintenance_log WHERE operation = 'drop_embedding_space' $$,
    $$ VALUES ('tap_admin'::name, 'drop_embedding_space') $$, 'the log tells who dropped it'
);
SELECT memvec_tests.act_as('hermes');
SELECT results_eq(
    $$ SELECT content, vector_rank FROM memvec.recall_memory('drop_embedding_space', 'harbour', memvec_tests.vec(1), current_setting('drop.other')::int) $$,
    $$ VALUES ('harbour', 1) $$, 'the text stays, and its vector in another space'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.recall_memory('drop_embedding_space', 'harbour', memvec_tests.vec(1), current_setting('drop.space')::int) $$,
    'MV004', NULL, 'recall in the dropped space is refused'
);

SELECT * FROM finish();
ROLLBACK;
