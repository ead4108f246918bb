BEGIN;
SELECT plan(20);
SELECT memvec_tests.alone();

SELECT is(
    pg_get_function_arguments('memvec.erase_theme'::regproc),
    'p_identity text, p_dry_run boolean DEFAULT true, p_limit integer DEFAULT NULL::integer', 'takes a theme, and is a dry run by default'
);
SELECT is(
    pg_get_function_result('memvec.erase_theme'::regproc), 'TABLE(table_name text, action text, rows bigint, remaining bigint)',
    'returns what becomes of each table'
);
SELECT volatility_is('memvec', 'erase_theme', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'erase_theme', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.erase_theme'), '{tap_admin}', 'only an admin may call it');

SELECT memvec_tests.act_as('tap_admin');
SELECT set_config('erase.space', memvec.add_embedding_space('erase_theme', 8)::text, true) AS space \gset
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.erase_theme('erase_theme-a') $$, '42501', NULL, 'the runtime login is refused');
DO $$
DECLARE
    v_space integer := current_setting('erase.space')::integer;
BEGIN
    PERFORM memvec.register_agent(t) FROM unnest('{erase_theme-a,erase_theme-b}'::text[]) AS t;
    PERFORM memvec.add_memory(t, 'memory', 'quince ' || t, p_embedding => memvec_tests.vec(1), p_space => v_space)
       FROM unnest('{erase_theme-a,erase_theme-b}'::text[]) AS t;
    PERFORM memvec.replace_memory(t, 'memory', 'quince ' || t, 'medlar ' || t) FROM unnest('{erase_theme-a,erase_theme-b}'::text[]) AS t;
    PERFORM memvec.append_turn(t, 's', 'user', 'turn ' || i) FROM unnest('{erase_theme-a,erase_theme-b}'::text[]) AS t, generate_series(1, 3) AS i;
    PERFORM memvec.record_delegation('erase_theme-b', 's', 'c', 'erase_theme-a');
    PERFORM o.outcome FROM memvec.apply_ops(jsonb_build_array(jsonb_build_object(
        'op_id', md5('erase_theme')::uuid, 'op', 'sync_memories', 'identity', 'erase_theme-a', 'target', 'memory',
        'source', '00000000-0000-4000-8000-00000000000a', 'contents', jsonb_build_array('sloe')))) AS o;
END
$$;
RESET SESSION AUTHORIZATION;
INSERT INTO memvec.identity_aliases VALUES ('erase_theme-nick', 'erase_theme-a');
SELECT memvec_tests.act_as('tap_admin');
SELECT lives_ok($$ SELECT memvec.bind_role('tap_bound', 'erase_theme-a') $$, 'a role is bound to it');
SELECT throws_ok($$ SELECT memvec.erase_theme(' ', false) $$, 'MV001', NULL, 'a blank name is refused');
SELECT throws_ok($$ SELECT memvec.erase_theme('agent:main:telegram:dm:1', false) $$, 'MV001', NULL, 'and a chat''s key');
SELECT throws_ok($$ SELECT memvec.erase_theme('erase_theme-nick', false) $$, 'MV001', NULL, 'and an alias');
SELECT throws_ok($$ SELECT memvec.erase_theme('erase_theme-a', false, -1) $$, 'MV001', NULL, 'and a limit below 1');
CREATE TEMP TABLE dry AS SELECT * FROM memvec.erase_theme('erase_theme-a');
SELECT set_eq(
    $$ SELECT regexp_replace(table_name, '_[0-9]+$', ''), rows FROM dry WHERE rows > 0 $$,
    $$ VALUES ('memory_entries', 2::bigint), ('conversations', 3), ('memory_history', 1), ('entry_sources', 1), ('memory_agent_edges', 1),
              ('applied_ops', 1), ('memory_agents', 1) $$,
    'a dry run counts'
);
SELECT results_eq(
    $$ SELECT * FROM memvec.erase_theme('Erase_Theme-A', false) $$, $$ SELECT * FROM dry $$, 'execution does what it said'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT agent_identity, count(*) FROM memvec.memory_entries WHERE agent_identity LIKE 'erase_theme%' GROUP BY 1 $$,
    $$ VALUES ('erase_theme-b', 1::bigint) $$, 'its notes are gone, and no others'
);
SELECT is((SELECT count(*) FROM memvec.memory_history WHERE agent_identity LIKE 'erase_theme%'), 1::bigint, 'and its history');
SELECT is((SELECT detail FROM memvec.applied_ops WHERE op_id = md5('erase_theme')::uuid), NULL, 'hashes of its file''s texts as well');
SELECT is((SELECT count(*) FROM memvec.memory_agents WHERE agent_identity = 'erase_theme-a'), 0::bigint, 'and its registry row');
SELECT is((SELECT count(*) FROM memvec.role_identities WHERE agent_identity = 'erase_theme-a'), 1::bigint, 'bindings stay, or the role would be free');
SELECT ok(
    (SELECT bool_and(acted_by = 'tap_admin') AND bool_or(dry_run) AND bool_or(NOT dry_run)
       FROM memvec.maintenance_log WHERE operation = 'erase_theme'), 'both calls are in the log'
);
SELECT memvec_tests.act_as('hermes');
SELECT is(
    (SELECT detail ->> 'added' FROM memvec.apply_ops(jsonb_build_array(jsonb_build_object(
        'op_id', md5('erase_theme')::uuid, 'op', 'sync_memories', 'identity', 'erase_theme-a', 'target', 'memory',
        'source', '00000000-0000-4000-8000-00000000000a', 'contents', jsonb_build_array('sloe'))))), NULL,
    'an operation that was applied before is not applied again'
);
RESET SESSION AUTHORIZATION;

SELECT * FROM finish();
ROLLBACK;
