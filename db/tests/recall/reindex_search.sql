BEGIN;
SELECT plan(14);
SELECT memvec_tests.alone();

SELECT is(memvec_tests.callers('memvec.reindex_search'), '{tap_admin}', 'for administrators');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.reindex_search() $$, '42501', NULL, 'not for the runtime login');
DO $$
BEGIN
    FOR i IN 1..5 LOOP
        PERFORM memvec.add_memory('reindex', 'memory', 'running shoes of pair ' || i);
        PERFORM memvec.append_turn('reindex', 's', 'user', 'running shoes of pair ' || i);
    END LOOP;
END
$$;
SELECT memvec_tests.act_as('tap_admin');
SELECT is(memvec.reindex_search(0), 0::bigint, 'nothing is old at first');
SELECT memvec.set_setting('search_language', 'simple');
SELECT memvec_tests.act_as('hermes');
SELECT memvec.add_memory('reindex', 'memory', 'running in the language of today') IS NOT NULL AS added \gset

SELECT is(
    (SELECT count(*) FROM memvec.recall_memory('reindex', 'running')), 6::bigint,
    'after a change of language, rows of the language before are found, and new ones'
);
SELECT is((SELECT count(*) FROM memvec.recall_conversation('reindex', 'running')), 5::bigint, 'turns too');
SELECT memvec_tests.act_as('tap_admin');
SELECT cmp_ok(memvec.reindex_search(0), '>=', 10::bigint, 'p_limit 0 counts only');
RESET SESSION AUTHORIZATION;
-- Other tests leave nothing behind, but what stands in the table besides these is not this test's business.
UPDATE memvec.memory_entries SET search_version = 1000 WHERE agent_identity <> 'reindex';
UPDATE memvec.conversations SET search_version = 1000 WHERE agent_identity <> 'reindex';
SELECT memvec_tests.act_as('tap_admin');
SELECT is(memvec.reindex_search(3), 7::bigint, 'a batch is as large as asked for');
SELECT memvec_tests.act_as('hermes');
SELECT is(
    (SELECT count(*) FROM memvec.recall_memory('reindex', 'running')), 6::bigint, 'half-way everything is found'
);
SELECT memvec_tests.act_as('tap_admin');
SELECT is(memvec.reindex_search(4), 3::bigint, 'entries first, then turns');
SELECT is(memvec.reindex_search(100), 0::bigint, 'until none is left');
RESET SESSION AUTHORIZATION;
SELECT is(memvec.query_terms('running'), '{running}', 'then only the language of today is asked in');
SELECT is(
    (SELECT count(*) FROM memvec.memory_entries WHERE agent_identity = 'reindex' AND search @@ 'running'::tsquery AND search_version > 1),
    6::bigint, 'every row is of the new version'
);
SELECT is(
    (SELECT array_agg(rows ORDER BY id) FROM memvec.maintenance_log WHERE operation = 'reindex_search'), '{3,4,3}', 'what was done is logged'
);
SELECT is(
    (SELECT value FROM memvec.settings WHERE name = 'search_languages_before'), '', 'and the former languages are forgotten'
);

SELECT * FROM finish();
ROLLBACK;
