BEGIN;
SELECT plan(25);
SELECT memvec_tests.alone();

SELECT is(
    pg_get_function_arguments('memvec.add_embedding_space'::regproc),
    'p_model text, p_dim integer, p_query_prefix text DEFAULT ''''::text, p_document_prefix text DEFAULT ''''::text, '
    'p_min_similarity real DEFAULT NULL::real',
    'takes these arguments'
);
SELECT is(pg_get_function_result('memvec.add_embedding_space'::regproc), 'integer', 'returns an id');
SELECT volatility_is('memvec', 'add_embedding_space', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'add_embedding_space', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.add_embedding_space'), '{tap_admin}', 'only an admin may call it');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.add_embedding_space('m', 8) $$, '42501', NULL, 'the runtime login is refused');
RESET SESSION AUTHORIZATION;

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('add_embedding_space', 8) AS first \gset
SELECT is(memvec.add_embedding_space('add_embedding_space', 8), :first, 'the same again is the same space');
SELECT isnt(memvec.add_embedding_space('add_embedding_space', 9), :first, 'another width is another space');
SELECT isnt(
    memvec.add_embedding_space('add_embedding_space', 8, 'query: ', 'passage: '), :first, 'other prefixes are another space'
);
SELECT is(
    memvec.add_embedding_space('add_embedding_space', 8, NULL, NULL), :first, 'no prefix and a blank one are the same'
);
SELECT throws_ok(
    format('SELECT memvec.add_embedding_space(%L, %L::int)', b.model, b.dim), 'MV001', NULL,
    format('model %L with %L dimensions is refused', b.model, b.dim)
) FROM (VALUES (NULL, 8), ('  ', 8), ('m', 0), ('m', 16001), ('m', NULL), (' m', 8), ('m ', 8), (E'm\nn', 8),
               (repeat('m', 301), 8)) AS b (model, dim);
SELECT lives_ok($$ SELECT memvec.add_embedding_space('wide', 4000) $$, '4,000 dimensions are fine');
SET client_min_messages = error;
SELECT lives_ok($$ SELECT memvec.add_embedding_space('wider', 16000) $$, '16,000 too');
RESET client_min_messages;

RESET SESSION AUTHORIZATION;
SELECT results_eq(
    format($$ SELECT model, dim, query_prefix, document_prefix, min_similarity FROM memvec.embedding_spaces WHERE id = %s $$, :first),
    $$ VALUES ('add_embedding_space', 8, '', '', NULL::real) $$, 'the space is on record'
);
SELECT results_eq(
    format($$ SELECT operation, acted_by, parameters ->> 'model' FROM memvec.maintenance_log
              WHERE operation = 'add_embedding_space' AND parameters ->> 'space' = '%s' $$, :first)
    || ' LIMIT 1',
    $$ VALUES ('add_embedding_space', 'tap_admin'::name, 'add_embedding_space') $$, 'and in the log, with who made it'
);
SELECT is_empty(
    $$ SELECT s.id, t.name FROM memvec.embedding_spaces AS s, unnest(ARRAY[s.entry_table, s.turn_table]) AS t (name)
       JOIN pg_class AS c ON c.relname = t.name AND c.relnamespace = 'memvec'::regnamespace
       JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'embedding'
       WHERE format_type(a.atttypid, a.atttypmod) <> format('halfvec(%s)', s.dim)
           OR a.attstorage <> CASE WHEN s.dim <= 3400 THEN 'p' ELSE 'e' END $$,
    'its vectors have the width, and lie inline where a page can hold them'
);

SELECT memvec.add_embedding_space('add_embedding_space floor ' || f.floor, 8, p_min_similarity => f.floor)
FROM (VALUES (-0.25::real), ('NaN'), ('-Infinity'), (1.5)) AS f (floor);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT model, min_similarity FROM memvec.embedding_spaces WHERE model LIKE 'add_embedding_space floor %' AND min_similarity IS NOT NULL $$,
    $$ VALUES ('add_embedding_space floor -0.25', -0.25::real) $$, 'what is no cosine is no floor'
);

SELECT * FROM finish();
ROLLBACK;
