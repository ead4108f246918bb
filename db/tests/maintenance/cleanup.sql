BEGIN;
SELECT plan(23);
SELECT memvec_tests.alone();

SELECT is(
    pg_get_function_arguments('memvec.cleanup'::regproc),
    'p_identities text[], p_dry_run boolean DEFAULT true, p_limit integer DEFAULT NULL::integer', 'takes themes, and is a dry run by default'
);
SELECT is(
    pg_get_function_result('memvec.cleanup'::regproc), 'TABLE(table_name text, action text, rows bigint, remaining bigint)',
    'returns what becomes of each table'
);
SELECT volatility_is('memvec', 'cleanup', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'cleanup', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.cleanup'), '{tap_admin}', 'only an admin may call it');

SELECT memvec_tests.act_as('tap_admin');
SELECT set_config('cleanup.space', memvec.add_embedding_space('cleanup', 8)::text, true) AS space \gset
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.cleanup('{cleanup-a}') $$, '42501', NULL, 'the runtime login is refused');
DO $$
DECLARE
    v_space integer := current_setting('cleanup.space')::integer;
BEGIN
    PERFORM memvec.register_agent('cleanup-a');
    PERFORM memvec.add_memory(t, 'memory', 'note ' || i, p_embedding => memvec_tests.vec(i), p_space => v_space)
       FROM unnest('{cleanup-a,cleanup-b,cleanup-c}'::text[]) AS t, generate_series(1, 3) AS i;
    PERFORM memvec.append_turn(t, 's', 'user', 'turn ' || i, p_embedding => memvec_tests.vec(i), p_space => v_space)
       FROM unnest('{cleanup-a,cleanup-b,cleanup-c}'::text[]) AS t, generate_series(1, 2) AS i;
    PERFORM memvec.remove_memory('cleanup-a', 'memory', 'note 3');
END
$$;
RESET SESSION AUTHORIZATION;
INSERT INTO memvec.conversations (agent_identity, session_id, role, content, content_hash, search, search_version)
VALUES ('Cleanup-B', 's', 'user', 'odd', '\x00', '', 1);

SELECT memvec_tests.act_as('tap_admin');
SELECT throws_ok($$ SELECT memvec.cleanup(NULL, false) $$, 'MV001', NULL, 'no names are refused');
SELECT throws_ok($$ SELECT memvec.cleanup('{}', false) $$, 'MV001', NULL, 'and an empty list');
SELECT throws_ok($$ SELECT memvec.cleanup('{cleanup-a," "}', false) $$, 'MV001', NULL, 'and a blank name');
SELECT throws_ok($$ SELECT memvec.cleanup('{cleanup-a,+491701234567}', false) $$, 'MV001', NULL, 'and a chat''s key');
SELECT throws_ok($$ SELECT memvec.cleanup('{cleanup-a,cleanup-misspelt}') $$, 'MV001', 'there is no theme "cleanup-misspelt"', 'and a theme that nobody has');
SELECT throws_ok($$ SELECT memvec.cleanup('{cleanup-a}', false, 0) $$, 'MV001', NULL, 'and a limit of nothing');
CREATE TEMP TABLE dry AS SELECT * FROM memvec.cleanup('{cleanup-a,Cleanup-B}');
SELECT set_eq(
    $$ SELECT regexp_replace(table_name, '_[0-9]+$', ''), action, rows FROM dry WHERE rows > 0 $$,
    $$ VALUES ('memory_entries', 'deleted', 5::bigint), ('conversations', 'deleted', 5), ('entry_embeddings', 'deleted', 5), ('turn_embeddings', 'deleted', 4) $$,
    'a dry run counts'
);
CREATE TEMP TABLE dry_two AS SELECT * FROM memvec.cleanup('{cleanup-a,Cleanup-B}', true, 7);
SELECT results_eq(
    $$ SELECT * FROM memvec.cleanup('{Cleanup-B,cleanup-a}', false, 7) $$, $$ SELECT * FROM dry_two $$, 'a batch does what its dry run said'
);
SELECT is(
    (SELECT sum(rows) + (SELECT sum(rows) FROM dry_two) FROM memvec.cleanup('{cleanup-a,Cleanup-B}', false, 7)),
    (SELECT sum(rows) FROM dry), 'two batches do what one would'
);
SELECT is((SELECT sum(rows) + sum(remaining) FROM memvec.cleanup('{cleanup-a,Cleanup-B}', false)), 0::numeric, 'and nothing is left');
RESET SESSION AUTHORIZATION;
SELECT is((SELECT count(*) FROM memvec.memory_entries WHERE agent_identity ~* '^cleanup-[ab]'), 0::bigint, 'no note');
SELECT is((SELECT count(*) FROM memvec.conversations WHERE agent_identity ~* '^cleanup-[ab]'), 0::bigint, 'no turn, in no spelling');
SELECT is((SELECT count(*) FROM memvec.memory_entries WHERE agent_identity = 'cleanup-c'), 3::bigint, 'other themes keep theirs');
SELECT is((SELECT count(*) FROM memvec.memory_history WHERE agent_identity = 'cleanup-a'), 1::bigint, 'history stays');
SELECT is((SELECT count(*) FROM memvec.memory_agents WHERE agent_identity = 'cleanup-a'), 1::bigint, 'and the registry');
SELECT is(
    (SELECT array_agg(DISTINCT acted_by::text || dry_run::text ORDER BY acted_by::text || dry_run::text) FROM memvec.maintenance_log WHERE operation = 'cleanup'),
    '{tap_adminfalse,tap_admintrue}', 'every call is in the log'
);
SELECT memvec_tests.act_as('tap_admin');
SELECT lives_ok($$ SELECT memvec.cleanup('{_bench}') $$, 'a sink may be named');
RESET SESSION AUTHORIZATION;

SELECT * FROM finish();
ROLLBACK;
