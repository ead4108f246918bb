BEGIN;
SELECT plan(16);

SELECT is(memvec_tests.callers('memvec.text_leg'), '{}', 'internal');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    $$ SELECT * FROM memvec.text_leg('entry', 'words', NULL, 1, 1) $$, '42501', NULL, 'the runtime login may not call it'
);

-- 30 rows hold the rare word and the common one, 70 the common one only, 5 the very rare one.
DO $$
BEGIN
    FOR i IN 1..100 LOOP
        PERFORM memvec.add_memory(
            'text_leg', 'memory',
            format('common row %s %s %s', i, CASE WHEN i <= 30 THEN 'zebra' END, CASE WHEN i > 95 THEN 'okapi' END)
        );
    END LOOP;
END
$$;
RESET SESSION AUTHORIZATION;

CREATE FUNCTION pg_temp.leg(p_query text, p_wanted int = 10)
RETURNS TABLE (id bigint, rank integer, score float8, words_share real, content text)
LANGUAGE sql
AS $$
    SELECT l.*, e.content
    FROM memvec.text_leg(
        'entry', p_query, ROW('text_leg', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter, 200, p_wanted
    ) AS l
    JOIN memvec.memory_entries AS e USING (id)
    ORDER BY l.rank
$$;

-- In a small theme

SELECT is((SELECT count(*) FROM pg_temp.leg('a common zebra')), 100::bigint, 'every word of the question is matched');
SELECT is(
    (SELECT array_agg(l.rank) FROM pg_temp.leg('common') AS l), ARRAY(SELECT generate_series(1, 100)),
    'ranks count from 1 without gaps'
);
SELECT ok(
    (SELECT bool_and(l.content LIKE '%zebra%') FROM pg_temp.leg('a common zebra') AS l WHERE l.rank <= 30),
    'rare words count more'
);
SELECT is((SELECT count(*) FROM pg_temp.leg('what is it')), 0::bigint, 'a question of stop words finds nothing');
SELECT is((SELECT count(*) FROM pg_temp.leg('xylophone')), 0::bigint, 'a word that nobody has finds nothing');

-- In a large one, where the statistics know the words

UPDATE memvec.settings SET value = '50' WHERE name = 'text_all_terms_rows';
UPDATE memvec.settings SET value = '40' WHERE name = 'text_match_rows';
INSERT INTO memvec.theme_counts (kind, agent_identity, target, rows) VALUES ('entry', 'text_leg', 'memory', 100);
INSERT INTO memvec.term_statistics (kind, lexeme, rows) VALUES ('entry', 'common', 100), ('entry', 'zebra', 30);

SELECT results_eq(
    $$ SELECT count(*), count(*) FILTER (WHERE l.content LIKE '%zebra%') FROM pg_temp.leg('a common zebra') AS l $$,
    $$ VALUES (30::bigint, 30::bigint) $$,
    'rows are found by the rarest words'
);
SELECT ok(
    (SELECT bool_and(l.words_share = 1) FROM pg_temp.leg('a common zebra') AS l), 'and scored by all of them'
);
SELECT is(
    (SELECT count(*) FROM pg_temp.leg('the common okapi')), 100::bigint,
    'when the rarest words find too little, every word is matched'
);
SELECT is(
    (SELECT count(*) FROM pg_temp.leg('a common zebra', p_wanted => 50)), 100::bigint, 'or when they find less than is wanted'
);
SELECT is((SELECT count(*) FROM pg_temp.leg('common')), 100::bigint, 'a question always has at least one word left');

-- A common word costs no more beside one that nobody counted: the oldest row says it most and is not looked at.
SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    PERFORM memvec.add_memory('text_leg-cap', 'memory', 'common common common common');
    FOR i IN 1..300 LOOP
        PERFORM memvec.add_memory('text_leg-cap', 'memory', 'common row ' || i);
    END LOOP;
END
$$;
RESET SESSION AUTHORIZATION;
INSERT INTO memvec.theme_counts (kind, agent_identity, target, rows) VALUES ('entry', 'text_leg-cap', 'memory', 301);
UPDATE memvec.term_statistics SET rows = 401 WHERE lexeme = 'common';
SELECT is_empty(
    $$ SELECT q.question, l.rank
       FROM unnest('{common,common xylophone,common xylophone gnu}'::text[]) AS q (question),
           memvec.text_leg(
               'entry', q.question, ROW('text_leg-cap', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter, 200, 10
           ) AS l JOIN memvec.memory_entries AS e USING (id)
       WHERE e.content = 'common common common common' $$,
    'of a common word the newest rows, alone and beside unknown words'
);

-- In a sink, where the statistics know nothing, and whose size is that of everybody in it

SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    FOR i IN 1..30 LOOP
        PERFORM memvec.add_memory(
            'agent:main:telegram:dm:text_leg', 'memory', format('common row %s %s', i, CASE WHEN i <= 2 THEN 'zebra' END)
        );
    END LOOP;
END
$$;
RESET SESSION AUTHORIZATION;
CREATE FUNCTION pg_temp.own_leg(p_rows bigint) RETURNS TABLE (id bigint, rank integer, score float8, content text)
LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM memvec.theme_counts AS t WHERE t.agent_identity = 'whatsapp-dm';
    INSERT INTO memvec.theme_counts (kind, agent_identity, target, rows) VALUES ('entry', 'whatsapp-dm', 'memory', p_rows);
    RETURN QUERY
        SELECT l.id, l.rank, l.score, e.content
        FROM memvec.canonical_identity('agent:main:telegram:dm:text_leg') AS who,
            memvec.text_leg(
                'entry', 'a common zebra',
                ROW('whatsapp-dm', who.person_key, false, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter, 200, 10
            ) AS l
        JOIN memvec.memory_entries AS e USING (id);
END;
$$;
SELECT results_eq(
    $$ SELECT count(*), bool_and(l.content LIKE '%zebra%') FILTER (WHERE l.rank <= 2), count(DISTINCT l.score)
       FROM pg_temp.own_leg(1000000) AS l $$,
    $$ VALUES (30::bigint, true, 2::bigint) $$,
    'every word is matched, and rare ones count more'
);
SELECT ok(
    (SELECT max(l.score) > 3 * min(l.score) FROM pg_temp.own_leg(1000000) AS l), 'by how rare they are in the person''s rows'
);
SELECT set_eq(
    $$ SELECT * FROM pg_temp.own_leg(1000000) $$, $$ SELECT * FROM pg_temp.own_leg(1) $$,
    'no score tells how many rows others have there'
);

SELECT * FROM finish();
ROLLBACK;
