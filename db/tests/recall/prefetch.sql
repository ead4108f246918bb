BEGIN;
SELECT plan(29);
SELECT memvec_tests.alone();

-- Contract

SELECT is(
    pg_get_function_arguments('memvec.prefetch'::regproc),
    'p_identity text, p_query text, p_embedding halfvec DEFAULT NULL::halfvec, p_space integer DEFAULT NULL::integer, '
    'p_limit integer DEFAULT 5, p_min_similarity real DEFAULT NULL::real, p_exclude_session text DEFAULT NULL::text, '
    'p_governance jsonb DEFAULT NULL::jsonb',
    'takes these arguments'
);
SELECT is(
    pg_get_function_result('memvec.prefetch'::regproc),
    'TABLE(kind text, id bigint, agent_identity text, target text, session_id text, role text, content text, '
    'ts timestamp with time zone, score real, rrf_score double precision, vector_rank integer, text_rank integer)',
    'returns these columns'
);
SELECT volatility_is('memvec', 'prefetch', 'stable', 'is stable');
SELECT is_definer('memvec', 'prefetch', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.prefetch'), '{hermes,tap_admin,tap_reader}', 'runtime, reader and admin may call it');

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('prefetch', 16) AS space \gset
SELECT memvec.add_embedding_space('prefetch floor', 16, p_min_similarity => 0.65) AS floored \gset
RESET SESSION AUTHORIZATION;
SELECT set_config('prefetch.space', :'space', true), set_config('prefetch.floored', :'floored', true);
SELECT memvec_tests.act_as('tap_embedder');
SELECT throws_ok($$ SELECT * FROM memvec.prefetch('a', 'b') $$, '42501', NULL, 'an embedder is refused');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');

CREATE FUNCTION pg_temp.told(p_identity text, p_query text, p_session text = NULL) RETURNS text[]
LANGUAGE sql
AS $$
    SELECT coalesce(array_agg(r.content ORDER BY r.place), '{}')
    FROM memvec.prefetch(p_identity, p_query, p_exclude_session => p_session) WITH ORDINALITY
         AS r (kind, id, agent_identity, target, session_id, role, content, ts, score, rrf_score, vector_rank, text_rank, place)
$$;

-- Case R02: a question in plain words

DO $$
BEGIN
    PERFORM memvec.add_memory('prefetch-ops', 'memory', 'The deployment rollback on Friday was caused by an expired TLS certificate.');
    PERFORM memvec.add_memory('prefetch-ops', 'memory', 'Lunch order: two vegetarian, one vegan.');
    PERFORM memvec.add_memory('prefetch-ops', 'memory', 'Route X99: transfer at Central, then walk to the terminal.');
    PERFORM memvec.add_memory('prefetch-t', 'memory', '我们现在的记忆提供商是本地数据库');
    PERFORM memvec.add_memory('prefetch-t', 'memory', '部署方案放在仓库根目录');
END
$$;
SELECT alike(
    (pg_temp.told('prefetch-ops', 'hey, can you tell me again how I get there with my X99 route tomorrow morning?'))[1],
    '%transfer at Central%', 'what the question is about'
);
SELECT is((pg_temp.told('prefetch-t', '我们现在的记忆提供商是什么？'))[1], '我们现在的记忆提供商是本地数据库', 'in Chinese too');

-- Case X07: the model still sees its own session

DO $$
BEGIN
    PERFORM memvec.append_turn('prefetch-bike', 'S', 'user', 'my new bike is a green gravel bike');
    PERFORM memvec.append_turn('prefetch-bike', 'S', 'assistant', 'nice, a green gravel bike');
END
$$;
SELECT is(pg_temp.told('prefetch-bike', 'what colour is my bike', 'S'), '{}', 'turns of the session at hand are left out');
SELECT alike(
    (pg_temp.told('prefetch-bike', 'what colour is my bike', 'S2'))[1], '%gravel%', 'in another session they are told'
);
SELECT alike((pg_temp.told('prefetch-bike', 'what colour is my bike', ' '))[1], '%gravel%', 'a blank session leaves out nothing');

-- Case X15: small talk brings nothing

DO $$
BEGIN
    PERFORM memvec.add_memory('prefetch-tap', 'memory', 'For the kitchen tap we chose model AQ-7 because of the ceramic valve');
    PERFORM memvec.append_turn('prefetch-tap', 'S', 'user', 'we compared kitchen taps yesterday and need a decision');
    PERFORM memvec.append_turn('prefetch-tap', 'S', 'assistant', 'yes, between AQ-7 and BR-2');
END
$$;
SELECT is_empty(
    $$ SELECT q.question FROM unnest(ARRAY['yes', '/skill deploy', 'ok, what do you recommend?', '', ' ', 'what is it', '%', NULL]) AS q (question)
       WHERE pg_temp.told('prefetch-tap', q.question, 'S') <> '{}' $$,
    'a question about nothing brings nothing'
);
SELECT alike(
    (pg_temp.told('prefetch-tap', 'we compared kitchen taps yesterday and need a decision ok, what do you recommend?', 'S'))[1],
    '%AQ-7%', 'together with the turn before it does'
);

-- Relevance: near enough, or enough of the words

DO $$
DECLARE
    v_space int;
BEGIN
    FOREACH v_space IN ARRAY ARRAY[current_setting('prefetch.space')::int, current_setting('prefetch.floored')::int] LOOP
        FOR i IN 1..9 LOOP
            PERFORM memvec.add_memory('prefetch-near', 'memory', 'near ' || i, p_embedding => memvec_tests.vec_near(1, i / 10.0, 16), p_space => v_space);
        END LOOP;
    END LOOP;
    PERFORM memvec.add_memory('prefetch-near', 'memory', 'alpha beta gamma delta epsilon');
    PERFORM memvec.add_memory('prefetch-near', 'memory', 'alpha');
END
$$;
CREATE FUNCTION pg_temp.near(p_space text, p_floor real, p_limit int = 50) RETURNS text
LANGUAGE sql
AS $$
    SELECT string_agg(right(r.content, 1), '' ORDER BY r.vector_rank)
    FROM memvec.prefetch('prefetch-near', 'zzzz', memvec_tests.vec(1, 16), current_setting(p_space)::int, p_limit, p_floor) AS r
$$;
SELECT is(pg_temp.near('prefetch.space', 0.55), '9876', 'p_min_similarity is a floor');
SELECT is(pg_temp.near('prefetch.floored', NULL), '987', 'else the floor of the space');
SELECT is(pg_temp.near('prefetch.floored', 0.35), '987654', 'the caller''s floor wins');
SELECT is(pg_temp.near('prefetch.space', NULL), NULL, 'without any floor nearness alone brings nothing');
SELECT is(pg_temp.near('prefetch.space', 0.55, 2), '98', 'no more than p_limit rows');
SELECT results_eq(
    $$ SELECT q.question, pg_temp.told('prefetch-near', q.question)
       FROM unnest(ARRAY['alpha two three four five', 'alpha two three four five six', 'alpha beta three four five six']) WITH ORDINALITY AS q (question, place)
       ORDER BY q.place $$,
    $$ VALUES ('alpha two three four five', '{alpha,alpha beta gamma delta epsilon}'::text[]), ('alpha two three four five six', '{}'),
              ('alpha beta three four five six', '{alpha beta gamma delta epsilon}') $$,
    'a row found by words alone holds a fifth of them'
);
RESET SESSION AUTHORIZATION;
UPDATE memvec.settings SET value = '0.1' WHERE name = 'prefetch_min_words';
SELECT memvec_tests.act_as('hermes');
SELECT is(
    cardinality(pg_temp.told('prefetch-near', 'alpha two three four five six')), 2, 'or what setting prefetch_min_words says'
);

-- Notes and turns, each text once

DO $$
BEGIN
    PERFORM memvec.add_memory('prefetch-twice', 'memory', 'the quagga is extinct');
    PERFORM memvec.add_memory('prefetch-twice', 'user', 'the quagga is extinct');
    PERFORM memvec.append_turn('prefetch-twice', 's1', 'user', 'the quagga is extinct', p_ts => '2026-01-01Z');
    PERFORM memvec.append_turn('prefetch-twice', 's2', 'user', 'the quagga is extinct', p_ts => '2026-01-02Z');
    PERFORM memvec.append_turn('prefetch-twice', 's2', 'assistant', 'I like the quagga', p_ts => '2026-01-03Z');
    PERFORM memvec.add_memory('prefetch-other', 'memory', 'a quagga of another theme');
END
$$;
SELECT results_eq(
    $$ SELECT kind, agent_identity, target IS NULL, session_id, role, content, score FROM memvec.prefetch('prefetch-twice', 'quagga') ORDER BY content $$,
    $$ VALUES ('turn', 'prefetch-twice', true, 's2', 'assistant', 'I like the quagga', NULL::real),
              ('entry', 'prefetch-twice', false, NULL, NULL, 'the quagga is extinct', NULL) $$,
    'one row for a text, a note before a turn; nothing of other themes'
);
SELECT ok(
    (SELECT bool_and(rrf_score > 0 AND rrf_score < 'infinity') FROM memvec.prefetch('prefetch-twice', 'quagga')), 'with a finite score'
);
SELECT is(
    (SELECT count(DISTINCT ids) FROM generate_series(1, 20) AS i,
         LATERAL (SELECT array_agg(r.kind || r.id) AS ids FROM memvec.prefetch('prefetch-twice', 'quagga' || left(i::text, 0)) AS r) AS s),
    1::bigint, 'the same question gives the same list'
);
SELECT results_eq(
    $$ SELECT l.wanted, (SELECT count(*) FROM memvec.prefetch('prefetch-twice', 'quagga', p_limit => l.wanted))
       FROM unnest(ARRAY[-1, 0, 1, 2147483647, NULL]) WITH ORDINALITY AS l (wanted, place) ORDER BY l.place $$,
    $$ VALUES (-1, 1::bigint), (0, 1), (1, 1), (2147483647, 2), (NULL, 2) $$,
    'a limit is clamped to 1 to 50; NULL is the default'
);
SELECT is(
    (SELECT count(*) FROM memvec.prefetch('prefetch-ops', 'build host ' || (SELECT string_agg('word' || i, ' ') FROM generate_series(1, 20000) AS i))),
    0::bigint, 'a long paste is no error'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.prefetch('prefetch-ops', 'route', memvec_tests.vec(1, 16), 0) $$, 'MV004', NULL, 'an unknown space is refused'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.prefetch('prefetch-ops', 'route', memvec_tests.vec(1, 15), current_setting('prefetch.space')::int) $$,
    'MV005', NULL, 'a vector of another width too'
);
SELECT is(
    (SELECT count(*) FROM memvec.prefetch('prefetch-ops', 'route', '[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]', current_setting('prefetch.space')::int)),
    1::bigint, 'one of length zero is no vector'
);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_reader');
SELECT is((SELECT count(*) FROM memvec.prefetch('prefetch-ops', 'route')), 1::bigint, 'a reader may prefetch');

SELECT * FROM finish();
ROLLBACK;
