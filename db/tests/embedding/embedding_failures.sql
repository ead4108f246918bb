BEGIN;
SELECT plan(8);
SELECT memvec_tests.alone();

SELECT is(pg_get_function_arguments('memvec.embedding_failures'::regproc), 'p_space integer, p_limit integer DEFAULT 100', 'takes a space');
SELECT volatility_is('memvec', 'embedding_failures', 'stable', 'is stable');
SELECT is_definer('memvec', 'embedding_failures', 'runs as its owner');
SELECT is(
    memvec_tests.callers('memvec.embedding_failures'), '{tap_admin,tap_embedder}', 'only embedder and admin: an error may quote a text'
);

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('embedding_failures', 8) AS space \gset
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
SELECT memvec.add_memory('embedding_failures', 'memory', 'one'), memvec.append_turn('embedding_failures', 's', 'user', 'two'),
       memvec.add_memory('embedding_failures', 'memory', 'three');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_embedder');
CREATE TEMP TABLE claimed AS SELECT * FROM memvec.claim_pending(:space);
SELECT memvec.report_embedding_failure(:space, array_agg(kind), array_agg(id), array_agg('cannot do ' || content), array_agg(content = 'two'))
  FROM claimed WHERE content <> 'three';
SELECT results_eq(
    format('SELECT kind, agent_identity, attempts, given_up, failed_at, last_error FROM memvec.embedding_failures(%s)', :space),
    $$ VALUES ('entry', 'embedding_failures', 1, false, now(), 'cannot do one'), ('turn', 'embedding_failures', 5, true, now(), 'cannot do two') $$,
    'which rows, how often, when and why'
);
SELECT is((SELECT count(*) FROM memvec.embedding_failures(:space, 1)), 1::bigint, 'no more than asked for');
SELECT throws_ok($$ SELECT * FROM memvec.embedding_failures(0) $$, 'MV004', NULL, 'an unknown space is refused');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
SELECT memvec.replace_memory('embedding_failures', 'memory', 'one', 'one, in other words');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_embedder');
SELECT is(
    (SELECT array_agg(kind) FROM memvec.embedding_failures(:space)), '{turn}', 'a text that has changed has not failed'
);

SELECT * FROM finish();
ROLLBACK;
