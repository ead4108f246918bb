BEGIN;
SELECT plan(59);
SELECT memvec_tests.alone();

-- Contract

SELECT is(
    pg_get_function_arguments('memvec.recall_memory'::regproc),
    'p_identity text, p_query text DEFAULT NULL::text, p_embedding halfvec DEFAULT NULL::halfvec, p_space integer DEFAULT NULL::integer, '
    'p_scope text DEFAULT ''own''::text, p_target text DEFAULT NULL::text, p_limit integer DEFAULT 10, '
    'p_since timestamp with time zone DEFAULT NULL::timestamp with time zone, '
    'p_until timestamp with time zone DEFAULT NULL::timestamp with time zone, p_min_similarity real DEFAULT NULL::real, '
    'p_half_life interval DEFAULT NULL::interval, p_governance jsonb DEFAULT NULL::jsonb',
    'takes these arguments'
);
SELECT is(
    pg_get_function_result('memvec.recall_memory'::regproc),
    'TABLE(id bigint, agent_identity text, target text, content text, created_at timestamp with time zone, '
    'updated_at timestamp with time zone, metadata jsonb, score real, rrf_score double precision, vector_rank integer, '
    'text_rank integer, themes text[])',
    'returns these columns'
);
SELECT volatility_is('memvec', 'recall_memory', 'stable', 'is stable');
SELECT is_definer('memvec', 'recall_memory', 'runs as its owner');
SELECT is(
    memvec_tests.callers('memvec.recall_memory'), '{hermes,tap_admin,tap_reader}', 'runtime, reader and admin may call it'
);

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('recall_memory', 32) AS space \gset
SELECT memvec.add_embedding_space('recall_memory', 3072) AS space3072 \gset
SET client_min_messages = error;
SELECT memvec.add_embedding_space('recall_memory', 4096) AS space4096 \gset
RESET client_min_messages;
RESET SESSION AUTHORIZATION;
SELECT set_config('recall_memory.space', :'space', true), set_config('recall_memory.space3072', :'space3072', true),
       set_config('recall_memory.space4096', :'space4096', true);

SELECT memvec_tests.act_as('tap_nobody');
SELECT throws_ok($$ SELECT * FROM memvec.recall_memory('recall_memory') $$, '42501', NULL, 'a stranger is refused');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_embedder');
SELECT throws_ok($$ SELECT * FROM memvec.recall_memory('recall_memory') $$, '42501', NULL, 'an embedder too');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');

CREATE FUNCTION pg_temp.found(p_identity text, p_query text, p_limit int = 3, p_scope text = 'own') RETURNS text[]
LANGUAGE sql
AS $$
    SELECT coalesce(array_agg(r.content ORDER BY r.place), '{}')
    FROM memvec.recall_memory(p_identity, p_query, p_limit => p_limit, p_scope => p_scope)
         WITH ORDINALITY AS r (id, agent_identity, target, content, created_at, updated_at, metadata, score, rrf_score,
                               vector_rank, text_rank, themes, place)
$$;

-- A question in plain words finds what it is about (case R02)

DO $$
BEGIN
    PERFORM memvec.add_memory('recall_memory-ops', 'memory', 'The deployment rollback on Friday was caused by an expired TLS certificate.');
    PERFORM memvec.add_memory('recall_memory-ops', 'memory', 'Lunch order: two vegetarian, one vegan.');
    PERFORM memvec.add_memory('recall_memory-ops', 'user', 'Channel format preferences: Telegram, short bullet points.');
    PERFORM memvec.add_memory('recall_memory-ops', 'memory', 'Route X99: transfer at Central, then walk to the terminal.');
END
$$;
SELECT alike(
    (pg_temp.found('recall_memory-ops', 'what happened last week with the deployment rollback, do you remember the reason?'))[1],
    '%expired TLS certificate%', 'a long question'
);
SELECT alike(
    (pg_temp.found('recall_memory-ops', 'communication preferences telegram format'))[1], '%Telegram%', 'key words'
);
SELECT alike(
    (pg_temp.found('recall_memory-ops', 'hey, can you tell me again how I get there with my X99 route tomorrow morning?'))[1],
    '%transfer at Central%', 'chat'
);
SELECT results_eq(
    $$ SELECT agent_identity, target, metadata, score, vector_rank, text_rank, themes
       FROM memvec.recall_memory(p_identity => ' Recall_Memory-OPS ', p_query => 'telegram') $$,
    $$ VALUES ('recall_memory-ops', 'user', '{}'::jsonb, NULL::real, NULL::int, 1, '{recall_memory-ops}'::text[]) $$,
    'every column tells what it should'
);

-- In every script (case R03)

DO $$
BEGIN
    PERFORM memvec.add_memory('recall_memory-t', 'memory', t.text)
    FROM unnest(ARRAY[
        '我们现在的记忆提供商是本地数据库', '桌面后端watchdog误杀健康后端', '배포는 금요일에 한다', '今月の売上を確認する',
        '部署方案放在仓库根目录', 'Frau Müller wohnt in Köln', 'Сервер стоит в Москве'
    ]) AS t (text);
END
$$;
SELECT is((pg_temp.found('recall_memory-t', '记忆'))[1], '我们现在的记忆提供商是本地数据库', 'a Chinese word');
SELECT is((pg_temp.found('recall_memory-t', '我们现在的记忆提供商是什么？'))[1], '我们现在的记忆提供商是本地数据库', 'a Chinese sentence');
SELECT is((pg_temp.found('recall_memory-t', 'watchdog'))[1], '桌面后端watchdog误杀健康后端', 'a Latin word between Chinese ones');
SELECT is((pg_temp.found('recall_memory-t', '배포'))[1], '배포는 금요일에 한다', 'a Korean word without its particle');
SELECT is((pg_temp.found('recall_memory-t', '売上'))[1], '今月の売上を確認する', 'a Japanese word');
SELECT is((pg_temp.found('recall_memory-t', 'go 部署 deployment'))[1], '部署方案放在仓库根目录', 'mixed scripts');
SELECT is((pg_temp.found('recall_memory-t', 'Muller'))[1], 'Frau Müller wohnt in Köln', 'without the umlaut');
SELECT is((pg_temp.found('recall_memory-t', 'МОСКВЕ'))[1], 'Сервер стоит в Москве', 'Cyrillic in capitals');
SELECT is(pg_temp.found('recall_memory-t', '猫'), '{}', 'a character that nobody wrote finds nothing');

-- Hostile questions (case R05)

DO $$
BEGIN
    PERFORM memvec.add_memory('recall_memory-r5', 'memory', 'Never run rm -rf on the build host; use the clean target.');
    PERFORM memvec.add_memory('recall_memory-r5', 'memory', 'Pass --verbose when the sync stalls.');
END
$$;
SELECT is_empty(
    $$ SELECT q.question
       FROM unnest(ARRAY[
           'rm -rf', 'why does rm -rf hurt the build host -please', '"rm -rf', 'a & | ! ( ) : * <-> build host', 'NOT build',
           'build host ' || (SELECT string_agg('word' || i, ' ') FROM generate_series(1, 20000) AS i)
       ]) AS q (question)
       WHERE (pg_temp.found('recall_memory-r5', q.question))[1] NOT LIKE 'Never run rm -rf%' IS NOT FALSE $$,
    'operators are words and a long paste is no error'
);
SELECT is(pg_temp.found('recall_memory-r5', '--verbose'), '{Pass --verbose when the sync stalls.}', 'an option is a word');
SELECT is_empty(
    $$ SELECT q.question
       FROM unnest(ARRAY['%', '\', '', '   ', 'what is it', U&'\00A0\3000', repeat('a', 3000), NULL]) AS q (question)
       WHERE pg_temp.found('recall_memory-r5', q.question) <> '{}' $$,
    'a question without words finds nothing'
);
SELECT lives_ok(
    $$ SELECT * FROM memvec.recall_memory('recall_memory-r5', '''; DROP TABLE memory_entries; --') $$, 'quotes are text'
);
SELECT results_eq(
    $$ SELECT l.wanted, cardinality(pg_temp.found('recall_memory-r5', 'build verbose', l.wanted))
       FROM unnest(ARRAY[-1, 0, 1, 2, 2147483647, NULL]) WITH ORDINALITY AS l (wanted, place) ORDER BY l.place $$,
    $$ VALUES (-1, 1), (0, 1), (1, 1), (2, 2), (2147483647, 2), (NULL, 2) $$,
    'a limit is clamped to 1 to 1000; NULL is the default'
);

-- Texts of any size (case R08)

DO $$
BEGIN
    PERFORM memvec.add_memory('recall_memory-r8', 'memory', 'first small entry alpha');
    PERFORM memvec.add_memory('recall_memory-r8', 'memory', 'big-one '
        || (SELECT string_agg(chr(33 + (i * 7919) % 94), '') FROM generate_series(1, 3000) AS i));
    PERFORM memvec.add_memory('recall_memory-r8', 'memory', 'huge-text '
        || (SELECT string_agg(left(md5(i::text), 12), ' ') FROM generate_series(1, 120000) AS i));
    PERFORM memvec.add_memory('recall_memory-r8', 'memory', 'blob-text '
        || (SELECT left(string_agg(translate(encode(sha256(i::text::bytea), 'base64'), E'=\n', ''), ''), 2000000)
            FROM generate_series(1, 47000) AS i));
    PERFORM memvec.add_memory('recall_memory-r8', 'memory', 'last small entry omega');
END
$$;
SELECT is_empty(
    $$ SELECT q.question FROM unnest(ARRAY['alpha', 'big-one', 'huge-text', 'blob-text', 'omega']) AS q (question)
       WHERE NOT EXISTS (SELECT FROM memvec.recall_memory('recall_memory-r8', q.question) AS r WHERE r.content LIKE '%' || q.question || '%') $$,
    'small and huge texts are found'
);
SELECT is(
    (SELECT length(content) FROM memvec.recall_memory('recall_memory-r8', 'blob-text', p_limit => 1)), 2000010,
    'and returned whole'
);

-- Fusion (case R06): V is the question's own vector, K at a right angle to it, 300 rows lie between.

DO $$
DECLARE
    v_space int := current_setting('recall_memory.space');
BEGIN
    PERFORM memvec.add_memory('recall_memory-f', 'memory', 'V: a paraphrase with no shared words', p_embedding => memvec_tests.vec(1, 32), p_space => v_space);
    PERFORM memvec.add_memory('recall_memory-f', 'memory', 'B: renewal notice, sixty days', p_embedding => memvec_tests.vec_near(1, 0.707, 32), p_space => v_space);
    PERFORM memvec.add_memory('recall_memory-f', 'memory', 'K: renewal notice period error E4711', p_embedding => memvec_tests.vec_near(1, 0, 32), p_space => v_space);
    PERFORM memvec.add_memory('recall_memory-f', 'memory', 'N: renewal notice written while the endpoint was down E4711');
    FOR i IN 1..300 LOOP
        PERFORM memvec.add_memory('recall_memory-f', 'memory', 'unrelated filler sentence number ' || i,
                                  p_embedding => memvec_tests.vec_near(1, 0.7 - i * 0.002, 32), p_space => v_space);
    END LOOP;
END
$$;
PREPARE fusion AS
SELECT left(r.content, 1) AS name, r.score, r.rrf_score, r.vector_rank, r.text_rank
FROM memvec.recall_memory('recall_memory-f', 'renewal notice period E4711', memvec_tests.vec(1, 32), current_setting('recall_memory.space')::int,
                          p_limit => 5) AS r;
CREATE TEMP TABLE fusion AS EXECUTE fusion;

SELECT ok(
    (SELECT array_agg(name) @> '{B,K,N,V}' FROM fusion), 'a row that only one leg found, also one without a vector, survives'
);
SELECT ok((SELECT name IN ('B', 'K') FROM fusion LIMIT 1), 'what both legs, or the words best, found comes first');
SELECT ok(
    (SELECT bool_and(rrf_score > 0 AND rrf_score < 'infinity') AND count(DISTINCT rrf_score) > 1 FROM fusion),
    'scores of the fusion are finite, above zero and not all equal'
);
SELECT is((SELECT array_agg(name) FROM fusion WHERE score IS NULL), '{N}', 'only a row without a vector has no similarity');
SELECT is(
    (SELECT array_agg((name, vector_rank IS NULL, score < 0.01)) FROM fusion WHERE name = 'K')::text, '{"(K,t,t)"}',
    'a row too far for the vector leg still shows its similarity'
);
SELECT is(
    (SELECT count(DISTINCT names) FROM generate_series(1, 20) AS i, LATERAL (
         SELECT array_agg(r.id) AS names
         FROM memvec.recall_memory('recall_memory-f', 'renewal notice period E4711 ' || left(i::text, 0), memvec_tests.vec(1, 32),
                                   current_setting('recall_memory.space')::int, p_limit => 50) AS r) AS s),
    1::bigint, 'twenty times the same question, twenty times the same order'
);
SELECT results_eq(
    $$ SELECT left(r.content, 9), r.vector_rank, r.text_rank
       FROM memvec.recall_memory('recall_memory-f', 'zzzz qqqq', memvec_tests.vec(1, 32), current_setting('recall_memory.space')::int,
                                 p_limit => 2) AS r $$,
    $$ VALUES ('V: a para', 1, NULL::int), ('B: renewa', 2, NULL) $$,
    'words that nobody has leave the order of the vectors'
);
SELECT is(
    (SELECT count(*) FROM memvec.recall_memory('recall_memory-f', NULL, memvec_tests.vec(1, 32), current_setting('recall_memory.space')::int,
                                               p_limit => 100)),
    100::bigint, 'a limit of 100 returns 100'
);
SELECT is(
    (SELECT count(*) FROM memvec.recall_memory('recall_memory-f', NULL, memvec_tests.vec(1, 32), current_setting('recall_memory.space')::int,
                                               p_limit => 100, p_min_similarity => 0.689)),
    7::bigint, 'p_min_similarity is a floor'
);
SELECT is(
    (SELECT count(*) FROM memvec.recall_memory('recall_memory-f', 'renewal', '[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]',
                                               current_setting('recall_memory.space')::int)
     WHERE score IS NULL AND vector_rank IS NULL),
    3::bigint, 'a vector of length zero is no vector: words only, no NaN'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.recall_memory('recall_memory-f', 'renewal', memvec_tests.vec(1, 32), 0) $$, 'MV004', NULL,
    'an unknown space is refused'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.recall_memory('recall_memory-f', 'renewal', memvec_tests.vec(1, 32)) $$, 'MV004', NULL,
    'a vector without a space too'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.recall_memory('recall_memory-f', 'renewal', memvec_tests.vec(1, 31), current_setting('recall_memory.space')::int) $$,
    'MV005', NULL, 'and a vector of another width'
);
SELECT is(
    (SELECT count(*) FROM memvec.recall_memory('recall_memory-f', 'renewal', NULL, 0)), 3::bigint,
    'without a vector the space does not matter'
);

-- Wide vectors (case X09)

DO $$
BEGIN
    FOR i IN 1..3 LOOP
        PERFORM memvec.add_memory('recall_memory-wide', 'memory', 'wide ' || i, p_embedding => memvec_tests.vec(i, 3072),
                                  p_space => current_setting('recall_memory.space3072')::int);
        PERFORM memvec.add_memory('recall_memory-wide', 'memory', 'wide ' || i, p_embedding => memvec_tests.vec(i, 4096),
                                  p_space => current_setting('recall_memory.space4096')::int);
    END LOOP;
END
$$;
SELECT results_eq(
    $$ SELECT w.dim, r.content, round(r.score::numeric, 2)
       FROM (VALUES (3072, current_setting('recall_memory.space3072')::int), (4096, current_setting('recall_memory.space4096')::int)) AS w (dim, space),
           LATERAL memvec.recall_memory('recall_memory-wide', NULL, memvec_tests.vec(2, w.dim), w.space, p_limit => 1) AS r $$,
    $$ VALUES (3072, 'wide 2', 1.00), (4096, 'wide 2', 1.00) $$,
    'vectors of 3,072 and 4,096 dimensions are found'
);
RESET SESSION AUTHORIZATION;
SELECT format('CREATE INDEX recall_memory_wide ON memvec.%I USING hnsw (embedding public.halfvec_cosine_ops)', entry_table)
FROM memvec.embedding_spaces WHERE id = :space3072 \gexec
SELECT throws_ok(
    (SELECT format('CREATE INDEX ON memvec.%I USING hnsw (embedding public.halfvec_cosine_ops)', entry_table)
     FROM memvec.embedding_spaces WHERE id = :space4096),
    '54000', NULL, '4,096 dimensions are too many for an index'
);
UPDATE memvec.settings SET value = '0' WHERE name = 'exact_rows';
UPDATE memvec.settings SET value = '0' WHERE name = 'hnsw_visit_rows';
SELECT memvec_tests.act_as('hermes');
SET LOCAL enable_seqscan = off;
SET LOCAL enable_sort = off;
SET LOCAL enable_bitmapscan = off;
SELECT results_eq(
    $$ SELECT r.content FROM memvec.recall_memory('recall_memory-wide', NULL, memvec_tests.vec(3, 3072), current_setting('recall_memory.space3072')::int) AS r
       LIMIT 1 $$,
    $$ VALUES ('wide 3') $$, '3,072 are not'
);
RESET enable_seqscan;
RESET enable_sort;
RESET enable_bitmapscan;
RESET SESSION AUTHORIZATION;
SELECT cmp_ok(pg_stat_get_xact_numscans('memvec.recall_memory_wide'::regclass), '>', 0::bigint, 'and the index is asked');
UPDATE memvec.settings SET value = '10000' WHERE name = 'exact_rows';
UPDATE memvec.settings SET value = '0' WHERE name = 'hnsw_visit_rows';
SELECT memvec_tests.act_as('hermes');

-- Filters

DO $$
BEGIN
    FOR i IN 1..4 LOOP
        PERFORM memvec.add_memory('recall_memory-when', CASE WHEN i < 4 THEN 'memory' ELSE 'user' END, 'harbour ' || i,
                                  p_embedding => memvec_tests.vec(i, 32), p_space => current_setting('recall_memory.space')::int);
    END LOOP;
    PERFORM memvec.add_memory('recall_memory-other', 'memory', 'harbour 1');
    PERFORM memvec.add_memory('recall_memory-other', 'memory', 'harbour of another theme');
END
$$;
RESET SESSION AUTHORIZATION;
UPDATE memvec.memory_entries SET updated_at = '2026-01-01Z'::timestamptz + right(content, 1)::int * interval '1 day'
WHERE agent_identity = 'recall_memory-when';
SELECT memvec_tests.act_as('hermes');

CREATE FUNCTION pg_temp.harbours(
    p_query text, p_vector public.halfvec, p_since timestamptz, p_until timestamptz, p_target text
) RETURNS text
LANGUAGE sql
AS $$
    SELECT string_agg(right(r.content, 1), '' ORDER BY right(r.content, 1))
    FROM memvec.recall_memory('recall_memory-when', p_query, p_vector, current_setting('recall_memory.space')::int,
                              p_since => p_since, p_until => p_until, p_target => p_target) AS r
$$;
SELECT is_empty(
    $$ SELECT f.*, l.query, pg_temp.harbours(l.query, l.vector, f.since, f.until, f.target)
       FROM (VALUES
           (NULL::timestamptz, NULL::timestamptz, NULL, '1234'),
           ('2026-01-03Z', NULL, NULL, '234'),
           (NULL, '2026-01-03Z', NULL, '1'),
           ('2026-01-03Z', '2026-01-05Z', NULL, '23'),
           ('2026-01-05Z', '2026-01-03Z', NULL, NULL),
           (NULL, NULL, 'memory', '123'),
           (NULL, NULL, 'USER', '4'),
           (NULL, NULL, 'both', '1234'),
           ('2026-01-03Z', NULL, 'memory', '23')
       ) AS f (since, until, target, expected)
       CROSS JOIN (VALUES ('harbour', NULL), (NULL, memvec_tests.vec(9, 32)), ('harbour', memvec_tests.vec(9, 32))) AS l (query, vector)
       WHERE pg_temp.harbours(l.query, l.vector, f.since, f.until, f.target) IS DISTINCT FROM f.expected $$,
    'times (since is inclusive, until is not) and target hold in each leg'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.recall_memory('recall_memory-when', 'harbour', p_target => 'notes') $$, 'MV001', NULL,
    'an unknown target is refused'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.recall_memory('recall_memory-when', 'harbour', p_scope => 'session') $$, 'MV001', 'notes have no session',
    'notes have no session'
);
SELECT results_eq(
    $$ SELECT content FROM memvec.recall_memory('recall_memory-when', 'harbour', p_half_life => '1 day') $$,
    $$ VALUES ('harbour 4'), ('harbour 3'), ('harbour 2'), ('harbour 1') $$,
    'with a half-life the younger comes first'
);

-- Scopes

SELECT results_eq(
    $$ SELECT s.scope, cardinality(pg_temp.found('recall_memory-when', 'harbour', 10, s.scope))
       FROM unnest(ARRAY['own', 'current', '', NULL, 'recall_memory-when', 'recall_memory-other', ' RECALL_memory-other ', '%', '*', 'recall_memory-unknown'])
           WITH ORDINALITY AS s (scope, place) ORDER BY s.place $$,
    $$ VALUES ('own', 4), ('current', 4), ('', 4), (NULL, 4), ('recall_memory-when', 4), ('recall_memory-other', 2),
              (' RECALL_memory-other ', 2), ('%', 0), ('*', 0), ('recall_memory-unknown', 0) $$,
    'own rows, or those of a named theme'
);
SELECT results_eq(
    $$ SELECT content, themes FROM memvec.recall_memory('recall_memory-when', 'harbour', p_scope => 'all', p_limit => 20) ORDER BY content $$,
    $$ VALUES ('harbour 1', '{recall_memory-other,recall_memory-when}'::text[]), ('harbour 2', '{recall_memory-when}'),
              ('harbour 3', '{recall_memory-when}'), ('harbour 4', '{recall_memory-when}'),
              ('harbour of another theme', '{recall_memory-other}') $$,
    'all: each text once, with the themes that hold it'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.recall_memory('recall_memory-when', 'harbour', p_scope => 'recall_memory-other',
                                          p_governance => '{"allowed_themes": ["recall_memory-when"]}') $$,
    'MV003', NULL, 'a host''s own rules narrow named scopes'
);

-- The reader

RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_reader');
SELECT is((SELECT count(*) FROM memvec.recall_memory('recall_memory-when', 'harbour')), 4::bigint, 'a reader may recall');
SELECT throws_ok(
    $$ SELECT * FROM memvec.add_memory('recall_memory-when', 'memory', 'written by a reader') $$, '42501', NULL, 'but not add'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.append_turn('recall_memory-when', 's', 'user', 'written by a reader') $$, '42501', NULL, 'nor append'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.remove_memory('recall_memory-when', 'memory', 'harbour 1') $$, '42501', NULL, 'nor remove'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.apply_ops('[]') $$, '42501', NULL, 'nor apply operations'
);
SELECT throws_ok($$ SELECT * FROM memvec.store_embeddings(1, '{}', '{}', '{}', '{}') $$, '42501', NULL, 'nor store vectors');
SELECT throws_ok($$ SELECT * FROM memvec.memory_entries $$, '42501', NULL, 'nor look into a table');

SELECT * FROM finish();
ROLLBACK;
