BEGIN;
SELECT plan(15);

SELECT is(memvec_tests.callers('memvec.estimate_rows'), '{}', 'internal');

CREATE FUNCTION pg_temp.estimate(
    p_kind text, p_own text, p_person uuid = NULL, p_others boolean = false, p_themes text[] = NULL, p_target text = NULL
) RETURNS bigint
LANGUAGE sql
AS $$
    SELECT memvec.estimate_rows(
        p_kind, ROW(p_own, p_person, p_others, p_themes, p_target, NULL, NULL, NULL, NULL)::memvec.recall_filter, 5
    )
$$;

SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    $$ SELECT memvec.estimate_rows('entry', NULL, 5) $$, '42501', NULL, 'the runtime login may not call it'
);
DO $$
BEGIN
    FOR i IN 1..9 LOOP
        PERFORM memvec.add_memory('estimate_rows-new', 'memory', 'note ' || i);
    END LOOP;
    FOR i IN 1..3 LOOP
        PERFORM memvec.append_turn('estimate_rows-new', 's', 'user', 'turn ' || i);
        PERFORM memvec.add_memory('agent:main:whatsapp:dm:estimate_rows', 'memory', 'note ' || i);
    END LOOP;
END
$$;
RESET SESSION AUTHORIZATION;

INSERT INTO memvec.theme_counts (kind, agent_identity, target, rows) VALUES
('entry', 'estimate_rows-a', 'memory', 700), ('entry', 'estimate_rows-a', 'user', 50),
('entry', 'estimate_rows-b', 'memory', 3000), ('turn', 'estimate_rows-a', '', 40000),
('entry', 'whatsapp-dm', 'memory', 900000);

SELECT is(pg_temp.estimate('entry', 'estimate_rows-a'), 750::bigint, 'the counts of a theme are added up');
SELECT is(pg_temp.estimate('entry', 'estimate_rows-a', p_target => 'user'), 50::bigint, 'or taken for one target');
SELECT is(pg_temp.estimate('turn', 'estimate_rows-a'), 40000::bigint, 'turns have their own');
SELECT is(
    pg_temp.estimate('entry', 'estimate_rows-a', p_others => true, p_themes => '{estimate_rows-a,estimate_rows-b}'),
    3750::bigint, 'several themes are added up'
);
SELECT is(
    pg_temp.estimate('entry', 'estimate_rows-a', p_others => true), 3750::bigint, 'all themes do not include a sink'
);
SELECT is(
    pg_temp.estimate('entry', NULL, p_others => true, p_themes => '{}'), 0::bigint, 'no theme, no rows'
);
SELECT is(
    pg_temp.estimate('entry', 'estimate_rows-new'), 6::bigint,
    'a theme without a count is counted, but no further than one more than enough'
);
SELECT is(pg_temp.estimate('turn', 'estimate_rows-new'), 3::bigint, 'and exactly when it is small');
SELECT is(pg_temp.estimate('entry', 'estimate_rows-unknown'), 0::bigint, 'an unknown theme has none');

-- One person among all that are in a sink

SELECT person_key AS person FROM memvec.canonical_identity('agent:main:whatsapp:dm:estimate_rows') \gset
SELECT is(pg_temp.estimate('entry', 'whatsapp-dm', :'person'), 3::bigint, 'a person''s rows are counted, whatever the sink holds');
SELECT is(
    pg_temp.estimate('entry', 'whatsapp-dm', :'person', p_others => true, p_themes => '{estimate_rows-a}'), 753::bigint,
    'and added to those of other themes'
);
SELECT is(pg_temp.estimate('turn', 'whatsapp-dm', :'person'), 0::bigint, 'a person without rows has none');

-- Recall plans for all questions alike; counting must not.
SET LOCAL enable_seqscan = off;
SET LOCAL plan_cache_mode = force_generic_plan;
CREATE FUNCTION pg_temp.rows_read() RETURNS bigint
LANGUAGE sql
AS $$
    SELECT sum(t.seq_tup_read + coalesce(t.idx_tup_fetch, 0))::bigint FROM pg_stat_xact_all_tables AS t
    WHERE t.relname IN ('memory_entries', 'conversations')
$$;
SELECT pg_temp.rows_read() AS before \gset
SELECT pg_temp.estimate('entry', 'estimate_rows-unknown'), pg_temp.estimate('turn', 'estimate_rows-unknown') \gset counted_
SELECT is(pg_temp.rows_read(), :before::bigint, 'a theme without rows is not sought in the whole table');

SELECT * FROM finish();
ROLLBACK;
