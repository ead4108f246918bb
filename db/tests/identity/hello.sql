BEGIN;
SELECT plan(33);
SELECT memvec_tests.alone();

-- The contract

SELECT is(
    pg_get_function_arguments('memvec.hello'::regproc),
    'p_identity text, p_model text DEFAULT NULL::text, p_dim integer DEFAULT NULL::integer, '
    'p_query_prefix text DEFAULT ''''::text, p_document_prefix text DEFAULT ''''::text, p_min_similarity real DEFAULT NULL::real, '
    'p_governance jsonb DEFAULT NULL::jsonb, OUT agent_identity text, OUT kind text, OUT schema_version integer, '
    'OUT space_id integer, OUT entries bigint, OUT turns bigint, OUT warnings text[]',
    'arguments and columns'
);
SELECT volatility_is('memvec', 'hello', 'volatile', 'volatile');
SELECT is_definer('memvec', 'hello', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.hello'), '{hermes,tap_admin}', 'who may execute it');

-- Without a model

SELECT memvec_tests.act_as('hermes');
SELECT results_eq(
    $$ SELECT agent_identity, kind, schema_version = memvec.schema_version(), space_id, entries, turns, warnings
         FROM memvec.hello(' Hello-A ') $$,
    $$ VALUES ('hello-a', 'theme', true, NULL::integer, 0::bigint, 0::bigint, '{}'::text []) $$,
    'a new theme begins empty'
);
SELECT results_eq(
    format($$ SELECT space_id, warnings FROM memvec.hello('hello-a', %L, %L) $$, t.model, t.dim),
    $$ VALUES (NULL::integer, '{}'::text []) $$,
    'no space and no warning: ' || t.description
)
FROM (VALUES
    (NULL, 8, 'without a model'), (' ', 8, 'with a blank one'), ('hello-model', NULL, 'without a width')
) AS t (model, dim, description);
SELECT is(
    cardinality((memvec.hello('hello-a', 'hello-model', t.dim)).warnings), 1,
    format('a width of %s registers nothing and warns', t.dim)
)
FROM (VALUES (0), (-1), (16001)) AS t (dim);

RESET SESSION AUTHORIZATION;
SELECT is_empty($$ SELECT * FROM memvec.embedding_spaces $$, 'no space was made');
SELECT is((SELECT kind FROM memvec.memory_agents WHERE agent_identity = 'hello-a'), 'theme', 'the theme is registered');

-- The first model

SELECT memvec_tests.act_as('hermes');
CREATE TEMP TABLE first_hello AS
SELECT * FROM memvec.hello('hello-a', 'hello-model', 8, 'query: ', 'passage: ', 0.5);
SELECT is((SELECT warnings FROM first_hello), '{}', 'the first model is welcome');
SELECT isnt((SELECT space_id FROM first_hello), NULL, 'and gets a space');
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT model, dim, query_prefix, document_prefix, min_similarity FROM memvec.embedding_spaces $$,
    $$ VALUES ('hello-model', 8, 'query: ', 'passage: ', 0.5::real) $$,
    'which holds what was said of it'
);
SELECT memvec_tests.act_as('hermes');
SELECT is(
    (memvec.hello('hello-b', 'hello-model', 8, 'query: ', 'passage: ')).space_id, (SELECT space_id FROM first_hello),
    'the next client gets the same'
);
SELECT is(
    h.space_id IS NULL AND cardinality(h.warnings) = 1 AND h.warnings[1] ~ 'add_embedding_space', true,
    'another client is warned: ' || t.description
)
FROM (VALUES
    ('other-model', 8, 'query: ', 'passage: ', 'another model'),
    ('hello-model', 9, 'query: ', 'passage: ', 'another width'),
    ('hello-model', 8, '', 'passage: ', 'another prefix of questions'),
    ('hello-model', 8, 'query: ', NULL, 'another prefix of documents')
) AS t (model, dim, query_prefix, document_prefix, description)
CROSS JOIN LATERAL memvec.hello('hello-a', t.model, t.dim, t.query_prefix, t.document_prefix) AS h;

SELECT matches(
    (memvec.hello('hello-a', 'hello-model', 8, 'Q> ', NULL)).warnings[1], w.part, 'with other prefixes ' || w.description
)
FROM (VALUES
    ('made with other task prefixes \(before questions and before text: "query: " and "passage: "\)', 'theirs are named'),
    ('than this host uses \("Q> " and ""\)', 'and its own'),
    ('embed_query_prefix and embed_document_prefix', 'and the settings'),
    ('add_embedding_space\(''hello-model'', ''?8''?, ''Q> '', ''''\)', 'and the other way out')
) AS w (part, description);

-- The hint in the warning can be run as it stands
SELECT set_config(
    'hello.hint', substring((memvec.hello('hello-a', 'it''s "odd"', 8, 'q'': ')).warnings[1] FROM 'SELECT .*;'), true
);
SELECT memvec_tests.act_as('tap_admin');
SELECT lives_ok(current_setting('hello.hint'), 'the hint is a statement that works');
SELECT memvec_tests.act_as('hermes');
SELECT isnt(
    (memvec.hello('hello-a', 'it''s "odd"', 8, 'q'': ')).space_id, NULL, 'and gives the model its space'
);

-- Counts

SELECT memvec.add_memory('hello-a', 'memory', 'one');
SELECT memvec.add_memory('hello-a', 'user', 'two');
SELECT memvec.add_memory('hello-b', 'memory', 'three');
SELECT memvec.append_turn('hello-a', 's', 'user', 'turn ' || i) FROM generate_series(1, 3) AS i;
SELECT memvec.add_memory('agent:main:sms:dm:hello-1', 'memory', 'four');
RESET SESSION AUTHORIZATION;
SELECT memvec.count_themes();
SELECT memvec_tests.act_as('hermes');
SELECT results_eq(
    format($$ SELECT entries, turns FROM memvec.hello(%L) $$, t.identity),
    format($$ VALUES (%s::bigint, %s::bigint) $$, t.entries, t.turns),
    t.identity || ' counts its own'
)
FROM (VALUES
    ('hello-a', 2, 3), ('hello-b', 1, 0), ('agent:main:sms:dm:hello-1', 1, 0), ('agent:main:sms:dm:hello-2', 0, 0)
) AS t (identity, entries, turns);
SELECT is(
    (memvec.hello('whatsapp-dm')).entries, 0::bigint,
    'who comes with a sink''s own name sees nobody''s'
);

SELECT results_eq(
    $$ SELECT agent_identity, kind FROM memvec.hello('hello-c', p_governance => '{"aliases": {"hello-c": "hello-a"}}') $$,
    $$ VALUES ('hello-a', 'theme') $$,
    'a host''s rules hold'
);

SELECT * FROM finish();
ROLLBACK;
