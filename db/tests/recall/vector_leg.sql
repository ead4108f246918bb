BEGIN;
SELECT plan(33);
SELECT memvec_tests.alone();

SELECT is(memvec_tests.callers('memvec.vector_leg'), '{}', 'internal');
-- What turns do to each other is lifted_turns' business.
UPDATE memvec.settings SET value = '0' WHERE name = 'turn_neighbours';

-- 400 notes in one theme, 120 in another, 300 turns in three sessions, each with its vector.
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('vector_leg', 8) AS space \gset
SELECT set_config('vector_leg.space', :'space', true);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    $$ SELECT * FROM memvec.vector_leg('entry', 1, NULL, NULL, 1, 1) $$, '42501', NULL, 'the runtime login may not call it'
);
DO $$
DECLARE
    v_space int := current_setting('vector_leg.space');
BEGIN
    FOR i IN 1..520 LOOP
        PERFORM memvec.add_memory(
            CASE WHEN i <= 400 THEN 'vector_leg' ELSE 'vector_leg-other' END, CASE i % 10 WHEN 0 THEN 'user' ELSE 'memory' END,
            'note ' || i, p_embedding => memvec_tests.vec(i), p_space => v_space
        );
    END LOOP;
    FOR i IN 1..300 LOOP
        PERFORM memvec.append_turn(
            'vector_leg', 's' || i % 3, 'user', 'turn ' || i, p_ts => '2026-01-01'::timestamptz + i * interval '1 hour',
            p_embedding => memvec_tests.vec(1000 + i), p_space => v_space
        );
    END LOOP;
    FOR i IN 1..60 LOOP
        PERFORM memvec.add_memory(
            'agent:main:telegram:dm:vector_leg', 'memory', 'private ' || i,
            p_embedding => memvec_tests.vec(2000 + i), p_space => v_space
        );
    END LOOP;
END
$$;
RESET SESSION AUTHORIZATION;

CREATE FUNCTION pg_temp.leg(
    p_kind text,
    p_depth int,
    p_query public.halfvec = memvec_tests.vec(7777),
    p_own text = 'vector_leg',
    p_person uuid = NULL,
    p_others boolean = false,
    p_target text = NULL,
    p_session text = NULL,
    p_exclude text = NULL,
    p_since timestamptz = NULL,
    p_until timestamptz = NULL,
    p_wanted int = 10
) RETURNS TABLE (id bigint, rank integer, distance float8)
LANGUAGE sql
AS $$
    SELECT * FROM memvec.vector_leg(
        p_kind, current_setting('vector_leg.space')::int, p_query,
        ROW(p_own, p_person, p_others, NULL, p_target, p_session, p_exclude, p_since, p_until)::memvec.recall_filter, p_depth, p_wanted
    )
$$;

-- The truth: every row of a table of vectors, nearest first.
SELECT format(
    'CREATE TEMP VIEW entry_truth AS SELECT e.*, e.embedding OPERATOR(public.<=>) memvec_tests.vec(7777) AS distance
     FROM memvec.%I AS e', entry_table
) FROM memvec.embedding_spaces WHERE id = :space \gexec
SELECT format(
    'CREATE TEMP VIEW turn_truth AS SELECT e.*, e.embedding OPERATOR(public.<=>) memvec_tests.vec(7777) AS distance
     FROM memvec.%I AS e', turn_table
) FROM memvec.embedding_spaces WHERE id = :space \gexec

-- Every row compared: the way of a small theme

SELECT results_eq(
    $$ SELECT id, distance FROM pg_temp.leg('entry', 50) ORDER BY rank $$,
    $$ SELECT id, distance FROM entry_truth WHERE agent_identity = 'vector_leg' ORDER BY distance, id DESC LIMIT 50 $$,
    'the nearest entries in order'
);
SELECT is(
    (SELECT array_agg(rank) FROM pg_temp.leg('entry', 50)), ARRAY(SELECT generate_series(1, 50)),
    'ranks count from 1 without gaps'
);
SELECT is((SELECT count(*) FROM pg_temp.leg('entry', 1000)), 400::bigint, 'only rows of the filter, and all of them');
SELECT is((SELECT count(*) FROM pg_temp.leg('entry', 1000, p_target => 'user')), 40::bigint, 'one target');
SELECT is((SELECT count(*) FROM pg_temp.leg('entry', 1000, p_others => true)), 520::bigint, 'all themes, but no sink');
SELECT results_eq(
    $$ SELECT id FROM pg_temp.leg('turn', 50) ORDER BY rank $$,
    $$ SELECT id FROM turn_truth ORDER BY distance, id DESC LIMIT 50 $$,
    'the nearest turns in order'
);
SELECT is((SELECT count(*) FROM pg_temp.leg('turn', 1000, p_session => 's1')), 100::bigint, 'one session');
SELECT is((SELECT count(*) FROM pg_temp.leg('turn', 1000, p_exclude => 's1')), 200::bigint, 'all but one session');
SELECT is(
    (SELECT count(*) FROM pg_temp.leg('turn', 1000, p_since => '2026-01-02', p_until => '2026-01-03')), 24::bigint,
    'between two times'
);
SELECT is(
    (SELECT count(*) FROM pg_temp.leg('entry', 1000, p_since => now() + interval '1 us')), 0::bigint, 'entries too'
);
SELECT is(
    (SELECT count(*) FROM pg_temp.leg('entry', 10, public.l2_normalize('[0,0,0,0,0,0,0,0]'::public.halfvec))), 0::bigint,
    'a vector of length zero has no neighbours'
);
SELECT throws_ok(
    $$ SELECT pg_temp.leg('entry', 10, memvec_tests.vec(1, 9)) $$, 'MV005', NULL, 'a vector of another width is refused'
);
SELECT throws_ok(
    $$ SELECT memvec.vector_leg('entry', 0, memvec_tests.vec(1), NULL, 10, 10) $$, 'MV004', NULL, 'an unknown space is refused'
);

-- The index: the way of a large theme

SELECT format(
    'CREATE INDEX vector_leg_%s ON memvec.%I USING hnsw (embedding public.halfvec_cosine_ops)', table_name, table_name
) FROM memvec.embedding_spaces, unnest(ARRAY[entry_table, turn_table]) AS t (table_name) WHERE id = :space \gexec
UPDATE memvec.settings SET value = '50' WHERE name = 'exact_rows';
UPDATE memvec.settings SET value = '0' WHERE name = 'hnsw_visit_rows';
SELECT memvec.count_themes();
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_sort = off;

CREATE FUNCTION pg_temp.index_scans() RETURNS bigint
LANGUAGE sql
AS $$
    SELECT sum(pg_stat_get_xact_numscans(c.oid))::bigint FROM pg_class AS c
    WHERE c.relname LIKE 'vector\_leg\_%' AND c.relnamespace = 'memvec'::regnamespace
$$;

SELECT is(pg_temp.index_scans(), 0::bigint, 'no index was asked so far');
SELECT ok(
    (SELECT count(*) >= 9 FROM pg_temp.leg('entry', 10) AS l
     JOIN (SELECT id FROM entry_truth WHERE agent_identity = 'vector_leg' ORDER BY distance, id DESC LIMIT 10) AS t USING (id)),
    'the index finds the nearest entries of the theme'
);
SELECT ok(
    (SELECT count(*) >= 9 FROM pg_temp.leg('turn', 10) AS l
     JOIN (SELECT id FROM turn_truth ORDER BY distance, id DESC LIMIT 10) AS t USING (id)),
    'and the nearest turns'
);
SELECT is(
    (SELECT count(*) FROM pg_class AS c
     WHERE c.relname LIKE 'vector\_leg\_%' AND c.relnamespace = 'memvec'::regnamespace
         AND pg_stat_get_xact_numscans(c.oid) > 0), 2::bigint, 'the index was asked for both'
);
SELECT results_eq(
    $$ SELECT count(DISTINCT id), count(*) FILTER (WHERE distance < before)
       FROM (SELECT id, distance, lag(distance) OVER (ORDER BY rank) AS before FROM pg_temp.leg('entry', 100)) AS l $$,
    $$ VALUES (100::bigint, 0::bigint) $$,
    'a limit of 100 returns 100 rows in the order of their distance'
);
SELECT is(
    (SELECT count(*) FROM pg_temp.leg('entry', 200, p_own => 'vector_leg-other')), 100::bigint,
    'the index hands over hnsw_candidates rows'
);
SELECT is(
    (SELECT count(*) FROM pg_temp.leg('entry', 200, p_wanted => 150)), 150::bigint, 'or more, when more are wanted'
);
UPDATE memvec.settings SET value = '10' WHERE name = 'hnsw_candidates';
DELETE FROM memvec.theme_counts;
INSERT INTO memvec.theme_counts (kind, agent_identity, target, rows) VALUES ('entry', 'vector_leg', 'memory', 20000);
SELECT is((SELECT count(*) FROM pg_temp.leg('entry', 200)), 20::bigint, 'but no fewer than a thousandth of the rows');
UPDATE memvec.theme_counts SET rows = 60000;
INSERT INTO memvec.theme_counts (kind, agent_identity, target, rows) VALUES ('entry', 'vector_leg-other', 'memory', 3940000);
SELECT is((SELECT count(*) FROM pg_temp.leg('entry', 200)), 30::bigint, 'or, of four millions, their part of 2,000');
SELECT is((SELECT count(*) FROM pg_temp.leg('entry', 12)), 12::bigint, 'of which the nearest are handed over');
SELECT memvec.count_themes();
UPDATE memvec.settings SET value = '100' WHERE name = 'hnsw_candidates';
SELECT set_eq(
    $$ SELECT id FROM pg_temp.leg('turn', 100, p_since => '2026-01-02', p_until => '2026-01-03') $$,
    $$ SELECT id FROM turn_truth WHERE ts >= '2026-01-02' AND ts < '2026-01-03' $$,
    'where it finds too few, every row of the filter is compared'
);

-- Few rows have an index of their own, and a day's are known to be few

ANALYZE memvec.conversations;

SELECT pg_temp.index_scans() AS scans \gset
SELECT is(
    (SELECT count(*) FROM pg_temp.leg(
        'entry', 100, p_own => 'whatsapp-dm',
        p_person => (SELECT person_key FROM memvec.canonical_identity('agent:main:telegram:dm:vector_leg'))
    )), 60::bigint, 'a person''s rows'
);
SELECT is((SELECT count(*) FROM pg_temp.leg('turn', 100, p_session => 's2')), 100::bigint, 'a session''s rows');
SELECT is(
    (SELECT count(*) FROM pg_temp.leg('turn', 100, p_since => '2026-01-02', p_until => '2026-01-03')), 24::bigint, 'those of a day'
);
SELECT is(pg_temp.index_scans(), :scans::bigint, 'are compared exactly');
SELECT is((SELECT count(*) FROM pg_temp.leg('turn', 100, p_since => '2026-01-02')), 100::bigint, 'many rows since a day');
SELECT is(
    (SELECT count(*) FROM pg_temp.leg(
        'entry', 100, p_own => 'whatsapp-dm', p_others => true,
        p_person => (SELECT person_key FROM memvec.canonical_identity('agent:main:telegram:dm:vector_leg'))
    )), 100::bigint, 'and a person''s among those of all themes'
);
SELECT ok(pg_temp.index_scans() >= :scans + 2, 'are sought in the index');

SELECT * FROM finish();
ROLLBACK;
