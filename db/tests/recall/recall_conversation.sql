BEGIN;
SELECT plan(25);
SELECT memvec_tests.alone();

-- Contract

SELECT is(
    pg_get_function_arguments('memvec.recall_conversation'::regproc),
    'p_identity text, p_query text DEFAULT NULL::text, p_embedding halfvec DEFAULT NULL::halfvec, p_space integer DEFAULT NULL::integer, '
    'p_scope text DEFAULT ''own''::text, p_limit integer DEFAULT 10, p_session_id text DEFAULT NULL::text, '
    'p_exclude_session text DEFAULT NULL::text, p_since timestamp with time zone DEFAULT NULL::timestamp with time zone, '
    'p_until timestamp with time zone DEFAULT NULL::timestamp with time zone, p_min_similarity real DEFAULT NULL::real, '
    'p_half_life interval DEFAULT NULL::interval, p_governance jsonb DEFAULT NULL::jsonb',
    'takes these arguments'
);
SELECT is(
    pg_get_function_result('memvec.recall_conversation'::regproc),
    'TABLE(id bigint, agent_identity text, session_id text, role text, content text, ts timestamp with time zone, metadata jsonb, '
    'score real, rrf_score double precision, vector_rank integer, text_rank integer, themes text[])',
    'returns these columns'
);
SELECT volatility_is('memvec', 'recall_conversation', 'stable', 'is stable');
SELECT is_definer('memvec', 'recall_conversation', 'runs as its owner');
SELECT is(
    memvec_tests.callers('memvec.recall_conversation'), '{hermes,tap_admin,tap_reader}', 'runtime, reader and admin may call it'
);

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('recall_conversation', 16) AS space \gset
RESET SESSION AUTHORIZATION;
SELECT set_config('recall_conversation.space', :'space', true);
SELECT memvec_tests.act_as('tap_embedder');
SELECT throws_ok($$ SELECT * FROM memvec.recall_conversation('a') $$, '42501', NULL, 'an embedder is refused');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');

-- Turn i of 12: session s1 (1 to 4), s2 (5 to 8), s3 (9 to 12); user and assistant in turn; one an hour.
DO $$
BEGIN
    FOR i IN 1..12 LOOP
        PERFORM memvec.append_turn(
            'recall_conversation', 's' || (i + 3) / 4, CASE i % 2 WHEN 1 THEN 'user' ELSE 'assistant' END,
            'the harbour tide ' || to_char(i, 'FM00'), p_ts => '2026-01-01Z'::timestamptz + i * interval '1 hour',
            p_metadata => jsonb_build_object('n', i),
            p_embedding => memvec_tests.vec(i, 16), p_space => current_setting('recall_conversation.space')::int
        );
    END LOOP;
    PERFORM memvec.append_turn('recall_conversation', 's4', 'user', 'what did the certificate cost?', p_ts => '2026-02-01Z');
    PERFORM memvec.append_turn('recall_conversation', 's5', 'user', 'what did the certificate cost?', p_ts => '2026-02-02Z');
    PERFORM memvec.append_turn('recall_conversation-other', 's1', 'user', 'the harbour tide 01');
    PERFORM memvec.append_turn('recall_conversation-other', 's1', 'user', 'another harbour');
END
$$;

SELECT results_eq(
    $$ SELECT agent_identity, session_id, role, content, ts, metadata, score, vector_rank, text_rank, themes
       FROM memvec.recall_conversation('recall_conversation', 'tide 07', p_limit => 1) $$,
    $$ VALUES ('recall_conversation', 's2', 'user', 'the harbour tide 07', '2026-01-01 07:00Z'::timestamptz, '{"n": 7}'::jsonb,
               NULL::real, NULL::int, 1, '{recall_conversation}'::text[]) $$,
    'every column tells what it should'
);
SELECT results_eq(
    $$ SELECT content, vector_rank, round(score::numeric, 2) FROM memvec.recall_conversation(
           'recall_conversation', NULL, memvec_tests.vec(7, 16), current_setting('recall_conversation.space')::int, p_limit => 1) $$,
    $$ VALUES ('the harbour tide 07', 1, 1.00) $$,
    'a turn is found by its meaning'
);
SELECT results_eq(
    $$ SELECT session_id FROM memvec.recall_conversation('recall_conversation', 'certificate') $$, $$ VALUES ('s5') $$,
    'the same words in two sessions are one row, the younger'
);

-- Filters: each holds in the words leg, in the vector leg and in both

CREATE FUNCTION pg_temp.tides(
    p_query text, p_vector public.halfvec, p_scope text, p_session text, p_exclude text, p_since timestamptz, p_until timestamptz
) RETURNS text
LANGUAGE sql
AS $$
    SELECT string_agg(right(r.content, 2), ' ' ORDER BY right(r.content, 2))
    FROM memvec.recall_conversation(
        'recall_conversation', p_query, p_vector, current_setting('recall_conversation.space')::int, p_scope => p_scope,
        p_limit => 50, p_session_id => p_session, p_exclude_session => p_exclude, p_since => p_since, p_until => p_until
    ) AS r
    WHERE r.content LIKE 'the harbour tide%'
$$;
SELECT is_empty(
    $$ SELECT f.*, l.query, pg_temp.tides(l.query, l.vector, f.scope, f.session, f.exclude, f.since, f.until)
       FROM (VALUES
           ('own', NULL, NULL, NULL::timestamptz, NULL::timestamptz, '01 02 03 04 05 06 07 08 09 10 11 12'),
           ('own', 's2', NULL, NULL, NULL, '05 06 07 08'),
           ('session', 's2', NULL, NULL, NULL, '05 06 07 08'),
           ('session', ' s2 ', NULL, NULL, NULL, '05 06 07 08'),
           ('own', 'no such session', NULL, NULL, NULL, NULL),
           ('own', NULL, 's2', NULL, NULL, '01 02 03 04 09 10 11 12'),
           ('own', NULL, ' ', NULL, NULL, '01 02 03 04 05 06 07 08 09 10 11 12'),
           ('own', 's2', 's2', NULL, NULL, NULL),
           ('own', NULL, NULL, '2026-01-01 10:00Z', NULL, '10 11 12'),
           ('own', NULL, NULL, NULL, '2026-01-01 03:00Z', '01 02'),
           ('own', NULL, NULL, '2026-01-01 03:00Z', '2026-01-01 05:00Z', '03 04'),
           ('own', 's1', NULL, '2026-01-01 03:00Z', '2026-01-01 06:00Z', '03 04')
       ) AS f (scope, session, exclude, since, until, expected)
       CROSS JOIN (VALUES ('harbour', NULL), (NULL, memvec_tests.vec(99, 16)), ('harbour', memvec_tests.vec(99, 16))) AS l (query, vector)
       WHERE pg_temp.tides(l.query, l.vector, f.scope, f.session, f.exclude, f.since, f.until) IS DISTINCT FROM f.expected $$,
    'session, excluded session and times (since is inclusive, until is not) hold in each leg'
);

-- Scopes

SELECT throws_ok(
    $$ SELECT * FROM memvec.recall_conversation('recall_conversation', 'harbour', p_scope => 'session') $$, 'MV001', NULL,
    'scope session needs a session'
);
SELECT is(
    (SELECT count(*) FROM memvec.recall_conversation('recall_conversation-other', 'harbour', p_scope => 'session', p_session_id => 's1')),
    2::bigint, 'a session of the same name in another theme is another one'
);
SELECT results_eq(
    $$ SELECT s.scope, (SELECT count(*) FROM memvec.recall_conversation('recall_conversation', 'harbour', p_scope => s.scope, p_limit => 50))
       FROM unnest(ARRAY['own', 'current', '', NULL, 'Recall_Conversation-other', '%', '*', 'recall_conversation-unknown', 'all'])
           WITH ORDINALITY AS s (scope, place) ORDER BY s.place $$,
    $$ VALUES ('own', 12::bigint), ('current', 12), ('', 12), (NULL, 12), ('Recall_Conversation-other', 2), ('%', 0), ('*', 0),
              ('recall_conversation-unknown', 0), ('all', 13) $$,
    'own turns, those of a named theme, or all with each text once'
);
SELECT is(
    (SELECT themes FROM memvec.recall_conversation('recall_conversation', 'tide 01', p_scope => 'all', p_limit => 1)),
    '{recall_conversation,recall_conversation-other}', 'themes names all that hold the text'
);

-- Limits, order, hostile questions

SELECT results_eq(
    $$ SELECT l.wanted, (SELECT count(*) FROM memvec.recall_conversation('recall_conversation', 'harbour', p_limit => l.wanted))
       FROM unnest(ARRAY[-1, 0, 3, 2147483647, NULL]) WITH ORDINALITY AS l (wanted, place) ORDER BY l.place $$,
    $$ VALUES (-1, 1::bigint), (0, 1), (3, 3), (2147483647, 12), (NULL, 10) $$,
    'a limit is clamped to 1 to 1000; NULL is the default'
);
RESET SESSION AUTHORIZATION;
UPDATE memvec.settings SET value = '0' WHERE name = 'turn_neighbours';  -- what they add differs
SELECT memvec_tests.act_as('hermes');
SELECT is(
    (SELECT array_agg(right(content, 2)) FROM memvec.recall_conversation('recall_conversation', 'harbour', p_limit => 3)),
    '{12,11,10}', 'equal scores: the younger first'
);
SELECT is(
    (SELECT count(DISTINCT names) FROM generate_series(1, 20) AS i, LATERAL (
         SELECT array_agg(r.id) AS names
         FROM memvec.recall_conversation('recall_conversation', 'harbour tide ' || left(i::text, 0), memvec_tests.vec(99, 16),
                                         current_setting('recall_conversation.space')::int, p_limit => 50) AS r) AS s),
    1::bigint, 'twenty times the same question, twenty times the same order'
);
SELECT is(
    (SELECT right(content, 2) FROM memvec.recall_conversation('recall_conversation', 'harbour', p_half_life => '10 min', p_limit => 1)),
    '12', 'with a half-life the younger comes first'
);
SELECT is_empty(
    $$ SELECT q.question
       FROM unnest(ARRAY['%', '\', '', '   ', 'what is it', U&'\00A0\3000', repeat('a', 3000), NULL, '''; DROP TABLE x; --'])
            AS q (question)
       WHERE EXISTS (SELECT FROM memvec.recall_conversation('recall_conversation', q.question)) $$,
    'a question without words, or with words nobody said, finds nothing'
);
SELECT ok(
    (SELECT bool_and((score IS NULL OR score BETWEEN -1.001 AND 1.001) AND rrf_score > 0 AND rrf_score < 'infinity')
     FROM memvec.recall_conversation('recall_conversation', 'harbour certificate', memvec_tests.vec(99, 16),
                                     current_setting('recall_conversation.space')::int, p_limit => 50)),
    'scores are finite or NULL'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.recall_conversation('recall_conversation', 'harbour', memvec_tests.vec(1, 16), 0) $$, 'MV004', NULL,
    'an unknown space is refused'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.recall_conversation('recall_conversation', 'harbour', memvec_tests.vec(1, 15),
                                                current_setting('recall_conversation.space')::int) $$,
    'MV005', NULL, 'a vector of another width too'
);

-- A turn that is said in a thousand sessions hides no other (each text once, as many as asked for).

DO $$
BEGIN
    FOR i IN 1..300 LOOP
        PERFORM memvec.append_turn('recall_conversation-cron', 'run ' || i, 'user', 'daily report, please: daily report',
                                   p_embedding => memvec_tests.vec(1, 16), p_space => current_setting('recall_conversation.space')::int);
    END LOOP;
    FOR i IN 1..5 LOOP
        PERFORM memvec.append_turn('recall_conversation-cron', 'talk', 'assistant', 'the report says ' || i,
                                   p_embedding => memvec_tests.vec(1 + i, 16), p_space => current_setting('recall_conversation.space')::int);
    END LOOP;
END
$$;
SELECT is(
    (SELECT count(*) FROM memvec.recall_conversation('recall_conversation-cron', 'report', p_limit => 6)), 6::bigint, 'by words'
);
SELECT is(
    (SELECT count(*) FROM memvec.recall_conversation('recall_conversation-cron', NULL, memvec_tests.vec(1, 16),
                                                     current_setting('recall_conversation.space')::int, p_limit => 6)),
    6::bigint, 'by meaning'
);

-- The reader

RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_reader');
SELECT is(
    (SELECT count(*) FROM memvec.recall_conversation('recall_conversation-other', 'harbour')), 2::bigint, 'a reader may recall'
);

SELECT * FROM finish();
ROLLBACK;
