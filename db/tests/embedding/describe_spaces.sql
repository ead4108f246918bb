BEGIN;
SELECT plan(8);
SELECT memvec_tests.alone();

SELECT is(pg_get_function_arguments('memvec.describe_spaces'::regproc), '', 'takes nothing');
SELECT volatility_is('memvec', 'describe_spaces', 'stable', 'is stable');
SELECT is_definer('memvec', 'describe_spaces', 'runs as its owner');
SELECT is(
    memvec_tests.callers('memvec.describe_spaces'), '{hermes,tap_admin,tap_embedder,tap_reader}', 'everybody with a role may call it'
);
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('describe_spaces', 8, 'q: ', 'd: ', 0.25) AS space \gset
SELECT set_config('client_min_messages', 'error', true);
SELECT memvec.add_embedding_space('describe_spaces', 4001) AS wide \gset
SELECT results_eq(
    format('SELECT model, dim, query_prefix, document_prefix, min_similarity, created_at, kind, index_state, bytes > 0
              FROM memvec.describe_spaces() WHERE space_id = %s', :space),
    $$ VALUES ('describe_spaces', 8, 'q: ', 'd: ', 0.25::real, now(), 'entry', 'none', true),
              ('describe_spaces', 8, 'q: ', 'd: ', 0.25::real, now(), 'turn', 'none', true) $$, 'a space and its two tables'
);
SELECT is(
    (SELECT array_agg(DISTINCT index_state) FROM memvec.describe_spaces() WHERE space_id = :wide), '{"too wide"}', 'one that can have no index'
);
RESET SESSION AUTHORIZATION;
SELECT format('CREATE INDEX %I ON memvec.%I USING hnsw (embedding public.halfvec_cosine_ops)', entry_table || '_hnsw', entry_table)
  FROM memvec.embedding_spaces WHERE id = :space \gexec
SELECT memvec_tests.act_as('tap_admin');
SELECT is(
    (SELECT array_agg(index_state ORDER BY kind) FROM memvec.describe_spaces() WHERE space_id = :space), '{valid,none}', 'one that has one'
);
SELECT memvec.bind_role('tap_bound', 'describe_spaces');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT is(
    (SELECT count(*) FROM memvec.describe_spaces() WHERE bytes IS NOT NULL OR index_state IS NOT NULL), 0::bigint,
    'a bound role is not told how much there is'
);

SELECT * FROM finish();
ROLLBACK;
