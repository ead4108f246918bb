BEGIN;
SELECT plan(12);
SELECT memvec_tests.alone();

SELECT is(memvec_tests.callers('memvec.lifted_turns'), '{}', 'internal');
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('lifted', 8) AS space \gset
SELECT set_config('lifted.space', :'space', true);
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    $$ SELECT * FROM memvec.lifted_turns('{1}', '{1}', 0.3) $$, '42501', NULL, 'the runtime login may not call it'
);
-- Two sessions written at once, turn by turn. In one of them the answer follows the question.
DO $$
DECLARE
    v_space int := current_setting('lifted.space');
BEGIN
    FOR i IN 1..7 LOOP
        PERFORM memvec.append_turn(
            'lifted', 'talk', 'user',
            CASE i WHEN 4 THEN 'Which printer was it, the zebra?' WHEN 5 THEN 'The printer on the second floor.' ELSE 'idle talk ' || i END,
            p_ts => '2026-03-09 10:00Z', p_embedding => memvec_tests.vec(i), p_space => v_space
        );
        PERFORM memvec.append_turn(
            'lifted', 'noise', 'user', CASE i WHEN 2 THEN 'A printer that hums.' ELSE 'other talk ' || i END,
            p_ts => '2026-07-20 10:00Z', p_embedding => memvec_tests.vec(100 + i), p_space => v_space
        );
    END LOOP;
    PERFORM memvec.append_turn('lifted-other', 'talk', 'user', 'The zebra printer of others.', p_ts => '2026-03-09 10:00Z');
END
$$;
RESET SESSION AUTHORIZATION;
CREATE FUNCTION pg_temp.turn(p_content text)
RETURNS bigint
LANGUAGE sql
AS $$ SELECT c.id FROM memvec.conversations AS c WHERE c.content = p_content $$;

-- The rule itself

SELECT results_eq(
    $$ SELECT l.id, l.score
       FROM memvec.lifted_turns(
           ARRAY(SELECT c.id FROM memvec.conversations AS c WHERE c.session_id = 'talk' AND c.agent_identity = 'lifted' ORDER BY c.id),
           '{1,10,100,1000,10000,100000,1000000}', 0.5
       ) AS l
       ORDER BY l.id LIMIT 4 $$,
    $$ SELECT c.id, e.score
       FROM (VALUES ('idle talk 1', 1 + 55::float8), ('idle talk 2', 10 + 550.5), ('idle talk 3', 100 + 5505.5),
                    ('Which printer was it, the zebra?', 1000 + 55055)) AS e (content, score)
       JOIN memvec.conversations AS c USING (content)
       ORDER BY c.id $$,
    'a turn is lifted by the two before and the two after it'
);
SELECT results_eq(
    $$ SELECT l.score FROM memvec.lifted_turns(ARRAY[pg_temp.turn('A printer that hums.'), pg_temp.turn('idle talk 2'),
                                                     pg_temp.turn('The zebra printer of others.')], '{1,1,1}', 0.5) AS l $$,
    $$ VALUES (1::float8), (1), (1) $$,
    'not by turns of other sessions, nor by those of another theme''s session of that name'
);
SELECT results_eq(
    $$ SELECT l.score FROM memvec.lifted_turns(ARRAY[pg_temp.turn('idle talk 1'), pg_temp.turn('idle talk 7')], '{1,1}', 0.5) AS l $$,
    $$ VALUES (1.5::float8), (1.5) $$,
    'turns that were not found stand between no others'
);

-- In the legs

CREATE FUNCTION pg_temp.words(p_query text, p_session text = NULL)
RETURNS text[]
LANGUAGE sql
AS $$
    SELECT array_agg(c.content ORDER BY l.rank)
    FROM memvec.text_leg(
        'turn', p_query, ROW('lifted', NULL, false, NULL, NULL, NULL, p_session, NULL, NULL)::memvec.recall_filter, 200, 10
    ) AS l
    JOIN memvec.conversations AS c USING (id)
$$;
SELECT is(
    pg_temp.words('zebra printer'),
    '{"Which printer was it, the zebra?",The printer on the second floor.,A printer that hums.}',
    'by words: the reply to the question comes before what only holds the same word'
);
SELECT is(
    pg_temp.words('zebra printer', 'talk'), '{A printer that hums.}', 'a turn that the filter removed neither comes nor lifts'
);
CREATE FUNCTION pg_temp.meaning()
RETURNS TABLE (content text, rank integer, distance float8)
LANGUAGE sql
AS $$
    SELECT c.content, l.rank, l.distance
    FROM memvec.vector_leg(
        'turn', current_setting('lifted.space')::int, memvec_tests.vec(4),
        ROW('lifted', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter, 200, 10
    ) AS l
    JOIN memvec.conversations AS c USING (id)
$$;
SELECT is((SELECT m.content FROM pg_temp.meaning() AS m WHERE m.rank = 1), 'Which printer was it, the zebra?', 'by meaning: the nearest is still the first');
CREATE TEMP TABLE before AS SELECT * FROM pg_temp.meaning();
UPDATE memvec.settings SET value = '0' WHERE name = 'turn_neighbours';
SELECT ok(
    (SELECT bool_or(b.rank < m.rank) FROM before AS b JOIN pg_temp.meaning() AS m USING (content) WHERE content LIKE 'idle talk%'),
    'and its neighbours are lifted'
);
SELECT ok(
    (SELECT bool_and(b.distance = m.distance) FROM before AS b JOIN pg_temp.meaning() AS m USING (content)), 'distances are as they are'
);
SELECT ok(
    (SELECT bool_and(m.rank = n.rank)
     FROM pg_temp.meaning() AS m
     JOIN (SELECT o.content, rank() OVER (ORDER BY o.distance) AS rank FROM pg_temp.meaning() AS o) AS n USING (content)),
    'turn_neighbours 0: each turn for itself, by meaning'
);
SELECT is(
    (pg_temp.words('printer'))[1], 'A printer that hums.', 'and by words, where the younger of equals is the first'
);

SELECT * FROM finish();
ROLLBACK;
