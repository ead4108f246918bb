-- Which note an edit means is tested in find_entries.sql; here, what becomes of it.
BEGIN;
SELECT plan(49);
SELECT memvec_tests.alone();

-- The contract

SELECT is(
    pg_get_function_arguments('memvec.replace_memory'::regproc),
    'p_identity text, p_target text, p_old_text text, p_content text, p_previous_content text DEFAULT NULL::text, '
    'p_metadata jsonb DEFAULT ''{}''::jsonb, p_source uuid DEFAULT NULL::uuid, p_embedding halfvec DEFAULT NULL::halfvec, '
    'p_space integer DEFAULT NULL::integer, p_embed boolean DEFAULT true, p_governance jsonb DEFAULT NULL::jsonb, '
    'OUT id bigint, OUT outcome text, OUT matches integer, OUT content_hash bytea',
    'arguments and columns'
);
SELECT volatility_is('memvec', 'replace_memory', 'volatile', 'volatile');
SELECT is_definer('memvec', 'replace_memory', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.replace_memory'), '{hermes,tap_admin}', 'who may execute it');
SELECT is(memvec_tests.callers('memvec.swap_entry'), '{}', 'its inside is internal');
SELECT is(memvec_tests.callers('memvec.release_entry'), '{}', 'all of it');

SELECT memvec_tests.act_as('tap_admin');
SELECT set_config('replace_memory.space', memvec.add_embedding_space('replace_memory', 8)::text, true);

-- What a theme holds, oldest first
CREATE FUNCTION pg_temp.notes(p_theme text) RETURNS text []
LANGUAGE sql SECURITY DEFINER AS $$
    SELECT array_agg(m.content ORDER BY m.content) FROM memvec.memory_entries AS m WHERE m.agent_identity = p_theme
$$;
RESET SESSION AUTHORIZATION;
ALTER FUNCTION pg_temp.notes OWNER TO memvec_owner;

-- One edit after another, as a user reported them

SELECT memvec_tests.act_as('hermes');
SELECT memvec.add_memory('replace_memory-a', 'memory', t.content, '{"by": "tool", "n": 1}')
FROM (VALUES ('staging port is 5432 (old note, kept)'), ('port is 5432'), ('port is 6432'), ('tmp: port list')) AS t (content);
CREATE TEMP TABLE edited AS
SELECT * FROM memvec.replace_memory('Replace_Memory-A', 'memory', 'port is 5432', ' port is 5433 ', 'port is 5432', '{"n": 2}');
SELECT results_eq(
    $$ SELECT outcome, matches, content_hash FROM edited $$, $$ VALUES ('replaced', 1, sha256('port is 5433')) $$,
    'one note is replaced'
);
SELECT is(
    pg_temp.notes('replace_memory-a'),
    '{port is 5433,port is 6432,"staging port is 5432 (old note, kept)",tmp: port list}', 'that one and no other'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT content, content_hash, metadata, search @@ '5433'::tsquery AND NOT search @@ '5432'::tsquery, updated_at = now()
         FROM memvec.memory_entries WHERE id = (SELECT id FROM edited) $$,
    $$ VALUES ('port is 5433', sha256('port is 5433'), '{"by": "tool", "n": 2}'::jsonb, true, true) $$,
    'the row keeps its id; text, hash and search are new, metadata is merged'
);
SELECT results_eq(
    $$ SELECT entry_id = (SELECT id FROM edited), agent_identity, person_key, target, content, metadata, action, acted_by
         FROM memvec.memory_history WHERE agent_identity = 'replace_memory-a' $$,
    $$ VALUES (true, 'replace_memory-a', NULL::uuid, 'memory', 'port is 5432', '{"by": "tool", "n": 1}'::jsonb, 'replace', 'hermes'::name) $$,
    'what it was is in the history, with the login that did it'
);

SELECT memvec_tests.act_as('hermes');
SELECT results_eq(
    $$ SELECT outcome, matches FROM memvec.replace_memory('replace_memory-a', 'memory', 'port is 5433', 'port is 6432', 'port is 5433') $$,
    $$ VALUES ('merged', 1) $$,
    'onto a text that exists: merged'
);
SELECT is(
    pg_temp.notes('replace_memory-a'),
    '{port is 6432,"staging port is 5432 (old note, kept)",tmp: port list}', 'the stale note is gone, the text is there once'
);
SELECT results_eq(
    $$ SELECT outcome, matches FROM memvec.replace_memory('replace_memory-a', 'memory', 'port', 'new note', 'no such entry') $$,
    $$ VALUES ('added', 0) $$,
    'a previous content that is not there: the new text is added'
);
SELECT results_eq(
    $$ SELECT outcome, matches FROM memvec.replace_memory('replace_memory-a', 'memory', 'port', 'newer note') $$,
    $$ VALUES ('ambiguous', 3) $$,
    'several notes: nothing is replaced'
);
SELECT is(
    pg_temp.notes('replace_memory-a'),
    '{new note,newer note,port is 6432,"staging port is 5432 (old note, kept)",tmp: port list}', 'and the new text is added'
);
SELECT results_eq(
    $$ SELECT outcome, matches FROM memvec.replace_memory('replace_memory-a', 'memory', 'new note', 'new note') $$,
    $$ VALUES ('replaced', 1) $$,
    'a text by itself'
);
SELECT results_eq(
    $$ SELECT outcome, matches FROM memvec.replace_memory('replace_memory-a', 'memory', 'list', 'tmp: list of ports') $$,
    $$ VALUES ('replaced', 1) $$,
    'a part of one note replaces that whole note'
);
SELECT is(
    pg_temp.notes('replace_memory-a'),
    '{new note,newer note,port is 6432,"staging port is 5432 (old note, kept)",tmp: list of ports}', 'it stands where the old one was'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT content, action FROM memvec.memory_history WHERE agent_identity = 'replace_memory-a' ORDER BY id $$,
    $$ VALUES ('port is 5432', 'replace'), ('port is 5433', 'replace'), ('tmp: port list', 'replace') $$,
    'each text that went is in the history, nothing else is'
);

-- Refused

SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    format('SELECT memvec.replace_memory(%L, %L, %L, %L, %L)', 'replace_memory-a', t.target, t.old, t.content, t.previous),
    'MV001', NULL, t.description
)
FROM (VALUES
    ('memory', '', 'overwritten', NULL, 'an empty pattern is refused'),
    ('memory', NULL, 'overwritten', NULL, 'so is none'),
    ('memory', U&' \00A0 ', 'overwritten', U&'\3000', 'so is a blank one'),
    ('memory', 'newer note', U&' \00A0 ', NULL, 'so is a blank new text'),
    ('memory', 'newer note', NULL, NULL, 'so is none'),
    (NULL, 'newer note', 'x', NULL, 'so is no target'),
    ('notes', 'newer note', 'x', NULL, 'so is an unknown one')
) AS t (target, old, content, previous, description);
SELECT throws_ok(
    format($$ SELECT memvec.replace_memory('replace_memory-a', 'memory', 'newer note', 'overwritten',
                                           p_embedding => memvec_tests.vec(1, %s), p_space => %L) $$, t.dim, t.space),
    t.state, NULL, t.description
)
FROM (VALUES
    (8, '0', 'MV004', 'a vector for an unknown space is refused'),
    (7, current_setting('replace_memory.space'), 'MV005', 'so is one of another width')
) AS t (dim, space, state, description);
SELECT is(
    pg_temp.notes('replace_memory-a'),
    '{new note,newer note,port is 6432,"staging port is 5432 (old note, kept)",tmp: list of ports}', 'and nothing has changed'
);

-- Signs

SELECT memvec.add_memory('replace_memory-l', 'memory', t.content)
FROM (VALUES ('50% off'), ('500 off'), ('a_b flag'), ('axb flag'), ('path c\d')) AS t (content);
SELECT memvec.replace_memory('replace_memory-l', 'memory', '50%', '60% off');
SELECT memvec.replace_memory('replace_memory-l', 'memory', 'a_b', '\1 & \\');
SELECT memvec.replace_memory('replace_memory-l', 'memory', 'c\d', '$1');
SELECT is(pg_temp.notes('replace_memory-l'), ARRAY['$1', '500 off', '60% off', '\1 & \\', 'axb flag'], 'signs are signs');

-- Persons: an edit of one never reaches another, nor the theme

SELECT memvec.add_memory(t.identity, 'memory', 'secret')
FROM (VALUES ('sms:dm:replace_memory-1'), ('sms:dm:replace_memory-2'), ('replace_memory-p')) AS t (identity);
SELECT is(
    (memvec.replace_memory('sms:dm:replace_memory-1', 'memory', 'secret', 'secret of 1')).outcome, 'replaced', 'a person''s own note'
);
SELECT is(
    (memvec.replace_memory('sms:dm:replace_memory-3', 'memory', 'secret', 'secret of 3')).outcome, 'added',
    'who has none finds none'
);
SELECT is(
    (memvec.replace_memory('whatsapp-dm', 'memory', 'secret', 'secret of nobody')).outcome, 'added',
    'the sink''s own name finds none'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT t.identity, m.content
         FROM (VALUES ('sms:dm:replace_memory-1'), ('sms:dm:replace_memory-2'), ('sms:dm:replace_memory-3'), ('whatsapp-dm'),
                      ('replace_memory-p')) AS t (identity)
        CROSS JOIN LATERAL memvec.canonical_identity(t.identity) AS c
         JOIN memvec.memory_entries AS m
           ON m.agent_identity = c.agent_identity AND m.person_key IS NOT DISTINCT FROM c.person_key
        WHERE m.content LIKE 'secret%'
        ORDER BY t.identity $$,
    $$ VALUES ('replace_memory-p', 'secret'), ('sms:dm:replace_memory-1', 'secret of 1'), ('sms:dm:replace_memory-2', 'secret'),
              ('sms:dm:replace_memory-3', 'secret of 3'), ('whatsapp-dm', 'secret of nobody') $$,
    'each holds their own'
);

-- Vectors

CREATE FUNCTION pg_temp.vector_of(p_content text) RETURNS public.halfvec
LANGUAGE plpgsql AS $$
DECLARE
    v_vector public.halfvec;
BEGIN
    EXECUTE format(
        'SELECT e.embedding FROM memvec.%I AS e JOIN memvec.memory_entries AS m USING (id)
          WHERE m.agent_identity = $2 AND m.content = $1',
        (SELECT entry_table FROM memvec.embedding_spaces WHERE id = current_setting('replace_memory.space')::integer)
    ) INTO v_vector USING p_content, 'replace_memory-v';
    RETURN v_vector;
END;
$$;
SELECT memvec_tests.act_as('hermes');
SELECT memvec.add_memory(
    'replace_memory-v', 'memory', t.content, p_embedding => memvec_tests.vec(1),
    p_space => current_setting('replace_memory.space')::integer
)
FROM (VALUES ('old 1'), ('old 2'), ('old 3'), ('same'), ('never 1')) AS t (content);
SELECT memvec.add_memory('replace_memory-v', 'memory', 'never 2', p_embed => false);
SELECT memvec.replace_memory('replace_memory-v', 'memory', 'old 1', 'new 1');
SELECT memvec.replace_memory(
    'replace_memory-v', 'memory', 'old 2', 'new 2', p_embedding => memvec_tests.vec(2),
    p_space => current_setting('replace_memory.space')::integer
);
SELECT memvec.replace_memory(
    'replace_memory-v', 'memory', 'old 3', 'new 1', p_embedding => memvec_tests.vec(2),
    p_space => current_setting('replace_memory.space')::integer
);
SELECT memvec.replace_memory('replace_memory-v', 'memory', 'same', 'same');
SELECT memvec.replace_memory(
    'replace_memory-v', 'memory', 'never 1', 'secret 1', p_embed => false, p_embedding => memvec_tests.vec(2),
    p_space => current_setting('replace_memory.space')::integer
);
SELECT memvec.replace_memory('replace_memory-v', 'memory', 'never 2', 'open 2');
RESET SESSION AUTHORIZATION;
SELECT is(pg_temp.vector_of(t.content), t.expected, t.description)
FROM (VALUES
    ('new 2', memvec_tests.vec(2), 'the vector of the old text goes, that of the new one comes'),
    ('new 1', memvec_tests.vec(2), 'a vector that the other note lacked comes with the text that is merged into it'),
    ('same', memvec_tests.vec(1), 'an unchanged text keeps its vector'),
    ('secret 1', NULL, 'a new text that is never to be embedded has none')
) AS t (content, expected, description);
SELECT is(
    (SELECT string_agg(content, ', ') FROM memvec.memory_entries WHERE agent_identity = 'replace_memory-v' AND NOT embed), 'secret 1',
    'whether a note may be embedded goes with the new text'
);

-- Homes: s1 and s2 hold the note in their files

SELECT memvec_tests.act_as('hermes');
SELECT set_config('r.s1', '00000000-0000-0000-0000-0000000000a1', true), set_config('r.s2', '00000000-0000-0000-0000-0000000000a2', true);
CREATE FUNCTION pg_temp.held(p_theme text) RETURNS text
LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(t.content || ':' || t.homes, ', ' ORDER BY t.content)
      FROM (SELECT m.content, coalesce(string_agg(right(s.source::text, 2), '+' ORDER BY s.source), '-') AS homes
              FROM memvec.memory_entries AS m LEFT JOIN memvec.entry_sources AS s ON s.entry_id = m.id
             WHERE m.agent_identity = p_theme
             GROUP BY m.content) AS t
$$;
RESET SESSION AUTHORIZATION;
ALTER FUNCTION pg_temp.held OWNER TO memvec_owner;
SELECT memvec_tests.act_as('hermes');
SELECT memvec.add_memory('replace_memory-s', 'memory', 'shared', p_source => s.source::uuid)
FROM (VALUES (current_setting('r.s1')), (current_setting('r.s2'))) AS s (source);
SELECT is(
    (memvec.replace_memory('replace_memory-s', 'memory', 'shared', 'renewed', p_source => current_setting('r.s1')::uuid)).outcome,
    'released', 'a note that another home holds is released'
);
SELECT is(pg_temp.held('replace_memory-s'), 'renewed:a1, shared:a2', 'it stays with that home, and the new text is this one''s');
SELECT is(
    (memvec.replace_memory('replace_memory-s', 'memory', 'shared', 'renewed', p_source => current_setting('r.s2')::uuid)).outcome,
    'merged', 'when the other home follows, the notes become one'
);
SELECT is(pg_temp.held('replace_memory-s'), 'renewed:a1+a2', 'which both hold');
SELECT is(
    (memvec.replace_memory('replace_memory-s', 'memory', 'renewed', 'by hand')).outcome,
    'replaced', 'an edit without a home is for everybody'
);
SELECT is(pg_temp.held('replace_memory-s'), 'by hand:a1+a2', 'who held the old text holds the new one');
SELECT is(
    (memvec.replace_memory('replace_memory-s', 'memory', 'by hand', 'by hand', p_source => current_setting('r.s1')::uuid)).outcome,
    'replaced', 'a text by itself is not released'
);
SELECT memvec.replace_memory('replace_memory-s', 'memory', 'not there', 'new', p_source => current_setting('r.s1')::uuid);
SELECT memvec.add_memory('replace_memory-s', 'memory', 'of no home');
SELECT memvec.replace_memory('replace_memory-s', 'memory', 'of no home', 'of one', p_source => current_setting('r.s1')::uuid);
SELECT is(
    pg_temp.held('replace_memory-s'), 'by hand:a1+a2, new:a1, of one:a1', 'a new text belongs to the home that wrote it'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT content FROM memvec.memory_history WHERE agent_identity = 'replace_memory-s' ORDER BY id $$,
    $$ VALUES ('shared'), ('renewed'), ('of no home') $$,
    'a released note is not in the history, for it is still there'
);

SELECT memvec_tests.act_as('hermes');
SELECT memvec.replace_memory(
    'replace_memory-x', 'memory', 'x', 'y', p_governance => '{"aliases": {"replace_memory-x": "replace_memory-y"}}'
);
SELECT is(pg_temp.notes('replace_memory-y'), '{y}', 'a host''s rules hold');

SELECT * FROM finish();
ROLLBACK;
