BEGIN;
SELECT plan(32);
SELECT memvec_tests.alone();

SELECT is(
    pg_get_function_arguments('memvec.prune'::regproc),
    'p_days integer DEFAULT NULL::integer, p_dry_run boolean DEFAULT true, p_limit integer DEFAULT NULL::integer',
    'takes an age in days, and is a dry run by default'
);
SELECT is(
    pg_get_function_result('memvec.prune'::regproc), 'TABLE(table_name text, action text, rows bigint, remaining bigint)',
    'returns what becomes of each table'
);
SELECT volatility_is('memvec', 'prune', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'prune', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.prune'), '{tap_admin}', 'only an admin may call it');

SELECT memvec_tests.act_as('tap_admin');
SELECT set_config('prune.space', memvec.add_embedding_space('prune', 8)::text, true) AS space \gset
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.prune(30) $$, '42501', NULL, 'the runtime login is refused');
DO $$
DECLARE
    v_space integer := current_setting('prune.space')::integer;
BEGIN
    -- Turns of 5, 15, 25, … 95 days.
    PERFORM memvec.append_turn(t, 's', 'user', 'turn of ' || i || ' days', p_ts => now() - make_interval(days => i),
                               p_embedding => memvec_tests.vec(i), p_space => v_space)
       FROM unnest('{prune-a,prune-short,prune-keep}'::text[]) AS t, generate_series(5, 95, 10) AS i;
    PERFORM memvec.add_memory('prune-a', 'memory', 'an old note');
END
$$;
RESET SESSION AUTHORIZATION;
UPDATE memvec.memory_entries SET created_at = now() - interval '2 years', updated_at = now() - interval '2 years' WHERE agent_identity = 'prune-a';

SELECT memvec_tests.act_as('tap_admin');
SELECT throws_ok($$ SELECT memvec.prune(0, false) $$, 'MV001', NULL, '0 days are refused');
SELECT throws_ok($$ SELECT memvec.prune(-5, false) $$, 'MV001', NULL, 'and negative ones');
SELECT throws_ok($$ SELECT memvec.prune(40000, false) $$, 'MV001', NULL, 'and a century');
SELECT throws_ok($$ SELECT memvec.prune(30, false, 0) $$, 'MV001', NULL, 'and a limit of nothing');
SELECT is((SELECT sum(rows) FROM memvec.prune()), 0::numeric, 'without days only themes with their own are pruned, and there are none');
SELECT lives_ok($$ SELECT memvec.set_ttl('prune-short', 10), memvec.set_ttl('Prune-Keep', 0) $$, 'now two have');
CREATE TEMP TABLE dry AS SELECT * FROM memvec.prune(50);
SELECT results_eq(
    $$ SELECT regexp_replace(table_name, '_[0-9]+$', ''), action, rows, remaining FROM dry WHERE rows > 0 $$,
    $$ VALUES ('conversations', 'deleted', 14::bigint, 0::bigint), ('turn_embeddings', 'deleted', 14, NULL) $$,
    'a dry run counts: 5 turns above 50 days, 9 above the 10 of the theme''s own, none where they are kept for ever'
);
SELECT is((SELECT rows FROM memvec.prune() WHERE table_name = 'conversations'), 9::bigint, 'without days, those 9');
CREATE TEMP TABLE dry_one AS SELECT * FROM memvec.prune(50, true, 6);
SELECT is((SELECT remaining FROM dry_one WHERE table_name = 'conversations'), 8::bigint, 'with a limit it says how many remain');
SELECT results_eq($$ SELECT * FROM memvec.prune(50, false, 6) $$, $$ SELECT * FROM dry_one $$, 'a batch does what its dry run said');
RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT count(*) FROM memvec.conversations WHERE agent_identity LIKE 'prune-%'), 24::bigint, 'and no more'
);
SELECT memvec_tests.act_as('tap_admin');
SELECT is((SELECT rows FROM memvec.prune(50, false) WHERE table_name = 'conversations'), 8::bigint, 'the rest goes in one');
SELECT is((SELECT sum(rows) FROM memvec.prune(50, false)), 0::numeric, 'then nothing is left to prune');
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT agent_identity, count(*), max(now()::date - ts::date) FROM memvec.conversations WHERE agent_identity LIKE 'prune-%' GROUP BY 1 ORDER BY 1 $$,
    $$ VALUES ('prune-a', 5::bigint, 45), ('prune-keep', 10, 95), ('prune-short', 1, 5) $$,
    'what is younger stays'
);
SELECT is(
    (SELECT count(*) FROM memvec.memory_entries WHERE agent_identity = 'prune-a'), 1::bigint, 'notes are never pruned'
);
SELECT results_eq(
    format('SELECT count(*) FROM memvec.turn_embeddings_%s', :space), $$ VALUES (16::bigint) $$, 'vectors go with their turns'
);
SELECT results_eq(
    $$ SELECT acted_by = 'tap_admin', rows, parameters FROM memvec.maintenance_log
        WHERE operation = 'prune' AND table_name = 'conversations' AND NOT dry_run ORDER BY id $$,
    $$ VALUES (true, 6::bigint, '{"days": 50, "limit": 6, "action": "deleted"}'::jsonb), (true, 8, '{"days": 50, "action": "deleted"}') $$,
    'each batch is in the log'
);
SELECT ok((SELECT count(*) >= 2 FROM memvec.maintenance_log WHERE operation = 'prune' AND dry_run), 'and each dry run');

-- set_ttl

SELECT is(memvec_tests.callers('memvec.set_ttl'), '{tap_admin}', 'only an admin sets what a theme keeps');
SELECT memvec_tests.act_as('tap_admin');
SELECT throws_ok($$ SELECT memvec.set_ttl('prune-a', -1) $$, 'MV001', NULL, 'no negative days');
SELECT throws_ok($$ SELECT memvec.set_ttl('agent:main:telegram:dm:1', 3) $$, 'MV001', NULL, 'no chat has its own');
SELECT throws_ok(
    $$ SELECT memvec.set_ttl('prune-typo', 3) $$, 'MV001', 'there is no theme "prune-typo"', 'a theme that nobody has is not made'
);
SELECT lives_ok($$ SELECT memvec.set_ttl('external-group', 30) $$, 'a sink may have an age before its first row');
SELECT is_empty($$ SELECT FROM memvec.stats() WHERE agent_identity = 'prune-typo' $$, 'nor shown');
SELECT lives_ok($$ SELECT memvec.set_ttl('prune-keep', NULL) $$, 'a theme can go back to the general rule');
SELECT is((SELECT rows FROM memvec.prune(50) WHERE table_name = 'conversations'), 5::bigint, 'and is pruned then');
RESET SESSION AUTHORIZATION;

SELECT * FROM finish();
ROLLBACK;
