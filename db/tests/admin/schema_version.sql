BEGIN;
SELECT plan(7);

SELECT is(pg_get_function_arguments('memvec.schema_version'::regproc), '', 'takes nothing');
SELECT is(pg_get_function_result('memvec.schema_version'::regproc), 'integer', 'returns a number');
SELECT volatility_is('memvec', 'schema_version', 'stable', 'is stable');
SELECT is_definer('memvec', 'schema_version', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.schema_version'), '{hermes,tap_admin,tap_embedder,tap_reader}', 'every group may call it');
SELECT is(memvec.schema_version(), (SELECT max(version) FROM memvec.schema_migrations), 'the newest migration');
SELECT memvec_tests.act_as('hermes');
SELECT cmp_ok(memvec.schema_version(), '>=', 4, 'the runtime login may ask');

SELECT * FROM finish();
ROLLBACK;
