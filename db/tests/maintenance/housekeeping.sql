BEGIN;
SELECT plan(18);
SELECT memvec_tests.alone();

SELECT is(pg_get_function_arguments('memvec.housekeeping'::regproc), '', 'takes nothing');
SELECT is(pg_get_function_result('memvec.housekeeping'::regproc), 'TABLE(task text, rows bigint)', 'returns what it did');
SELECT volatility_is('memvec', 'housekeeping', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'housekeeping', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.housekeeping'), '{hermes,tap_admin}', 'runtime and admin may call it');

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('housekeeping', 8) AS space \gset
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_reader');
SELECT throws_ok($$ SELECT * FROM memvec.housekeeping() $$, '42501', NULL, 'a reader is refused');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    FOR i IN 1..30 LOOP
        PERFORM memvec.add_memory('housekeeping', 'memory', 'common word ' || i);
        PERFORM memvec.add_memory('agent:main:telegram:dm:housekeeping' || i, 'memory', 'privateword common ' || i);
        PERFORM memvec.add_memory('skill-bench', 'memory', 'benchword ' || i);
    END LOOP;
    FOR i IN 1..9 LOOP
        PERFORM memvec.add_memory('housekeeping', 'user', 'seldom ' || i);
    END LOOP;
    PERFORM memvec.append_turn('housekeeping', 's', 'user', 'a turn');
    PERFORM memvec.add_memory('housekeeping', 'memory', 'to be removed ' || i) FROM generate_series(1, 3) AS i;
    PERFORM memvec.remove_memory('housekeeping', 'memory', 'to be removed ' || i) FROM generate_series(1, 3) AS i;
END
$$;
RESET SESSION AUTHORIZATION;

INSERT INTO memvec.applied_ops (op_id, outcome, applied_at)
SELECT gen_random_uuid(), 'added', now() - interval '31 days' FROM generate_series(1, 4)
UNION ALL
SELECT gen_random_uuid(), 'added', now() - interval '29 days' FROM generate_series(1, 5);
UPDATE memvec.memory_history SET acted_at = now() - interval '366 days'
WHERE agent_identity = 'housekeeping' AND content IN ('to be removed 1', 'to be removed 2');
INSERT INTO memvec.embedding_work (space_id, kind, row_id, content_hash, leased_until, attempts)
SELECT :space, 'entry', w.id, '\x00', w.leased_until, w.attempts
FROM (VALUES (-1, now() - interval '1 s', 3), (-2, now() + interval '1 s', 3), (-3, now() - interval '1 s', 0)) AS w (id, leased_until, attempts)
UNION ALL
SELECT :space, 'entry', m.id, m.content_hash, now() - interval '1 s', 3 FROM memvec.memory_entries AS m WHERE m.content = 'seldom 1';
INSERT INTO memvec.theme_counts (kind, agent_identity, target, rows) VALUES ('entry', 'housekeeping-gone', 'memory', 7);
INSERT INTO memvec.memory_agents (agent_identity, kind) VALUES ('housekeeping-old', 'theme'), ('housekeeping', 'theme') ON CONFLICT DO NOTHING;
INSERT INTO memvec.identity_aliases VALUES ('housekeeping-old', 'housekeeping');
UPDATE memvec.settings SET value = '20' WHERE name = 'text_all_terms_rows';

SELECT memvec_tests.act_as('hermes');
SELECT results_eq(
    $$ SELECT task, rows FROM memvec.housekeeping() WHERE task LIKE '%forgotten' OR task LIKE '%ended' $$,
    $$ VALUES ('applied operations forgotten', 4::bigint), ('history rows forgotten', 2), ('embedding leases ended', 2) $$,
    'it tells what it did'
);
SELECT results_eq(
    $$ SELECT task, rows > 0 FROM memvec.housekeeping() $$,
    $$ VALUES ('applied operations forgotten', false), ('history rows forgotten', false), ('embedding leases ended', false),
              ('themes counted', true), ('common words counted', true), ('floors measured', false) $$,
    'and has little to do the next time'
);
RESET SESSION AUTHORIZATION;

SELECT is(
    (SELECT count(*) FROM memvec.applied_ops WHERE applied_at < now()), 5::bigint, 'operations of applied_ops_days are kept'
);
SELECT is(
    (SELECT array_agg(content) FROM memvec.memory_history WHERE agent_identity = 'housekeeping'), '{"to be removed 3"}',
    'history of history_days is kept'
);
SELECT results_eq(
    format('SELECT row_id < 0, attempts FROM memvec.embedding_work WHERE space_id = %s ORDER BY 1', :space),
    $$ VALUES (false, 3), (true, 3) $$, 'a lease that runs is kept, and so is what is known of failures, unless the row is gone'
);
SELECT results_eq(
    $$ SELECT kind, target, rows FROM memvec.theme_counts WHERE agent_identity = 'housekeeping' ORDER BY kind, target $$,
    $$ VALUES ('entry', 'memory', 30::bigint), ('entry', 'user', 9), ('turn', '', 1) $$, 'rows are counted by theme and target'
);
SELECT is(
    (SELECT count(*) FROM memvec.theme_counts WHERE agent_identity = 'housekeeping-gone'), 0::bigint, 'counts of themes that are gone go'
);
SELECT results_eq(
    $$ SELECT lexeme, rows FROM memvec.term_statistics WHERE kind = 'entry' ORDER BY lexeme $$,
    $$ VALUES ('common', 30::bigint), ('word', 30) $$,
    'common words of ordinary themes are counted: none of a chat or benchmark, none that fewer than 10 rows hold'
);
SELECT results_eq(
    $$ SELECT agent_identity FROM memvec.memory_agents WHERE agent_identity LIKE 'housekeeping%' $$, $$ VALUES ('housekeeping') $$,
    'a name that is an alias now is no theme'
);
UPDATE memvec.settings SET value = '5000' WHERE name = 'text_all_terms_rows';
SELECT memvec_tests.act_as('hermes');
SELECT is(
    (SELECT rows FROM memvec.housekeeping() WHERE task = 'common words counted'), 0::bigint, 'a small table needs no such counts'
);
RESET SESSION AUTHORIZATION;
SELECT is((SELECT count(*) FROM memvec.term_statistics), 0::bigint, 'and has none');
SELECT is(
    (SELECT count(*) FROM memvec.memory_entries WHERE agent_identity = 'housekeeping'), 39::bigint, 'no note is ever touched'
);

SELECT * FROM finish();
ROLLBACK;
