-- That each fault is found is tested by tests/test_doctor.py, which plants them; here is who is told what.
BEGIN;
SELECT plan(15);
SELECT memvec_tests.alone();

SELECT is(
    pg_get_function_result('memvec.health'::regproc),
    'TABLE(area text, name text, state text, message text, fix text, value jsonb)', 'returns these columns'
);
SELECT volatility_is('memvec', 'health', 'stable', 'is stable');
SELECT is_definer('memvec', 'health', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.health'), '{hermes,tap_admin,tap_embedder,tap_reader}', 'all four groups may call it');

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('health', 8) AS space \gset
SELECT memvec.bind_role('tap_bound', 'health-own');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    PERFORM memvec.add_memory('health-own', 'memory', 'one');
    PERFORM memvec.add_memory('health-other', 'memory', 'two');
    PERFORM memvec.add_memory('health-other', 'memory', 'three');
END
$$;
SELECT is_empty(
    $$ SELECT area, name FROM memvec.health() WHERE state NOT IN ('ok', 'warning', 'failure', 'unknown') OR message IS NULL
       UNION ALL
       SELECT area, name FROM memvec.health() WHERE (state = 'ok') <> (fix IS NULL) $$,
    'every check has a state and a sentence, and a fix unless it is fine'
);
SELECT is_empty(
    $$ SELECT area, name, message FROM memvec.health()
       WHERE state = 'failure' OR state = 'warning' AND (area, name) NOT IN (('server', 'durability'), ('roles', 'timeouts')) $$,
    'nothing is wrong with a new database (but for the careless test server, and a login that did not log in)'
);
SELECT is(
    (SELECT state FROM memvec.health() WHERE name = 'bindings of others'), 'unknown', 'an agent is not told of other logins'
);
SELECT ok(
    (SELECT bool_or(h.message LIKE '%: 3 of 3 rows wait%') FROM memvec.health() AS h WHERE h.name LIKE 'pending of space %'),
    'an unbound login is told how many rows wait'
);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT ok(
    (SELECT bool_or(h.message LIKE '%: 1 of 1 rows wait%') FROM memvec.health() AS h WHERE h.name LIKE 'pending of space %'),
    'a bound one of its own only'
);
SELECT is(
    (SELECT message FROM memvec.health() WHERE area = 'roles' AND name = 'binding'), 'tap_bound acts as health-own',
    'and what it is bound to'
);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_admin');
SELECT is((SELECT state FROM memvec.health() WHERE name = 'bindings of others'), 'ok', 'an administrator is told of all logins');
SELECT is(
    (SELECT message FROM memvec.health() WHERE area = 'roles' AND name = 'login'),
    'tap_admin, who asks, may read the text of every theme; agents need a login of their own',
    'and of himself as the one who asks: who the agents are, his question does not say'
);
RESET SESSION AUTHORIZATION;

UPDATE memvec.settings SET value = 'many' WHERE name = 'exact_rows';
SELECT memvec_tests.act_as('hermes');
SELECT is(
    (SELECT array_agg(state ORDER BY area) FROM memvec.health() WHERE (area, name) IN (('settings', 'values'), ('vectors', 'spaces'))),
    '{failure,unknown}', 'a setting that is no number is a finding, not an error'
);
SELECT is(
    (SELECT fix FROM memvec.health() WHERE area = 'settings' AND name = 'values'),
    'SELECT memvec.set_setting(''exact_rows'', ''0'');', 'with its fix'
);
RESET SESSION AUTHORIZATION;

-- The list of indexes in health_schema is that of the migrations: take all away, and the fixes must be what they were.
CREATE TEMP TABLE was AS
SELECT c.relname, replace(pg_get_indexdef(c.oid), 'CREATE INDEX', 'CREATE INDEX CONCURRENTLY') || ';' AS command
  FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_class AS t ON t.oid = i.indrelid
 WHERE c.relnamespace = 'memvec'::regnamespace AND NOT t.relname ~ '_embeddings_[0-9]+$'
   AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.indexrelid);
DO $$
DECLARE
    v_index name;
BEGIN
    FOR v_index IN SELECT relname FROM was LOOP
        EXECUTE format('DROP INDEX memvec.%I', v_index);
    END LOOP;
END
$$;
SELECT is(
    (SELECT fix FROM memvec.health() WHERE area = 'schema' AND name = 'indexes'),
    (SELECT string_agg(command, ' ' ORDER BY relname) FROM was),
    'a missing index is made again as the migrations made it'
);

SELECT * FROM finish();
ROLLBACK;
