BEGIN;
SELECT plan(58);
SELECT memvec_tests.alone();

SELECT is(
    pg_get_function_arguments('memvec.remap'::regproc),
    'p_old text, p_new text DEFAULT NULL::text, p_dry_run boolean DEFAULT true, p_force boolean DEFAULT false',
    'takes two names, and is a dry run by default'
);
SELECT is(
    pg_get_function_result('memvec.remap'::regproc), 'TABLE(table_name text, action text, rows bigint, remaining bigint)',
    'returns what becomes of each table'
);
SELECT volatility_is('memvec', 'remap', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'remap', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.remap'), '{tap_admin}', 'only an admin may call it');

SELECT memvec_tests.act_as('tap_admin');
SELECT set_config('remap.space', memvec.add_embedding_space('remap', 8)::text, true) AS space \gset
RESET SESSION AUTHORIZATION;

SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.remap('remap-a', 'remap-b') $$, '42501', NULL, 'the runtime login is refused');
DO $$
DECLARE
    v_space integer := current_setting('remap.space')::integer;
BEGIN
    PERFORM memvec.register_agent('remap-a', '{"team": "north", "colour": "red"}');
    PERFORM memvec.register_agent('remap-b', '{"colour": "blue"}');
    PERFORM memvec.add_memory('remap-a', 'memory', 'only in a', p_embedding => memvec_tests.vec(1), p_space => v_space);
    PERFORM memvec.add_memory('remap-b', 'memory', 'only in b', p_embedding => memvec_tests.vec(2), p_space => v_space);
    PERFORM memvec.add_memory('remap-a', 'memory', 'in both, a has the vector', '{"by": "a", "a": 1}',
                              '00000000-0000-4000-8000-00000000000a', memvec_tests.vec(3), v_space);
    PERFORM memvec.add_memory('remap-b', 'memory', 'in both, a has the vector', '{"by": "b", "b": 1}',
                              '00000000-0000-4000-8000-00000000000b');
    PERFORM memvec.add_memory('remap-a', 'memory', 'in both, with two vectors', p_embedding => memvec_tests.vec(4), p_space => v_space);
    PERFORM memvec.add_memory('remap-b', 'memory', 'in both, with two vectors', p_embedding => memvec_tests.vec(5), p_space => v_space);
    PERFORM memvec.add_memory('remap-a', 'user', 'only in b');
    PERFORM memvec.add_memory('remap-a', 'memory', 'goes away');
    PERFORM memvec.remove_memory('remap-a', 'memory', 'goes away');
    PERFORM memvec.append_turn('remap-a', 's1', 'user', 'a turn of a', p_embedding => memvec_tests.vec(6), p_space => v_space);
    PERFORM memvec.append_turn('remap-a', 's1', 'user', 'a turn of both', p_metadata => '{"a": 1}', p_embedding => memvec_tests.vec(7), p_space => v_space);
    PERFORM memvec.append_turn('remap-b', 's1', 'user', 'a turn of both', p_metadata => '{"b": 1}');
    PERFORM memvec.append_turn('remap-b', 's2', 'user', 'a turn of a');
    PERFORM memvec.record_delegation('remap-a', 's1', 'c1', 'remap-c');
    PERFORM memvec.record_delegation('remap-a', 's1', 'c2', 'remap-c');
    PERFORM memvec.record_delegation('remap-b', 's1', 'c2', 'remap-c');
    PERFORM memvec.record_delegation('remap-c', 's3', 'c3', 'remap-a');
END
$$;
RESET SESSION AUTHORIZATION;
UPDATE memvec.memory_entries SET updated_at = now() + interval '1 hour', created_at = now() - interval '1 hour'
 WHERE agent_identity = 'remap-a' AND content = 'in both, a has the vector';
INSERT INTO memvec.theme_counts VALUES ('entry', 'remap-a', 'memory', 3), ('entry', 'remap-b', 'memory', 3), ('turn', 'remap-a', '', 2);
INSERT INTO memvec.identity_aliases VALUES ('remap-nick', 'remap-a');

-- Refusals

SELECT memvec_tests.act_as('tap_admin');
SELECT throws_ok($$ SELECT memvec.remap('Remap-Misspelt', 'remap-b', false) $$, 'MV001', 'there is no theme "remap-misspelt"', 'a name that nobody has is refused');
SELECT throws_ok($$ SELECT memvec.remap(' ', 'remap-b') $$, 'MV001', NULL, 'a blank old name is refused');
SELECT throws_ok($$ SELECT memvec.remap('remap-a', NULL) $$, 'MV001', NULL, 'and no new one');
SELECT throws_ok($$ SELECT memvec.remap('remap-a', E'\t') $$, 'MV001', NULL, 'and a blank one');
SELECT throws_ok($$ SELECT memvec.remap('remap-a', 'REMAP-a', false) $$, 'MV001', NULL, 'the same theme is refused');
SELECT throws_ok($$ SELECT memvec.remap('remap-b', E'Remap-\u200bB', false, true) $$, 'MV001', NULL, 'in any spelling');
SELECT throws_ok($$ SELECT memvec.remap('whatsapp-dm', 'remap-b') $$, 'MV001', NULL, 'a sink is not moved');
SELECT throws_ok($$ SELECT memvec.remap(' External-Group', 'remap-b') $$, 'MV001', NULL, 'in no spelling');
SELECT throws_ok($$ SELECT memvec.remap('_bench', 'remap-b') $$, 'MV001', NULL, 'nor that of benchmarks');
SELECT throws_ok($$ SELECT memvec.remap('remap-a', 'agent:main:telegram:dm:4711') $$, 'MV001', NULL, 'a theme does not become a person');
SELECT throws_ok($$ SELECT memvec.remap('remap-a', '_bench') $$, 'MV001', NULL, 'nor part of a sink');
SELECT throws_ok($$ SELECT memvec.remap('agent:main:telegram:dm:4711', 'remap-b') $$, 'MV001', NULL, 'nor a person a theme');
SELECT lives_ok($$ SELECT memvec.set_setting('allowed_themes', 'remap-a,remap-b') $$, 'with an allow-list');
SELECT throws_ok($$ SELECT memvec.remap('remap-a', 'remap-z') $$, 'MV001', NULL, 'a theme that is not allowed is refused');
SELECT lives_ok($$ SELECT memvec.set_setting('allowed_themes', '') $$, 'without again');

-- Dry run

SELECT lives_ok($$ SELECT memvec.bind_role('tap_bound', 'remap-a') $$, 'a role is bound to the old theme');
CREATE TEMP TABLE dry AS SELECT * FROM memvec.remap('remap-a', 'remap-b');
SELECT results_eq(
    $$ SELECT regexp_replace(table_name, '_[0-9]+$', ''), action, rows FROM dry WHERE rows > 0 ORDER BY 1, 2 $$,
    $$ VALUES ('conversations', 'merged', 1::bigint), ('conversations', 'moved', 1),
              ('entry_embeddings', 'merged', 1), ('entry_embeddings', 'moved', 2), ('identity_aliases', 'added', 1),
              ('memory_agent_edges', 'moved', 3), ('memory_agents', 'moved', 1), ('memory_entries', 'merged', 2),
              ('memory_entries', 'moved', 2), ('memory_history', 'moved', 1), ('role_identities', 'moved', 1), ('turn_embeddings', 'moved', 2) $$,
    'a dry run counts'
);
RESET SESSION AUTHORIZATION;
SELECT is((SELECT count(*) FROM memvec.memory_entries WHERE agent_identity = 'remap-a'), 4::bigint, 'and changes nothing');
SELECT ok((SELECT bool_and(dry_run AND acted_by = 'tap_admin' AND parameters ->> 'old' = 'remap-a' AND parameters ->> 'new' = 'remap-b')
             FROM memvec.maintenance_log WHERE operation = 'remap'), 'but is logged as one');
DELETE FROM memvec.maintenance_log WHERE operation = 'remap';

-- Roles

SELECT memvec_tests.act_as('tap_admin');
SELECT throws_ok(
    $$ SELECT memvec.remap('remap-a', 'remap-b', false) $$, 'MV001', NULL,
    'a merge that shows a bound role more rows needs force'
);

-- Execution

SELECT results_eq(
    $$ SELECT * FROM memvec.remap('remap-a', 'remap-b', false, true) $$, $$ SELECT * FROM dry $$,
    'execution does what the dry run said, and leaves nothing'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT table_name, parameters ->> 'action', rows, dry_run, acted_by::text COLLATE "C" FROM memvec.maintenance_log WHERE operation = 'remap' ORDER BY 1, 2 $$,
    $$ SELECT table_name, action, rows, false, 'tap_admin' COLLATE "C" FROM dry WHERE rows > 0 ORDER BY 1, 2 $$,
    'each table is in the log'
);
SELECT results_eq(
    $$ SELECT target, content FROM memvec.memory_entries WHERE agent_identity = 'remap-b' ORDER BY 1, 2 $$,
    $$ VALUES ('memory', 'in both, a has the vector'), ('memory', 'in both, with two vectors'), ('memory', 'only in a'),
              ('memory', 'only in b'), ('user', 'only in b') $$,
    'each text is there once'
);
SELECT is((SELECT count(*) FROM memvec.memory_entries WHERE agent_identity = 'remap-a'), 0::bigint, 'none under the old name');
SELECT results_eq(
    $$ SELECT metadata, updated_at > now(), created_at < now(),
              (SELECT array_agg(right(source::text, 1) ORDER BY source) FROM memvec.entry_sources WHERE entry_id = id)
         FROM memvec.memory_entries WHERE agent_identity = 'remap-b' AND content = 'in both, a has the vector' $$,
    $$ VALUES ('{"a": 1, "b": 1, "by": "a"}'::jsonb, true, true, '{a,b}'::text[]) $$,
    'the newer metadata goes over the older, the first and last times count, sources are united'
);
SELECT is(
    (SELECT count(*) FROM memvec.memory_history WHERE agent_identity = 'remap-b' AND content = 'goes away'), 1::bigint,
    'history follows'
);
SELECT results_eq(
    $$ SELECT parent_identity, child_session_id, child_identity FROM memvec.memory_agent_edges
        WHERE parent_identity LIKE 'remap-%' ORDER BY 1, 2 $$,
    $$ VALUES ('remap-b', 'c1', 'remap-c'), ('remap-b', 'c2', 'remap-c'), ('remap-c', 'c3', 'remap-b') $$,
    'edges follow at both ends, each once'
);
SELECT results_eq(
    $$ SELECT agent_identity, attrs FROM memvec.memory_agents WHERE agent_identity IN ('remap-a', 'remap-b') $$,
    $$ VALUES ('remap-b', '{"team": "north", "colour": "blue"}'::jsonb) $$,
    'so does the registry; what the new theme says of itself stays'
);
SELECT results_eq(
    $$ SELECT kind, target, rows FROM memvec.theme_counts WHERE agent_identity IN ('remap-a', 'remap-b') ORDER BY 1 $$,
    $$ VALUES ('entry', 'memory', 6::bigint), ('turn', '', 2) $$,
    'and the counts'
);
SELECT results_eq(
    $$ SELECT alias, agent_identity FROM memvec.identity_aliases WHERE alias LIKE 'remap-%' ORDER BY 1 $$,
    $$ VALUES ('remap-a', 'remap-b'), ('remap-nick', 'remap-b') $$,
    'the old name is an alias, and its aliases are the new theme''s'
);
SELECT results_eq(
    format('SELECT count(*), count(DISTINCT e.agent_identity), bool_and(e.agent_identity = m.agent_identity) FROM memvec.entry_embeddings_%s AS e JOIN memvec.memory_entries AS m USING (id)', :space),
    $$ VALUES (4::bigint, 1::bigint, true) $$,
    'vectors say the new theme; the kept row has the vector that only the other had'
);
SELECT results_eq(
    format('SELECT count(*), bool_and(e.agent_identity = ''remap-b'') FROM memvec.turn_embeddings_%s AS e', :space),
    $$ VALUES (2::bigint, true) $$, 'those of turns as well'
);
SELECT is(
    (SELECT metadata FROM memvec.conversations WHERE agent_identity = 'remap-b' AND content = 'a turn of both'),
    '{"a": 1, "b": 1}'::jsonb, 'a turn of both is one, with both metadata'
);

SELECT memvec_tests.act_as('hermes');
SELECT results_eq(
    $$ SELECT outcome FROM memvec.add_memory('Remap-A', 'memory', 'only in a') $$, $$ VALUES ('duplicate') $$,
    'who still says the old name writes to the new theme'
);
SELECT is(
    (SELECT agent_identity FROM memvec.hello('remap-a', p_governance => '{"allowed_themes": ["remap-a"]}')), 'remap-b',
    'also a host whose allow-list has the old name'
);
SELECT results_eq(
    format($$ SELECT content FROM memvec.recall_memory('remap-b', NULL, memvec_tests.vec(1), %s, p_limit => 1) $$, :space),
    $$ VALUES ('only in a') $$, 'a moved vector is found'
);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT is((SELECT agent_identity FROM memvec.hello('remap-a')), 'remap-b', 'the bound role goes on in the new theme');
SELECT throws_ok($$ SELECT memvec.hello('remap-c') $$, 'MV002', NULL, 'and in no other');
RESET SESSION AUTHORIZATION;

-- Back again, and more than ten duplicates

SELECT memvec_tests.act_as('tap_admin');
SELECT lives_ok($$ SELECT memvec.remap('remap-b', 'remap-a', false) $$, 'a theme gets its old name back');
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT alias, agent_identity FROM memvec.identity_aliases WHERE alias LIKE 'remap-%' ORDER BY 1 $$,
    $$ VALUES ('remap-b', 'remap-a'), ('remap-nick', 'remap-a') $$,
    'and nothing is an alias of itself'
);
SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    PERFORM memvec.add_memory(t, 'memory', 'again ' || i) FROM unnest('{remap-d,remap-e}'::text[]) AS t, generate_series(1, 6) AS i;
    PERFORM memvec.append_turn(t, 's', 'user', 'again ' || i) FROM unnest('{remap-d,remap-e}'::text[]) AS t, generate_series(1, 5) AS i;
END
$$;
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_admin');
SELECT throws_ok($$ SELECT memvec.remap('remap-d', 'remap-e', false) $$, 'MV001', NULL, '11 duplicates need force');
SELECT is((SELECT sum(rows) FROM memvec.remap('remap-d', 'remap-e', true) WHERE action = 'merged'), 11::numeric, 'a dry run counts them without');
SELECT is((SELECT sum(rows) FROM memvec.remap('remap-d', 'remap-e', false, true) WHERE action = 'merged'), 11::numeric, 'with force they are merged');
SELECT is((SELECT sum(rows) FROM memvec.remap('remap-nick', 'remap-e')), 1::numeric, 'of an alias, which has no rows, only the name moves');
RESET SESSION AUTHORIZATION;

-- Rows that an import left under a chat's raw key, or under a name that no key leads to

INSERT INTO memvec.memory_entries (agent_identity, target, content, content_hash, search, search_version)
SELECT t.theme, 'memory', t.content, memvec.content_hash(t.content), memvec.search_vector(t.content), 1
FROM (VALUES ('Agent:Main:Telegram:DM:remap77', 'raw note'), ('remap-Capital', 'capital note')) AS t (theme, content);
INSERT INTO memvec.memory_agents (agent_identity, kind, attrs) VALUES ('Agent:Main:Telegram:DM:remap77', 'theme', '{"name": "Ann"}');
SELECT memvec_tests.act_as('tap_admin');
SELECT is(
    (SELECT rows FROM memvec.remap('Agent:Main:Telegram:DM:remap77', p_dry_run => false) WHERE table_name = 'memory_entries' AND action = 'moved'),
    1::bigint, 'the rows of a raw chat key are moved without naming the sink'
);
SELECT is(
    (SELECT rows FROM memvec.remap('remap-Capital', 'remap-capital', false) WHERE table_name = 'memory_entries' AND action = 'moved'),
    1::bigint, 'rows under a spelling that no key leads to are moved to the one that keys lead to'
);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
SELECT results_eq(
    $$ SELECT content FROM memvec.recall_memory('agent:main:telegram:dm:remap77', 'raw') $$, $$ VALUES ('raw note') $$,
    'they are that person''s'
);
RESET SESSION AUTHORIZATION;
SELECT is_empty(
    $$ SELECT * FROM memvec.memory_agents WHERE agent_identity ILIKE '%remap77%'
       UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, to_jsonb(l), NULL FROM memvec.maintenance_log AS l WHERE l::text ILIKE '%remap77%'
       UNION ALL SELECT a.alias, NULL, NULL, NULL, NULL, NULL, NULL FROM memvec.identity_aliases AS a WHERE a::text ILIKE '%remap77%' $$,
    'and the key is neither registered, logged, nor an alias'
);
SELECT is(
    (SELECT attrs FROM memvec.memory_agents WHERE agent_identity = 'whatsapp-dm'), '{}'::jsonb, 'nor anything about them'
);
SELECT is((SELECT count(*) FROM memvec.identity_aliases WHERE alias = 'remap-capital'), 0::bigint, 'a theme is not its own alias');

-- Retention

SELECT memvec_tests.act_as('hermes');
SELECT memvec.append_turn('remap-ttl-a', 's', 'user', 'old words');
SELECT memvec.append_turn('remap-ttl-c', 's', 'user', 'other words');
SELECT memvec.hello('remap-ttl-b');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.set_ttl('remap-ttl-a', 30);
SELECT memvec.remap('remap-ttl-a', 'remap-ttl-b', false);
RESET SESSION AUTHORIZATION;
SELECT is((SELECT ttl_days FROM memvec.memory_agents WHERE agent_identity = 'remap-ttl-b'), 30, 'the age follows to a name that holds no turns');
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.remap('remap-ttl-b', 'remap-ttl-c', false);
RESET SESSION AUTHORIZATION;
SELECT is((SELECT ttl_days FROM memvec.memory_agents WHERE agent_identity = 'remap-ttl-c'), NULL::integer, 'turns that are there keep theirs');

SELECT * FROM finish();
ROLLBACK;
