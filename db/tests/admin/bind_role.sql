BEGIN;
SELECT plan(51);
SELECT memvec_tests.alone();

SELECT is(
    pg_get_function_arguments('memvec.bind_role'::regproc), 'p_role text, p_identity text, p_read_all boolean DEFAULT false',
    'takes a role and a theme'
);
SELECT is(pg_get_function_result('memvec.bind_role'::regproc), 'void', 'returns nothing');
SELECT volatility_is('memvec', 'bind_role', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'bind_role', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.bind_role'), '{tap_admin}', 'only an admin may call it');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.bind_role('tap_bound', 'a') $$, '42501', NULL, 'the runtime login is refused');

DO $$
DECLARE
    v_theme text;
BEGIN
    FOREACH v_theme IN ARRAY ARRAY['bind_role-a', 'bind_role-b', 'bind_role-c', 'agent:main:telegram:dm:bind', 'skill-bench'] LOOP
        PERFORM memvec.add_memory(v_theme, 'memory', 'harbour of ' || v_theme);
        PERFORM memvec.append_turn(v_theme, 's', 'user', 'harbour of ' || v_theme);
    END LOOP;
END
$$;
RESET SESSION AUTHORIZATION;

CREATE FUNCTION pg_temp.sees(p_identity text, p_scope text) RETURNS text
LANGUAGE sql
AS $$
    SELECT CASE WHEN m.themes IS NOT DISTINCT FROM c.themes THEN coalesce(m.themes, '-')
                ELSE concat_ws(' but in conversations ', coalesce(m.themes, '-'), coalesce(c.themes, '-')) END
    FROM (SELECT string_agg(replace(agent_identity, 'bind_role-', ''), ' ' ORDER BY agent_identity) AS themes
          FROM memvec.recall_memory(p_identity, 'harbour', p_scope => p_scope, p_limit => 100)) AS m,
         (SELECT string_agg(replace(agent_identity, 'bind_role-', ''), ' ' ORDER BY agent_identity) AS themes
          FROM memvec.recall_conversation(p_identity, 'harbour', p_scope => p_scope, p_limit => 100)) AS c
$$;

-- Unbound: any theme

SELECT memvec_tests.act_as('tap_bound');
SELECT is(pg_temp.sees('bind_role-c', 'own'), 'c', 'an unbound role may act as any theme');
SELECT is(pg_temp.sees('bind_role-c', 'all'), 'a b c', 'and see all ordinary ones');
RESET SESSION AUTHORIZATION;

-- Bound to one, then two themes

SELECT memvec_tests.act_as('tap_admin');
SELECT lives_ok($$ SELECT memvec.bind_role('tap_bound', ' Bind_Role-A ') $$, 'a role is bound to a theme in any spelling');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT is(pg_temp.sees('bind_role-a', 'own'), 'a', 'it may act as its theme');
SELECT is(pg_temp.sees('bind_role-a', 'all'), 'a', 'all is its theme');
SELECT is(pg_temp.sees('bind_role-a', 'BIND_role-a'), 'a', 'its theme may be named');
SELECT throws_ok($$ SELECT pg_temp.sees('bind_role-a', 'bind_role-b') $$, 'MV003', NULL, 'another may not');
SELECT throws_ok($$ SELECT pg_temp.sees('bind_role-a', 'no such theme') $$, 'MV003', NULL, 'whether it exists or not');
SELECT throws_ok($$ SELECT pg_temp.sees('bind_role-a', 'whatsapp-dm') $$, 'MV003', NULL, 'nor a sink');
SELECT throws_ok($$ SELECT pg_temp.sees('bind_role-b', 'own') $$, 'MV002', NULL, 'it may act as no other theme');
SELECT throws_ok($$ SELECT pg_temp.sees('', 'own') $$, 'MV002', NULL, 'nor as default');
SELECT throws_ok($$ SELECT pg_temp.sees('agent:main:telegram:dm:bind', 'own') $$, 'MV002', NULL, 'nor as somebody in a sink');
SELECT throws_ok($$ SELECT * FROM memvec.prefetch('bind_role-b', 'harbour') $$, 'MV002', NULL, 'in prefetch neither');
SELECT throws_ok($$ SELECT * FROM memvec.add_memory('bind_role-b', 'memory', 'x') $$, 'MV002', NULL, 'it may not add');
SELECT throws_ok($$ SELECT * FROM memvec.replace_memory('bind_role-b', 'memory', 'harbour', 'x') $$, 'MV002', NULL, 'nor replace');
SELECT throws_ok($$ SELECT * FROM memvec.remove_memory('bind_role-b', 'memory', 'harbour') $$, 'MV002', NULL, 'nor remove');
SELECT throws_ok($$ SELECT * FROM memvec.append_turn('bind_role-b', 's', 'user', 'x') $$, 'MV002', NULL, 'nor append');
SELECT throws_ok($$ SELECT * FROM memvec.hello('bind_role-b') $$, 'MV002', NULL, 'nor say hello');
SELECT throws_ok($$ SELECT * FROM memvec.register_agent('bind_role-b') $$, 'MV002', NULL, 'nor register');
SELECT results_eq(
    $$ SELECT outcome, error_code FROM memvec.apply_ops(jsonb_build_array(jsonb_build_object(
           'op_id', gen_random_uuid(), 'op', 'add_memory', 'identity', 'bind_role-b', 'target', 'memory', 'content', 'x'))) $$,
    $$ VALUES ('error', 'MV002') $$, 'nor in a batch'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.recall_memory('bind_role-a', 'harbour', p_governance => '{"aliases": {"bind_role-a": "bind_role-b"}}') $$,
    'MV002', NULL, 'a host''s own alias does not lead out'
);
SELECT is((SELECT outcome FROM memvec.add_memory('bind_role-a', 'memory', 'written by a bound role')), 'added', 'its own theme it may write');
RESET SESSION AUTHORIZATION;

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.bind_role('tap_bound', 'bind_role-b');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT is(pg_temp.sees('bind_role-b', 'own'), 'b', 'a second theme');
SELECT is(pg_temp.sees('bind_role-b', 'all'), 'a b', 'all is both');
SELECT is(pg_temp.sees('bind_role-b', 'bind_role-a'), 'a', 'either may be named');
RESET SESSION AUTHORIZATION;

-- Read all: it still acts only as its themes

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.bind_role('tap_bound', 'bind_role-b', true);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT is(pg_temp.sees('bind_role-a', 'all'), 'a b c', 'with p_read_all it sees every ordinary theme');
SELECT is(pg_temp.sees('bind_role-a', 'bind_role-c'), 'c', 'and may name it');
SELECT throws_ok($$ SELECT pg_temp.sees('bind_role-c', 'own') $$, 'MV002', NULL, 'but not act as it');
SELECT throws_ok($$ SELECT pg_temp.sees('bind_role-a', '_bench') $$, 'MV003', NULL, 'and name no sink');

-- session_user decides: SET ROLE to another group member changes nothing
RESET SESSION AUTHORIZATION;
GRANT hermes TO tap_bound;
SELECT memvec_tests.act_as('tap_bound');
SET LOCAL ROLE hermes;
SELECT throws_ok($$ SELECT pg_temp.sees('bind_role-c', 'own') $$, 'MV002', NULL, 'SET ROLE does not loosen a binding');
RESET ROLE;
RESET SESSION AUTHORIZATION;

-- Bound to a sink: one person's rows at a time, only with the key

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.unbind_role('tap_bound');
SELECT memvec.bind_role('tap_bound', 'whatsapp-dm');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT is(pg_temp.sees('agent:main:telegram:dm:bind', 'own'), 'whatsapp-dm', 'a role bound to a sink acts with a chat key');
SELECT is(pg_temp.sees('agent:main:telegram:dm:other', 'all'), '-', 'and sees nobody else, nor other themes');
RESET SESSION AUTHORIZATION;

-- require_binding

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.set_setting('require_binding', 'on');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT pg_temp.sees('bind_role-a', 'own') $$, 'MV002', NULL, 'require_binding refuses an unbound role');
RESET SESSION AUTHORIZATION;

-- A role that was renamed is nobody, under its new name, until it is bound again

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.set_setting('require_binding', 'off');
SELECT memvec.unbind_role('tap_bound');
SELECT memvec.bind_role('tap_bound', 'bind_role-a', true);
RESET SESSION AUTHORIZATION;
ALTER ROLE tap_bound RENAME TO tap_renamed;
SELECT memvec_tests.act_as('tap_renamed');
SELECT throws_ok($$ SELECT pg_temp.sees('bind_role-a', 'own') $$, 'MV002', NULL, 'a renamed role does not act as its theme');
SELECT throws_ok($$ SELECT pg_temp.sees('bind_role-c', 'all') $$, 'MV002', NULL, 'let alone as any other');
SELECT is_empty('SELECT * FROM memvec.stats()', 'nor is it told of any');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.bind_role('tap_renamed', 'bind_role-a');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_renamed');
SELECT is(pg_temp.sees('bind_role-a', 'all'), 'a', 'bound again it acts as its theme');
RESET SESSION AUTHORIZATION;
ALTER ROLE tap_renamed RENAME TO tap_bound;
SELECT memvec_tests.act_as('tap_bound');
SELECT is(pg_temp.sees('bind_role-a', 'all'), 'a b c', 'with its old name it has its old binding');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
SELECT is(pg_temp.sees('bind_role-c', 'own'), 'c', 'others are not touched by that');
RESET SESSION AUTHORIZATION;

-- Bad arguments

SELECT memvec_tests.act_as('tap_admin');
SELECT throws_ok(format('SELECT memvec.bind_role(%L, %L)', b.role, b.theme), 'MV001', NULL, format('role %L, theme %L is refused', b.role, b.theme))
FROM (VALUES ('no_such_role', 'a'), (NULL, 'a'), ('tap_bound', ''), ('tap_bound', NULL)) AS b (role, theme);
SELECT memvec.set_setting('allowed_themes', 'bind_role-a');
SELECT throws_ok(
    $$ SELECT memvec.bind_role('tap_bound', 'bind_role-b') $$, 'MV001', NULL, 'a theme that is not allowed is not bound as default'
);
RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT count(*) FROM memvec.maintenance_log WHERE operation = 'bind_role' AND acted_by = 'tap_admin'), 6::bigint,
    'the log tells of each binding'
);

SELECT * FROM finish();
ROLLBACK;
