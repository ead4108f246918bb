BEGIN;
SELECT plan(43);
SELECT memvec_tests.alone();

SELECT is(
    pg_get_function_arguments('memvec.erase_person'::regproc),
    'p_session_key text, p_dry_run boolean DEFAULT true, p_limit integer DEFAULT NULL::integer',
    'takes a chat''s key, and is a dry run by default'
);
SELECT is(
    pg_get_function_result('memvec.erase_person'::regproc), 'TABLE(table_name text, action text, rows bigint, remaining bigint)',
    'returns what becomes of each table'
);
SELECT volatility_is('memvec', 'erase_person', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'erase_person', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.erase_person'), '{tap_admin}', 'only an admin may call it');

SELECT memvec_tests.act_as('tap_admin');
SELECT set_config('erase.space', memvec.add_embedding_space('erase_person', 8)::text, true) AS space \gset
RESET SESSION AUTHORIZATION;

CREATE FUNCTION pg_temp.left_of(p_text text) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    v_table name;
    v_rows bigint;
    v_all bigint := 0;
BEGIN
    FOR v_table IN SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = 'memvec'::regnamespace AND c.relkind = 'r' LOOP
        EXECUTE format('SELECT count(*) FROM memvec.%I AS t WHERE t::text ILIKE $1', v_table) INTO v_rows USING '%' || p_text || '%';
        v_all := v_all + v_rows;
    END LOOP;
    RETURN v_all;
END
$$;

SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.erase_person('agent:main:telegram:dm:erase-ann') $$, '42501', NULL, 'the runtime login is refused');
DO $$
DECLARE
    v_space integer := current_setting('erase.space')::integer;
    v_key text;
BEGIN
    FOREACH v_key IN ARRAY '{agent:main:telegram:dm:erase-ann,agent:main:telegram:dm:erase-bob}'::text[] LOOP
        PERFORM memvec.add_memory(v_key, 'memory', 'erasedfig ' || right(v_key, 3), p_source => '00000000-0000-4000-8000-00000000000a',
                                  p_embedding => memvec_tests.vec(1), p_space => v_space);
        PERFORM memvec.add_memory(v_key, 'user', 'erasedplum ' || right(v_key, 3));
        PERFORM memvec.remove_memory(v_key, 'user', 'erasedplum ' || right(v_key, 3));
        PERFORM memvec.append_turn(v_key, 's-' || right(v_key, 3), 'user', 'erasedpear ' || i || ' ' || right(v_key, 3),
                                   p_embedding => memvec_tests.vec(i), p_space => v_space)
           FROM generate_series(1, 3) AS i;
        PERFORM memvec.record_delegation(v_key, 's-' || right(v_key, 3), 'c-' || right(v_key, 3), 'erase-child', '{"for": "erasednut"}');
        PERFORM memvec.record_delegation('erase-child', 'up-' || right(v_key, 3), 's-' || right(v_key, 3), v_key);
        PERFORM o.outcome FROM memvec.apply_ops(jsonb_build_array(jsonb_build_object(
            'op_id', md5(v_key)::uuid, 'op', 'add_memory', 'identity', v_key, 'target', 'memory', 'content', 'erasedkiwi ' || right(v_key, 3)))) AS o;
    END LOOP;
    PERFORM memvec.add_memory('erase-child', 'memory', 'stays');
END
$$;
SELECT (memvec.canonical_identity('agent:main:telegram:dm:erase-ann')).person_key AS ann \gset
RESET SESSION AUTHORIZATION;
INSERT INTO memvec.memory_entries (agent_identity, target, content, content_hash, search, search_version)
VALUES ('agent:main:telegram:dm:ERASE-ann', 'memory', 'erasedraw ann', sha256('erasedraw ann'), memvec.search_vector('erasedraw ann'), 1);
INSERT INTO memvec.memory_agents (agent_identity, kind) VALUES ('agent:main:telegram:dm:ERASE-ann', 'theme');
INSERT INTO memvec.theme_counts VALUES ('entry', 'agent:main:telegram:dm:ERASE-ann', 'memory', 1);
INSERT INTO memvec.identity_aliases VALUES ('agent:main:telegram:dm:erase-ann', 'whatsapp-dm');
INSERT INTO memvec.embedding_work (space_id, kind, row_id, content_hash, leased_until)
SELECT current_setting('erase.space')::integer, 'entry', m.id, m.content_hash, now() FROM memvec.memory_entries AS m WHERE m.content LIKE 'erasedkiwi%';

-- Refusals

SELECT memvec_tests.act_as('tap_admin');
SELECT throws_ok($$ SELECT memvec.erase_person(NULL) $$, 'MV001', NULL, 'no key is refused');
SELECT throws_ok($$ SELECT memvec.erase_person(E' \n', false) $$, 'MV001', NULL, 'and a blank one');
SELECT throws_ok($$ SELECT memvec.erase_person('erase-child', false) $$, 'MV001', NULL, 'and a theme');
SELECT throws_ok($$ SELECT memvec.erase_person('WhatsApp-DM', false) $$, 'MV001', NULL, 'and a whole sink');
SELECT throws_ok($$ SELECT memvec.erase_person('skill-bench', false) $$, 'MV001', NULL, 'and benchmarks');
SELECT throws_ok($$ SELECT memvec.erase_person('agent:main:telegram:dm:erase-ann', false, 0) $$, 'MV001', NULL, 'and a limit of nothing');

-- Dry run

CREATE TEMP TABLE dry AS SELECT * FROM memvec.erase_person('agent:main:telegram:dm:erase-ann');
SELECT set_eq(
    $$ SELECT regexp_replace(table_name, '_[0-9]+$', ''), action, rows, remaining FROM dry $$,
    $$ VALUES ('memory_entries', 'deleted', 3::bigint, 0::bigint), ('conversations', 'deleted', 3, 0), ('entry_embeddings', 'deleted', 1, 0),
              ('turn_embeddings', 'deleted', 3, 0), ('embedding_work', 'deleted', 1, 0), ('entry_sources', 'deleted', 1, 0),
              ('memory_history', 'deleted', 1, 0), ('memory_agent_edges', 'deleted', 2, 0), ('applied_ops', 'emptied', 1, 0),
              ('memory_agents', 'deleted', 1, 0), ('theme_counts', 'deleted', 1, 0), ('identity_aliases', 'deleted', 1, 0) $$,
    'a dry run counts every table'
);
CREATE TEMP TABLE dry_two AS SELECT * FROM memvec.erase_person(' agent:other:telegram:dm:erase-ANN ', true, 4);
SELECT results_eq(
    $$ SELECT table_name, rows, remaining FROM dry_two WHERE table_name IN ('conversations', 'memory_agent_edges', 'memory_agents', 'memory_entries', 'memory_history') $$,
    $$ VALUES ('conversations', 0::bigint, 3::bigint), ('memory_agent_edges', 2, 0), ('memory_agents', 0, 1), ('memory_entries', 1, 2), ('memory_history', 1, 0) $$,
    'one with a limit counts what one batch would do, for any spelling of the key'
);
RESET SESSION AUTHORIZATION;
SELECT is((SELECT count(*) FROM memvec.memory_entries WHERE content LIKE 'erased%ann'), 3::bigint, 'and deletes nothing');
SELECT ok(
    (SELECT count(*) > 5 AND bool_and(dry_run AND acted_by = 'tap_admin' AND parameters ->> 'person' = :'ann')
       FROM memvec.maintenance_log WHERE operation = 'erase_person'),
    'both are in the log as dry runs, with the person'
);
DELETE FROM memvec.maintenance_log WHERE operation = 'erase_person';

-- Execution, in batches

SELECT memvec_tests.act_as('tap_admin');
SELECT results_eq(
    $$ SELECT * FROM memvec.erase_person('agent:main:telegram:dm:erase-ann', false, 4) $$, $$ SELECT * FROM dry_two $$,
    'a batch does what its dry run said'
);
CREATE TEMP TABLE rest AS SELECT * FROM memvec.erase_person('agent:main:telegram:dm:erase-ann', false);
SELECT is((SELECT sum(remaining) FROM rest), 0::numeric, 'then nothing remains');
SELECT set_eq(
    $$ SELECT table_name, action, r.rows + t.rows FROM rest AS r JOIN dry_two AS t USING (table_name, action) $$,
    $$ SELECT table_name, action, rows FROM dry $$,
    'the batches together did what the first dry run said'
);
SELECT is((SELECT sum(rows) FROM memvec.erase_person('agent:main:telegram:dm:erase-ann', false)), 0::numeric, 'once more does nothing');
RESET SESSION AUTHORIZATION;

SELECT is(pg_temp.left_of('erased%ann'), 0::bigint, 'no text of theirs is in any table');
SELECT is(pg_temp.left_of('erase-ann'), 0::bigint, 'nor their key');
SELECT is(pg_temp.left_of(encode(sha256('agent:main:telegram:dm:erase-ann'), 'hex')), 0::bigint, 'nor a hash of it');
SELECT is(pg_temp.left_of('s-ann'), 0::bigint, 'nor their sessions');
SELECT is(
    pg_temp.left_of(:'ann'), (SELECT count(*) FROM memvec.maintenance_log WHERE operation = 'erase_person'),
    'the person is in the log only'
);
SELECT is_empty(
    format($$ SELECT * FROM memvec.applied_ops WHERE content_hash = memvec.vector_hash(sha256('erasedkiwi ann'), %L) $$, :'ann'),
    'the results of their operations are empty'
);
SELECT ok((SELECT bool_and(acted_by = 'tap_admin' AND NOT dry_run) FROM memvec.maintenance_log WHERE operation = 'erase_person'), 'it is logged by whom');
SELECT is_empty(
    $$ SELECT tablename, attname FROM pg_stats
        WHERE schemaname = 'memvec' AND (most_common_vals::text LIKE '%erased%ann%' OR histogram_bounds::text LIKE '%erased%ann%'
                                         OR most_common_elems::text LIKE '%erasedraw%') $$,
    'nor has the planner a sample'
);

-- The others

SELECT is((SELECT count(*) FROM memvec.memory_entries WHERE content LIKE 'erased%bob'), 2::bigint, 'another person keeps their notes');
SELECT is((SELECT count(*) FROM memvec.conversations WHERE content LIKE 'erased%bob'), 3::bigint, 'and turns');
SELECT is((SELECT count(*) FROM memvec.memory_history WHERE content LIKE 'erased%bob'), 1::bigint, 'and history');
SELECT is((SELECT count(*) FROM memvec.memory_agent_edges WHERE parent_session_id LIKE '%-bob'), 2::bigint, 'and edges');
SELECT is((SELECT count(*) FROM memvec.memory_entries WHERE content = 'stays'), 1::bigint, 'a theme keeps its notes');

SELECT memvec_tests.act_as('hermes');
SELECT is(
    (SELECT outcome FROM memvec.apply_ops(jsonb_build_array(jsonb_build_object(
        'op_id', md5('agent:main:telegram:dm:erase-ann')::uuid, 'op', 'add_memory', 'identity', 'agent:main:telegram:dm:erase-ann',
        'target', 'memory', 'content', 'erasedkiwi ann')))),
    'added', 'an operation that was applied before is answered as done'
);
SELECT is_empty(
    $$ SELECT content FROM memvec.recall_memory('agent:main:telegram:dm:erase-ann', 'erasedkiwi') $$, 'and does not bring the text back'
);
SELECT is(
    (SELECT outcome FROM memvec.add_memory('agent:main:telegram:dm:erase-ann', 'memory', 'a new start')), 'added',
    'the person may begin anew'
);
RESET SESSION AUTHORIZATION;

-- Aliases that come and go

CREATE FUNCTION pg_temp.say(p_key text, p_content text, p_alias_of text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM memvec.identity_aliases AS a WHERE a.alias = p_key;
    IF p_alias_of IS NOT NULL THEN
        INSERT INTO memvec.identity_aliases VALUES (p_key, p_alias_of);
    END IF;
    PERFORM memvec.add_memory(p_key, 'memory', p_content);
END
$$;
SELECT pg_temp.say('agent:main:telegram:dm:erase-eve', 'erasedlime 1 eve');
SELECT pg_temp.say('agent:main:telegram:dm:erase-eve', 'erasedlime 2 eve', 'external-group');
SELECT pg_temp.say('agent:main:telegram:dm:erase-eve', 'erasedlime 3 eve', 'erase-child');
SELECT memvec_tests.act_as('tap_admin');
SET LOCAL client_min_messages = error;
SELECT is((SELECT sum(rows) FROM memvec.erase_person('agent:main:telegram:dm:erase-eve') WHERE table_name = 'memory_entries'), 2::numeric,
          'what was written before an alias led the key away is counted');
CREATE TEMP TABLE led AS SELECT * FROM memvec.erase_person('agent:main:telegram:dm:erase-eve', false);
RESET client_min_messages;
RESET SESSION AUTHORIZATION;
SELECT is((SELECT sum(remaining) FROM led), 0::numeric, 'and erased from both sinks');
SELECT is((SELECT array_agg(content) FROM memvec.memory_entries WHERE content LIKE 'erasedlime%'), '{erasedlime 3 eve}',
          'what the theme was given since is the theme''s');
SELECT is(pg_temp.left_of('erase-eve'), 0::bigint, 'the alias is gone with the key');

SELECT pg_temp.say('erase-nick', 'erasedlime 4 eve', 'agent:main:telegram:dm:erase-eve');
SELECT memvec_tests.act_as('tap_admin');
SELECT is((SELECT sum(rows) FROM memvec.erase_person('agent:main:telegram:dm:erase-eve', false) WHERE table_name IN ('memory_entries', 'identity_aliases')),
          2::numeric, 'an alias that leads to the key goes with it');
RESET SESSION AUTHORIZATION;
SELECT is(pg_temp.left_of('erase-eve'), 0::bigint, 'so the key is nowhere');

-- A table without rows

DELETE FROM memvec.identity_aliases;
INSERT INTO memvec.identity_aliases SELECT 'agent:main:telegram:dm:erase-zoe:' || i, 'whatsapp-dm' FROM generate_series(1, 3) AS i;
ANALYZE memvec.identity_aliases;
SELECT memvec_tests.act_as('tap_admin');
SELECT sum(e.rows) AS gone FROM generate_series(1, 3) AS i, memvec.erase_person('agent:main:telegram:dm:erase-zoe:' || i, false) AS e \gset
RESET SESSION AUTHORIZATION;
SELECT CASE
    WHEN current_setting('server_version_num')::integer < 180000 THEN skip('before PostgreSQL 18 the samples of a table go with its next rows', 1)
    ELSE is(
        (SELECT count(*) FROM pg_stats WHERE schemaname = 'memvec' AND histogram_bounds::text LIKE '%erase-zoe%'), 0::bigint,
        'the planner keeps no sample of a table that is empty now'
    )
END;

SELECT * FROM finish();
ROLLBACK;
