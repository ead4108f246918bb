BEGIN;
SELECT plan(6);

SELECT is(
    pg_get_function_arguments('memvec.release_pending'::regproc), 'p_space integer, p_kinds text[], p_ids bigint[]', 'takes the rows as arrays'
);
SELECT is(pg_get_function_result('memvec.release_pending'::regproc), 'bigint', 'returns how many');
SELECT volatility_is('memvec', 'release_pending', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'release_pending', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.release_pending'), '{tap_admin,tap_embedder}', 'only embedder and admin may call it');
-- What it does is tested in claim_pending.sql.
SELECT memvec_tests.act_as('tap_embedder');
SELECT throws_ok($$ SELECT memvec.release_pending(0, '{}', '{}') $$, 'MV004', NULL, 'an unknown space is refused');

SELECT * FROM finish();
ROLLBACK;
