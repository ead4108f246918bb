BEGIN;
SELECT plan(9);

SELECT is(memvec_tests.callers('memvec.checked_setting'), '{}', 'internal');
CREATE FUNCTION pg_temp.checked(p_name text, p_value text) RETURNS text LANGUAGE sql
AS $$ SELECT memvec.checked_setting(s, p_value) FROM memvec.settings AS s WHERE s.name = p_name $$;
SELECT is(pg_temp.checked('rrf_k', ' 12.5 '), '12.5', 'a number in its range, trimmed');
SELECT is(pg_temp.checked('rrf_k', '1001'), NULL, 'one above it does not fit');
SELECT is(pg_temp.checked('hnsw_m', '2.5'), NULL, 'nor a fraction where a whole number is wanted');
SELECT is(pg_temp.checked('hnsw_m', NULL), NULL, 'nor nothing');
SELECT is(pg_temp.checked('require_binding', 'Yes'), 'true', 'yes is true');
SELECT is(pg_temp.checked('require_binding', 'maybe'), NULL, 'maybe is neither');
SELECT is(pg_temp.checked('bench_mode', 'elsewhere'), NULL, 'only the choices are allowed');
SELECT is(pg_temp.checked('search_language', 'klingon'), NULL, 'and languages that the server knows');

SELECT * FROM finish();
ROLLBACK;
