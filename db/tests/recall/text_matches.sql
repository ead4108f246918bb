BEGIN;
SELECT plan(19);

SELECT is(memvec_tests.callers('memvec.text_matches'), '{}', 'internal');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    $$ SELECT * FROM memvec.text_matches('entry', NULL, NULL, 1, 1, 1) $$, '42501', NULL,
    'the runtime login may not call it'
);
DO $$
BEGIN
    PERFORM memvec.add_memory('text_matches', 'memory', 'deployment of the certificate');
    PERFORM memvec.add_memory('text_matches', 'memory', 'deployment, deployment, deployment');
    PERFORM memvec.add_memory('text_matches', 'user', 'deployment only');
    PERFORM memvec.add_memory('text_matches', 'memory', 'a certificate');
    PERFORM memvec.add_memory('text_matches', 'memory', 'nothing of the kind');
    PERFORM memvec.add_memory('text_matches-other', 'memory', 'deployment elsewhere');
    PERFORM memvec.append_turn('text_matches', 's1', 'user', 'deployment in s1');
    PERFORM memvec.append_turn('text_matches', 's2', 'user', 'deployment in s2');
END
$$;
RESET SESSION AUTHORIZATION;

CREATE FUNCTION pg_temp.matches(
    p_kind text,
    p_words text[],
    p_target text = NULL,
    p_session text = NULL,
    p_exclude text = NULL,
    p_since timestamptz = NULL,
    p_until timestamptz = NULL,
    p_rarity float8[] = NULL,
    p_rows bigint = 5,
    p_depth int = 100,
    p_most bigint = NULL,
    p_expected bigint = NULL
) RETURNS TABLE (id bigint, score float8, words_share real, place bigint)
LANGUAGE sql
AS $$
    SELECT s.id, s.score, s.words_share, s.place
    FROM memvec.text_matches(
        p_kind,
        ROW('text_matches', NULL, false, NULL, p_target, p_session, p_exclude, p_since, p_until)::memvec.recall_filter,
        (SELECT string_agg(memvec.term_query(w)::text, ' | ')::tsquery FROM unnest(p_words) AS w),
        p_most, p_expected, 5
    ) AS m,
    LATERAL memvec.score_matches(
        m.ids, m.vectors, m.seen,
        ARRAY(SELECT memvec.term_query(w.word) FROM unnest(p_words) WITH ORDINALITY AS w (word, position) ORDER BY w.position),
        p_rarity, p_rows, p_depth
    ) WITH ORDINALITY AS s (id, score, words_share, place)
$$;

SELECT results_eq(
    $$ SELECT e.content, m.words_share
       FROM pg_temp.matches('entry', '{deploy,certif}') AS m JOIN memvec.memory_entries AS e USING (id)
       ORDER BY m.place $$,
    $$ VALUES ('deployment of the certificate', 1::real), ('a certificate', 0.5::real),
              ('deployment, deployment, deployment', 0.5::real), ('deployment only', 0.5::real) $$,
    'rows with any word: both words first, then the rarer one, then the more frequent use'
);

CREATE FUNCTION pg_temp.plan_of(p_table text) RETURNS SETOF text
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'EXPLAIN SELECT FROM memvec.%I AS r WHERE memvec.owned_search(r.search, r.agent_identity, r.person_key) @@ ''deploy''', p_table
    );
END;
$$;

-- As text_newest_own asks, which EXPLAIN does not look into.
CREATE FUNCTION pg_temp.newest_plan() RETURNS SETOF text
LANGUAGE plpgsql
AS $$
DECLARE
    v_asked text;
BEGIN
    SELECT replace(replace(replace(replace(replace(
               substring(p.prosrc FROM 'FROM \(SELECT m\.id.*?LIMIT p_most'),
               'p_filter.own', quote_literal('text_matches')), 'p_filter.target', 'NULL::text'), 'p_filter.since', 'NULL::timestamptz'),
               'p_filter.until', 'NULL::timestamptz'), 'p_match', '''deploy''::tsquery')
      INTO v_asked
      FROM pg_proc AS p WHERE p.oid = 'memvec.text_newest_own'::regproc;
    SET LOCAL enable_seqscan = off;
    SET LOCAL enable_bitmapscan = off;
    RETURN QUERY EXECUTE 'EXPLAIN (COSTS off) SELECT ' || replace(replace(v_asked, 'p_look', '1000'), 'p_most', '5') || ') AS r';
    SET LOCAL enable_seqscan = on;
    SET LOCAL enable_bitmapscan = on;
END;
$$;

-- idf = ln(1 + (N - n + 0.5) / (n + 0.5)): with N = 5, "deploy" is in 3 rows and "certif" in 2.
SELECT is_empty(
    $$ SELECT e.content, m.score, w.expected
       FROM pg_temp.matches('entry', '{deploy,certif}') AS m
       JOIN memvec.memory_entries AS e USING (id)
       CROSS JOIN LATERAL (
           SELECT ln(1 + (5 - 3 + 0.5) / (3 + 0.5)) * ts_rank(e.search, 'deploy')
               + ln(1 + (5 - 2 + 0.5) / (2 + 0.5)) * ts_rank(e.search, 'certif') AS expected
       ) AS w
       WHERE abs(m.score - w.expected) > 1e-9 $$,
    'the score is the sum of idf times ts_rank, with the idf of the matching rows'
);
SELECT is_empty(
    $$ SELECT e.content, m.score
       FROM pg_temp.matches('entry', '{deploy,certif}', p_rarity => '{2,3}') AS m
       JOIN memvec.memory_entries AS e USING (id)
       WHERE abs(m.score - 2 * ts_rank(e.search, 'deploy') - 3 * ts_rank(e.search, 'certif')) > 1e-6 $$,
    'an idf that the caller gives is used instead'
);
SELECT ok(
    (SELECT bool_and(m.score > 0 AND m.score < 'infinity') FROM pg_temp.matches('entry', '{deploy}', p_rows => 0) AS m),
    'an estimate below the matching rows never makes a score negative'
);

-- Filters

SELECT is((SELECT count(*) FROM pg_temp.matches('entry', '{deploy}', p_target => 'user')), 1::bigint, 'one target');
SELECT results_eq(
    $$ SELECT (SELECT array_agg(c.session_id) FROM pg_temp.matches('turn', '{deploy}', p_session => 's1') AS m
               JOIN memvec.conversations AS c USING (id)),
              (SELECT array_agg(c.session_id) FROM pg_temp.matches('turn', '{deploy}', p_exclude => 's1') AS m
               JOIN memvec.conversations AS c USING (id)) $$,
    $$ VALUES ('{s1}'::text[], '{s2}'::text[]) $$,
    'one session, all but one session'
);
SELECT results_eq(
    $$ SELECT (SELECT count(*) FROM pg_temp.matches(k, '{deploy}', p_since => now(), p_until => now() + interval '1 us')),
              (SELECT count(*) FROM pg_temp.matches(k, '{deploy}', p_since => now() + interval '1 us')),
              (SELECT count(*) FROM pg_temp.matches(k, '{deploy}', p_until => now()))
       FROM unnest('{entry,turn}'::text[]) AS k $$,
    $$ VALUES (3::bigint, 0::bigint, 0::bigint), (2, 0, 0) $$,
    'since is inclusive, until is not'
);
SELECT results_eq(
    $$ SELECT e.content FROM pg_temp.matches('entry', '{deploy}', p_most => 2) AS m
       JOIN memvec.memory_entries AS e USING (id) ORDER BY e.id $$,
    $$ VALUES ('deployment, deployment, deployment'), ('deployment only') $$,
    'of more rows than p_most the newest'
);
SELECT is((SELECT count(*) FROM pg_temp.matches('entry', '{deploy}', p_depth => 2)), 2::bigint, 'no more than p_depth rows');

-- The newest rows of all: the same answer whatever is expected, and wherever they lie

SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    FOR i IN 1..40 LOOP
        PERFORM memvec.add_memory('text_matches-other', 'memory', 'younger text ' || i);
        PERFORM memvec.append_turn('text_matches-other', 's1', 'user', 'younger text ' || i);
    END LOOP;
END
$$;
RESET SESSION AUTHORIZATION;
SELECT is_empty(
    $$ SELECT k.kind, f.themes, e.expected, n.most, d.since, d.until, d.target, d.exclude
       FROM unnest('{entry,turn}'::text[]) AS k (kind),
           unnest('{1,2,3,20,100}'::bigint[]) AS n (most),
           unnest('{1,2,5,40,1000000}'::bigint[]) AS e (expected),
           (VALUES (false, NULL::text[]), (true, NULL), (true, '{text_matches-other}')) AS f (others, themes),
           (VALUES (NULL::timestamptz, NULL::timestamptz, NULL, NULL), (now(), NULL, NULL, NULL), (NULL, now() + interval '1 s', NULL, NULL),
                   (NULL, now(), NULL, NULL), (now() + interval '1 s', NULL, NULL, NULL), (NULL, NULL, 'memory', NULL), (NULL, NULL, 'user', NULL),
                   (NULL, NULL, NULL, 's1')) AS d (since, until, target, exclude),
           LATERAL (SELECT ROW('text_matches', NULL, f.others, f.themes, d.target, NULL, d.exclude, d.since, d.until)::memvec.recall_filter
                    AS filter) AS r,
           LATERAL memvec.text_matches(k.kind, r.filter, 'deploy', n.most, NULL, NULL) AS a,
           LATERAL memvec.text_matches(k.kind, r.filter, 'deploy', n.most, e.expected, 100) AS b
       WHERE (a.ids, a.vectors, a.seen) IS DISTINCT FROM (b.ids, b.vectors, b.seen) $$,
    'what is expected changes no answer'
);
-- A text that is there already takes an id.
SELECT memvec_tests.act_as('hermes');
SELECT count(memvec.add_memory('text_matches-other', 'memory', 'younger text 1')) AS gaps FROM generate_series(1, 50) \gset
SELECT memvec.add_memory('text_matches-gap', 'memory', 'youngest') AS youngest \gset
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT cardinality(n.ids)
       FROM (VALUES (1, 'text', 11), (2, 'text', 41), (3, 'deploy', 41), (4, 'deploy', 42)) AS l (at, word, rows),
       LATERAL memvec.text_newest(
           'entry', ROW('text_matches-other', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter, l.word::tsquery, 20,
           l.rows + (SELECT count(*) FROM memvec.memory_entries AS m
                      WHERE m.id > (SELECT max(o.id) FROM memvec.memory_entries AS o WHERE o.agent_identity = 'text_matches-other')
                        AND m.agent_identity <> 'text_matches-gap')
       ) AS n ORDER BY l.at $$,
    $$ VALUES (10), (20), (NULL), (1) $$,
    'it looks back as many rows as it is told, whatever ids were never rows'
);
SELECT results_eq(
    $$ SELECT n.ids FROM memvec.text_newest(
           'turn', ROW('text_matches-other', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter, 'text', 3, 1000
       ) AS n $$,
    $$ SELECT array_agg(c.id) FROM (SELECT id FROM memvec.conversations ORDER BY id DESC LIMIT 3) AS c $$,
    'the newest first'
);
SELECT is(
    (SELECT n.ids FROM memvec.text_newest(
        'entry', ROW('text_matches', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter, 'text', 20, 1000000000
    ) AS n), NULL, 'and nothing of other themes'
);
SELECT results_eq(
    $$ SELECT k.kind, l.rows, cardinality(n.ids), n.ids[1] = max(r.id)
       FROM unnest('{entry,turn}'::text[]) AS k (kind),
           unnest('{1,5,1000}'::bigint[]) AS l (rows),
           LATERAL memvec.text_newest_own(
               k.kind, ROW('text_matches', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter, 'deploy | noth | kind', 20, l.rows
           ) AS n,
           LATERAL (SELECT m.id FROM memvec.memory_entries AS m WHERE k.kind = 'entry' AND m.id = ANY (n.ids)
                    UNION ALL
                    SELECT c.id FROM memvec.conversations AS c WHERE k.kind = 'turn' AND c.id = ANY (n.ids)) AS r
       GROUP BY k.kind, l.rows, n.ids ORDER BY k.kind, l.rows $$,
    $$ VALUES ('entry'::text, 1::bigint, 1, true), ('entry', 5, 4, true), ('entry', 1000, 4, true),
              ('turn', 1, 1, true), ('turn', 5, 2, true), ('turn', 1000, 2, true) $$,
    'a theme''s own newest rows, whoever else has written since'
);
SELECT results_eq(
    $$ SELECT substring(p.line FROM 'Sort|Index Scan Backward using \w+') FROM pg_temp.newest_plan() AS p (line)
       WHERE p.line ~ 'Sort|Scan (Backward )?using' $$,
    $$ VALUES ('Index Scan Backward using memory_entries_theme') $$,
    'which are read in the order of an index'
);


-- Whose a row is stands in the index

SELECT is(
    (SELECT array_agg(p.proname ORDER BY p.proname) FROM pg_proc AS p
     WHERE p.pronamespace = 'memvec'::regnamespace AND p.prosrc LIKE '%@@ %match%'
         AND p.prosrc NOT LIKE '%memvec.owned_search(%'),
    '{text_newest,text_newest_own}'::name[], 'every match asks for the expression that is indexed, but where rows are read in their order'
);
SET LOCAL enable_seqscan = off;
SELECT is_empty(
    $$ SELECT t.name FROM unnest('{memory_entries,conversations}'::text[]) AS t (name)
       WHERE (SELECT string_agg(p.line, '') FROM pg_temp.plan_of(t.name) AS p (line)) NOT LIKE '%' || t.name || '\_search%' $$,
    'and the planner finds the index for it'
);

SELECT * FROM finish();
ROLLBACK;
