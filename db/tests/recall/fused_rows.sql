BEGIN;
SELECT plan(33);
SELECT memvec_tests.alone();

SELECT is(memvec_tests.callers('memvec.fused_rows'), '{}', 'internal');
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('fused_rows', 8) AS space \gset
SELECT set_config('fused_rows.space', :'space', true);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    $$ SELECT * FROM memvec.fused_rows('entry', 'words', NULL, NULL, NULL, 1, NULL, NULL) $$, '42501', NULL,
    'the runtime login may not call it'
);

-- By the words "renewal period": P, then W. By meaning: V, P, then W; X has neither words nor vector.
DO $$
DECLARE
    v_space int := current_setting('fused_rows.space');
BEGIN
    PERFORM memvec.add_memory('fused_rows', 'memory', 'V paraphrase', p_embedding => memvec_tests.vec(1), p_space => v_space);
    PERFORM memvec.add_memory('fused_rows', 'memory', 'P renewal period', p_embedding => memvec_tests.vec_near(1, 0.7), p_space => v_space);
    PERFORM memvec.add_memory('fused_rows', 'memory', 'W renewal', p_embedding => memvec_tests.vec_near(1, 0.2), p_space => v_space);
    PERFORM memvec.add_memory('fused_rows', 'memory', 'X something else');
END
$$;
RESET SESSION AUTHORIZATION;

CREATE FUNCTION pg_temp.fused(
    p_own text = 'fused_rows',
    p_query text = 'renewal period',
    p_vector public.halfvec = memvec_tests.vec(1),
    p_limit int = 10,
    p_min_similarity real = NULL,
    p_half_life interval = NULL,
    p_others boolean = false,
    p_kind text = 'entry'
) RETURNS TABLE (
    name text, rrf_score float8, vector_rank int, text_rank int, similarity real, words_share real, themes text[], id bigint, place bigint
)
LANGUAGE sql
AS $$
    SELECT left(coalesce(e.content, c.content), 1), f.rrf_score, f.vector_rank, f.text_rank, f.similarity, f.words_share, f.themes, f.id,
           f.place
    FROM memvec.fused_rows(
        p_kind, p_query, p_vector, current_setting('fused_rows.space')::int,
        ROW(p_own, NULL, p_others, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter,
        p_limit, p_min_similarity, p_half_life
    ) WITH ORDINALITY AS f (id, rrf_score, vector_rank, text_rank, similarity, words_share, themes, place)
    LEFT JOIN memvec.memory_entries AS e ON p_kind = 'entry' AND e.id = f.id
    LEFT JOIN memvec.conversations AS c ON p_kind = 'turn' AND c.id = f.id
    ORDER BY f.place
$$;

-- Fusion: score = sum of weight / (k + rank), k = 10

SELECT results_eq(
    $$ SELECT name, vector_rank, text_rank FROM pg_temp.fused() $$,
    $$ VALUES ('P', 2, 1), ('W', 3, 2), ('V', 1, NULL::int) $$,
    'rows of both legs, with their rank in each'
);
SELECT is_empty(
    $$ SELECT name, rrf_score FROM pg_temp.fused()
       WHERE abs(rrf_score - (coalesce(1.0 / (10 + vector_rank), 0) + coalesce(1.0 / (10 + text_rank), 0))) > 1e-12 $$,
    'the score is 1 / (10 + rank), summed over the legs'
);
SELECT results_eq(
    $$ SELECT name, round(similarity::numeric, 1), words_share FROM pg_temp.fused() $$,
    $$ VALUES ('P', 0.7, 1::real), ('W', 0.2, 0.5::real), ('V', 1.0, NULL::real) $$,
    'similarity and the share of the question''s words come with each row'
);
SELECT results_eq(
    $$ SELECT name, similarity, vector_rank FROM pg_temp.fused(p_vector => NULL) $$,
    $$ VALUES ('P', NULL::real, NULL::int), ('W', NULL, NULL) $$,
    'without a vector: words only'
);
SELECT results_eq(
    $$ SELECT name, text_rank FROM pg_temp.fused(p_query => NULL) $$,
    $$ VALUES ('V', NULL::int), ('P', NULL), ('W', NULL) $$,
    'without a question: meaning only, in plain vector order'
);
SELECT results_eq(
    $$ SELECT name FROM pg_temp.fused(p_query => 'zzzz qqqq') $$, $$ VALUES ('V'), ('P'), ('W') $$,
    'words that nobody has leave the vector order'
);
SELECT is((SELECT count(*) FROM pg_temp.fused(p_query => ' ', p_vector => NULL)), 0::bigint, 'with neither, nothing');
SELECT results_eq(
    $$ SELECT name, vector_rank, text_rank FROM pg_temp.fused(p_min_similarity => 0.5) $$,
    $$ VALUES ('P', 2, 1), ('V', 1, NULL::int), ('W', NULL, 2) $$,
    'a floor of similarity takes rows from the vector leg only'
);
SELECT is((SELECT array_agg(name ORDER BY place) FROM pg_temp.fused(p_limit => 2)), '{P,W}', 'no more than p_limit rows');

SELECT is_empty(
    $$ SELECT f.name, f.similarity FROM pg_temp.fused() AS f
       WHERE NOT EXISTS (SELECT FROM pg_temp.fused(p_min_similarity => f.similarity) AS g WHERE g.name = f.name AND g.vector_rank = f.vector_rank) $$,
    'a row is as near as its similarity says'
);
SELECT is(
    (SELECT array_agg(f.name || coalesce(f.vector_rank, 0) || coalesce(f.text_rank, 0) ORDER BY f.place)
     FROM memvec.fused_rows('entry', 'renewal period', memvec_tests.vec(1), current_setting('fused_rows.space')::int,
                            ROW('fused_rows', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter, 1, NULL, NULL, 3)
          WITH ORDINALITY AS r (id, rrf_score, vector_rank, text_rank, similarity, words_share, themes, place)
     JOIN pg_temp.fused() AS f USING (id)),
    '{P21,W32,V10}', 'p_rows shows more than the limit'
);

UPDATE memvec.settings SET value = '0' WHERE name = 'rrf_k';
UPDATE memvec.settings SET value = '5' WHERE name = 'rrf_weight_vector';
SELECT results_eq(
    $$ SELECT name, rrf_score FROM pg_temp.fused() $$,
    $$ VALUES ('V', 5.0::float8), ('P', 3.5::float8), ('W', 5 / 3.0::float8 + 0.5) $$,
    'constant and weights come from the settings'
);
UPDATE memvec.settings SET value = '10' WHERE name = 'rrf_k';
UPDATE memvec.settings SET value = '1' WHERE name = 'rrf_weight_vector';

-- Ties: T has words only and U a vector only, so both have rank 1 in one leg.

SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    PERFORM memvec.add_memory('fused_rows-tie', 'memory', 'T renewal');
    PERFORM memvec.add_memory('fused_rows-tie', 'memory', 'U', p_embedding => memvec_tests.vec(1), p_space => current_setting('fused_rows.space')::int);
END
$$;
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT name, rrf_score FROM pg_temp.fused('fused_rows-tie') $$, $$ VALUES ('U', 1 / 11.0::float8), ('T', 1 / 11.0::float8) $$,
    'of two rows with equal score and date the newer id comes first'
);
UPDATE memvec.memory_entries SET updated_at = now() - interval '1 day' WHERE agent_identity = 'fused_rows-tie' AND content = 'U';
SELECT results_eq(
    $$ SELECT name FROM pg_temp.fused('fused_rows-tie') $$, $$ VALUES ('T'), ('U') $$, 'of two with equal score the younger one'
);
SELECT is(
    (SELECT count(DISTINCT s.names) FROM generate_series(1, 20), LATERAL (SELECT string_agg(name || id, '' ORDER BY place) AS names FROM pg_temp.fused()) AS s),
    1::bigint, 'the same question gives the same list'
);

-- Equal vectors: the younger first, whatever its id, and each as near as the other.

SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    FOR i IN 1..3 LOOP
        PERFORM memvec.add_memory('fused_rows-equal', 'memory', i || ' of the same direction', p_embedding => memvec_tests.vec(5),
                                  p_space => current_setting('fused_rows.space')::int);
        PERFORM memvec.append_turn('fused_rows-equal', 's', 'user', i || ' said in the same direction',
                                   p_ts => now() - i * interval '1 day', p_embedding => memvec_tests.vec(5),
                                   p_space => current_setting('fused_rows.space')::int);
    END LOOP;
END
$$;
RESET SESSION AUTHORIZATION;
UPDATE memvec.memory_entries SET updated_at = now() + interval '1 day' WHERE agent_identity = 'fused_rows-equal' AND content LIKE '2%';
SELECT results_eq(
    $$ SELECT name, vector_rank FROM pg_temp.fused('fused_rows-equal', NULL, memvec_tests.vec(5)) $$,
    $$ VALUES ('2', 1), ('3', 1), ('1', 1) $$, 'of entries at the same distance the younger, then the newer id'
);
SELECT results_eq(
    $$ SELECT name FROM pg_temp.fused('fused_rows-equal', NULL, memvec_tests.vec(5), p_kind => 'turn') $$,
    $$ VALUES ('1'), ('2'), ('3') $$, 'of turns too'
);
SELECT results_eq(
    $$ SELECT name FROM pg_temp.fused('fused_rows-equal', 'same direction', NULL) $$,
    $$ VALUES ('2'), ('3'), ('1') $$, 'and of rows that the words like as much'
);

-- Half-life

SELECT is_empty(
    $$ SELECT name, rrf_score FROM pg_temp.fused('fused_rows-tie', p_half_life => '1 day')
       WHERE abs(rrf_score - CASE name WHEN 'T' THEN 1 ELSE 0.5 END / 11.0) > 1e-12 $$,
    'a row as old as the half-life counts half'
);
SELECT is_empty(
    $$ SELECT h.half_life, f.name FROM unnest('{0,-1 day}'::interval[]) AS h (half_life),
           LATERAL pg_temp.fused('fused_rows-tie', p_half_life => h.half_life) AS f
       WHERE abs(f.rrf_score - 1 / 11.0) > 1e-12 $$,
    'a half-life of zero or less changes nothing'
);
UPDATE memvec.memory_entries SET updated_at = now() + interval '1 year' WHERE agent_identity = 'fused_rows-tie' AND content = 'U';
SELECT is(
    (SELECT max(rrf_score) FROM pg_temp.fused('fused_rows-tie', p_half_life => '1 day')), 1 / 11.0::float8,
    'a row of the future counts as one of today'
);
UPDATE memvec.memory_entries SET updated_at = '1990-01-01' WHERE agent_identity = 'fused_rows-tie';
SELECT is(
    (SELECT bool_and(rrf_score > 0 AND rrf_score < 1e-100) FROM pg_temp.fused('fused_rows-tie', p_half_life => '1 s')), true,
    'a very old row still has a score'
);

-- The same text in several themes

SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    FOR i IN 1..30 LOOP
        PERFORM memvec.add_memory('fused_rows-copy-' || i, 'memory', 'C quagga quagga', p_embedding => memvec_tests.vec(3),
                                  p_space => current_setting('fused_rows.space')::int);
    END LOOP;
    FOR i IN 1..4 LOOP
        PERFORM memvec.add_memory('fused_rows-copy-1', 'memory', i || ' quagga and much more of other things', 
                                  p_embedding => memvec_tests.vec_near(3, 0.5), p_space => current_setting('fused_rows.space')::int);
    END LOOP;
    PERFORM memvec.add_memory('agent:main:telegram:dm:fused_rows', 'memory', 'C quagga quagga');
    FOR i IN 1..30 LOOP
        PERFORM memvec.append_turn('fused_rows-copy-1', 's' || i, 'user', 'C quagga quagga');
    END LOOP;
    FOR i IN 1..4 LOOP
        PERFORM memvec.append_turn('fused_rows-copy-1', 's', 'user', i || ' quagga and much more of other things');
    END LOOP;
END
$$;
RESET SESSION AUTHORIZATION;

SELECT results_eq(
    $$ SELECT name, themes FROM pg_temp.fused('fused_rows', 'quagga', NULL, 1, p_others => true) $$,
    $$ VALUES ('C', (SELECT array_agg('fused_rows-copy-' || i ORDER BY 'fused_rows-copy-' || i) FROM generate_series(1, 30) AS i)) $$,
    'is one row that names all themes with it, but no sink'
);
UPDATE memvec.settings SET value = '10' WHERE name = 'rrf_depth';
SELECT is(
    (SELECT cardinality(themes) FROM pg_temp.fused('fused_rows', 'quagga', memvec_tests.vec(3), 1, p_others => true)), 30,
    'also themes whose row no leg handed over'
);
SELECT is(
    (SELECT count(*) FROM pg_temp.fused('fused_rows', 'quagga', NULL, 5, p_others => true)), 5::bigint,
    'copies that fill the words leg do not hide other texts'
);
SELECT is(
    (SELECT count(*) FROM pg_temp.fused('fused_rows', NULL, memvec_tests.vec(3), 5, p_others => true)), 5::bigint,
    'nor those that fill the vector leg'
);
SELECT is(
    (SELECT count(*) FROM pg_temp.fused('fused_rows-copy-1', 'quagga', NULL, 5, p_kind => 'turn')), 5::bigint,
    'nor a turn that was said in many sessions of one theme'
);

-- Where the rarest word brings nothing but copies, as many as the words leg looks for, other words bring the rest.

UPDATE memvec.settings SET value = '200' WHERE name = 'rrf_depth';
UPDATE memvec.settings SET value = '10' WHERE name = 'text_all_terms_rows';
INSERT INTO memvec.theme_counts (kind, agent_identity, rows) VALUES ('turn', 'fused_rows-rare', 100000);
INSERT INTO memvec.term_statistics (kind, lexeme, rows) VALUES ('turn', 'okapi', 900), ('turn', 'common', 50000);
SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    FOR i IN 1..30 LOOP
        PERFORM memvec.append_turn('fused_rows-rare', 's' || i, 'user', 'O okapi');
    END LOOP;
    FOR i IN 1..30 LOOP
        PERFORM memvec.append_turn('fused_rows-rare', 's', 'user', 'K common thing ' || i);
    END LOOP;
END
$$;
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT name, count(*) FROM pg_temp.fused('fused_rows-rare', 'common okapi', NULL, p_kind => 'turn') GROUP BY name ORDER BY name $$,
    $$ VALUES ('K', 9::bigint), ('O', 1) $$, 'copies of the rarest word do not hide what the others find'
);

-- Equal scores, added up in another order

SELECT results_eq(
    $$ SELECT s.id FROM memvec.score_matches(
           '{1,2}', ARRAY['a1 a2 a3', 'b1 b2 b3']::tsvector[], ARRAY[now() - interval '1 day', now()],
           '{a1,a2,a3,b1,b2,b3}'::tsquery[], '{0.1,0.2,0.9,0.9,0.2,0.1}', 2, 2
       ) AS s $$,
    $$ VALUES (2::bigint), (1) $$, 'the last digit of a sum is no reason to put the older row first'
);

-- More rows than the index hands over by itself

SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    FOR i IN 1..150 LOOP
        PERFORM memvec.add_memory('fused_rows-many', 'memory', 'M ' || i, p_embedding => memvec_tests.vec(i),
                                  p_space => current_setting('fused_rows.space')::int);
    END LOOP;
END
$$;
RESET SESSION AUTHORIZATION;
UPDATE memvec.settings SET value = '20' WHERE name = 'exact_rows';
UPDATE memvec.settings SET value = '10' WHERE name = 'hnsw_candidates';
UPDATE memvec.settings SET value = '0' WHERE name = 'hnsw_visit_rows';
SELECT memvec.count_themes();
SELECT is(
    (SELECT count(*) FROM pg_temp.fused('fused_rows', NULL, memvec_tests.vec(3), 5, p_others => true)), 5::bigint,
    'copies that fill what the index hands over do not hide other texts'
);
SELECT is(
    (SELECT count(*) FROM pg_temp.fused('fused_rows-many', NULL, memvec_tests.vec(3), 120)), 120::bigint,
    'a limit above hnsw_candidates returns as many rows'
);

SELECT * FROM finish();
ROLLBACK;
