BEGIN;
SELECT plan(14);

SELECT is(
    pg_get_function_arguments('memvec.unbind_role'::regproc), 'p_role text, p_identity text DEFAULT NULL::text',
    'takes a role and a theme'
);
SELECT is(pg_get_function_result('memvec.unbind_role'::regproc), 'bigint', 'returns a count');
SELECT volatility_is('memvec', 'unbind_role', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'unbind_role', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.unbind_role'), '{tap_admin}', 'only an admin may call it');
SELECT memvec_tests.act_as('tap_bound');
SELECT throws_ok($$ SELECT memvec.unbind_role('tap_bound') $$, '42501', NULL, 'a bound role cannot loosen itself');
RESET SESSION AUTHORIZATION;

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.bind_role('tap_bound', 'unbind_role-' || t) FROM unnest('{a,b,c}'::text[]) AS t;
SELECT is(memvec.unbind_role('tap_bound', ' Unbind_Role-A '), 1::bigint, 'one theme, in any spelling');
SELECT is(memvec.unbind_role('tap_bound', 'unbind_role-a'), 0::bigint, 'that is no longer bound');
SELECT is(memvec.unbind_role('no_such_role'), 0::bigint, 'a role that does not exist has no binding');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT throws_ok($$ SELECT * FROM memvec.recall_memory('unbind_role-a', 'x') $$, 'MV002', NULL, 'the others hold');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_admin');
SELECT is(memvec.unbind_role('tap_bound', ' '), 0::bigint, 'a blank theme is not all of them');
SELECT is(memvec.unbind_role('tap_bound'), 2::bigint, 'without a theme all are gone');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT lives_ok($$ SELECT * FROM memvec.recall_memory('unbind_role-a', 'x') $$, 'and the role may act as any again');
RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT count(*) FROM memvec.maintenance_log WHERE operation = 'unbind_role' AND acted_by = 'tap_admin'), 5::bigint,
    'the log tells of each'
);

SELECT * FROM finish();
ROLLBACK;
