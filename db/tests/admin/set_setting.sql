BEGIN;
SELECT plan(57);
SELECT memvec_tests.alone();

SELECT is(pg_get_function_arguments('memvec.set_setting'::regproc), 'p_name text, p_value text', 'takes a name and a value');
SELECT is(pg_get_function_result('memvec.set_setting'::regproc), 'void', 'returns nothing');
SELECT volatility_is('memvec', 'set_setting', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'set_setting', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.set_setting'), '{tap_admin}', 'only an admin may call it');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.set_setting('rrf_k', '10') $$, '42501', NULL, 'the runtime login is refused');
RESET SESSION AUTHORIZATION;

-- Each value below is set, then read back.
CREATE TEMP TABLE wanted (place int GENERATED ALWAYS AS IDENTITY, name text, value text, kept text);
INSERT INTO wanted (name, value, kept) VALUES
('rrf_k', '60', '60'), ('rrf_k', ' 12.5 ', '12.5'), ('rrf_k', '0', '0'),
('turn_neighbours', '.50', '0.5'), ('rrf_weight_text', '-0.', '0'), ('rrf_weight_text', '2.', '2'), ('rrf_weight_vector', '0', '0'),
('rrf_depth', '10', '10'), ('rrf_depth', '5000', '5000'),
('require_binding', 'YES', 'true'), ('require_binding', 'off', 'false'), ('require_binding', '1', 'true'), ('require_binding', 'F', 'false'),
('bench_mode', 'reject', 'reject'), ('search_language', 'german', 'german'), ('search_language', 'simple', 'simple'),
('allowed_themes', 'sales, marketing', 'sales, marketing'), ('allowed_themes', NULL, '');
GRANT SELECT ON wanted TO tap_admin;
SELECT memvec_tests.act_as('tap_admin');
SELECT lives_ok(format('SELECT memvec.set_setting(%L, %L)', name, value), format('%s = %L', name, value)) FROM wanted ORDER BY place;
SELECT throws_ok(
    format('SELECT memvec.set_setting(%L, %L)', b.name, b.value), 'MV007', NULL, format('%s = %L is refused', b.name, b.value)
) FROM (VALUES
    ('rrf_k', 'abc'), ('rrf_k', ''), ('rrf_k', NULL), ('rrf_k', '-1'), ('rrf_k', '1001'), ('rrf_k', 'NaN'), ('rrf_k', '1e3'),
    ('rrf_depth', '9'), ('rrf_depth', '5001'), ('rrf_depth', '10.5'), ('rrf_depth', '99999999999999999999'),
    ('require_binding', 'maybe'), ('require_binding', ''), ('bench_mode', 'drop'), ('search_language', 'klingon'),
    ('search_languages_before', 'english,klingon'), ('rrf_weight_text', '0.0'), ('turn_neighbours', '.'), ('search_version', '1000000000'),
    ('no_such_setting', '1'), ('', '1'), (NULL, '1'), ('RRF_K', '1')
) AS b (name, value);
RESET SESSION AUTHORIZATION;
SELECT is_empty(
    $$ SELECT DISTINCT ON (w.name) w.name, w.kept, s.value FROM wanted AS w JOIN memvec.settings AS s USING (name)
       WHERE NOT EXISTS (SELECT FROM wanted AS l WHERE l.name = w.name AND l.place > w.place) AND s.value <> w.kept $$,
    'the last good value of each stays'
);
SELECT is(
    (SELECT value FROM memvec.settings WHERE name = 'search_version'), '3',
    'a change of the language makes the search vectors of before old'
);
SELECT results_eq(
    $$ SELECT acted_by, parameters FROM memvec.maintenance_log WHERE operation = 'set_setting' AND parameters ->> 'value' = '60' $$,
    $$ VALUES ('tap_admin'::name, '{"name": "rrf_k", "value": "60", "before": "10"}'::jsonb) $$, 'the log tells who changed what'
);
SELECT is_empty(
    $$ SELECT name FROM memvec.settings WHERE coalesce(description, '') = '' OR kind IN ('integer', 'number') AND (minimum IS NULL OR maximum IS NULL) $$,
    'every setting is described, every number has its range'
);
SELECT is(
    (SELECT count(*) FROM memvec.maintenance_log WHERE operation = 'set_setting'), 18::bigint, 'refused changes leave no log'
);
SELECT memvec_tests.act_as('tap_admin');
SELECT lives_ok($$ SELECT memvec.set_setting('search_language', 'simple') $$, 'the same language again');
SELECT throws_ok(
    $$ SELECT memvec.set_setting('search_version', '2') $$, 'MV007', 'setting search_version cannot become 2',
    'what would leave rows that are never renewed is refused'
);
SELECT throws_ok(
    $$ SELECT memvec.set_setting('rrf_weight_text', '0') $$, 'MV007', 'setting rrf_weight_text cannot become 0', 'one leg must weigh something'
);
SELECT lives_ok($$ SELECT memvec.set_setting('rrf_weight_vector', '1'), memvec.set_setting('rrf_weight_text', '0') $$, 'whichever it is');
RESET SESSION AUTHORIZATION;
SELECT is((SELECT value FROM memvec.settings WHERE name = 'search_version'), '3', 'makes nothing old');

SELECT * FROM finish();
ROLLBACK;
