BEGIN;
SELECT plan(53);
SELECT memvec_tests.alone();

-- The contract

SELECT is(
    pg_get_function_arguments('memvec.add_memory'::regproc),
    'p_identity text, p_target text, p_content text, p_metadata jsonb DEFAULT ''{}''::jsonb, p_source uuid DEFAULT NULL::uuid, '
    'p_embedding halfvec DEFAULT NULL::halfvec, p_space integer DEFAULT NULL::integer, p_embed boolean DEFAULT true, '
    'p_governance jsonb DEFAULT NULL::jsonb, OUT id bigint, OUT outcome text, OUT content_hash bytea',
    'arguments and columns'
);
SELECT volatility_is('memvec', 'add_memory', 'volatile', 'volatile');
SELECT is_definer('memvec', 'add_memory', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.add_memory'), '{hermes,tap_admin}', 'who may execute it');

SELECT memvec_tests.act_as('tap_admin');
SELECT set_config('add_memory.space', memvec.add_embedding_space('add_memory', 8)::text, true);

-- A new note

SELECT memvec_tests.act_as('hermes');
CREATE TEMP TABLE added AS
SELECT * FROM memvec.add_memory(' Add_Memory-A', 'memory', U&'\3000 The cluster runs PostgreSQL 18. \000A', '{"by": "tool"}');
SELECT is((SELECT outcome FROM added), 'added', 'a new note is added');
SELECT is(
    (SELECT content_hash FROM added), sha256('The cluster runs PostgreSQL 18.'),
    'its hash is the SHA-256 of the trimmed text'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT id = (SELECT id FROM added), agent_identity, person_key, target, content, embed, created_at = now(),
              updated_at = now(), metadata, search @@ to_tsquery('english', 'cluster & postgresql'),
              search_version::text = memvec.setting('search_version')
         FROM memvec.memory_entries WHERE agent_identity = 'add_memory-a' $$,
    $$ VALUES (true, 'add_memory-a', NULL::uuid, 'memory', 'The cluster runs PostgreSQL 18.', true, true, true,
               '{"by": "tool"}'::jsonb, true, true) $$,
    'it is stored trimmed, under the theme that its key stands for, and can be searched'
);

-- What is the same note, and what is another

SELECT memvec_tests.act_as('hermes');
SELECT is(a.outcome, t.outcome, t.description)
FROM (VALUES
    ('add_memory-a', 'memory', 'The cluster runs PostgreSQL 18.', 'duplicate', 'the same text is a duplicate'),
    ('ADD_MEMORY-A', 'memory', '  The cluster runs PostgreSQL 18.  ', 'duplicate', 'in another spelling of theme and text too'),
    ('add_memory-a', 'memory', 'the cluster runs PostgreSQL 18.', 'added', 'another case is another note'),
    ('add_memory-a', 'memory', 'The cluster  runs PostgreSQL 18.', 'added', 'another space inside is another note'),
    ('add_memory-a', 'user', 'The cluster runs PostgreSQL 18.', 'added', 'another target is another note'),
    ('add_memory-b', 'memory', 'The cluster runs PostgreSQL 18.', 'added', 'another theme is another note'),
    ('agent:main:sms:dm:add_memory-1', 'memory', 'The cluster runs PostgreSQL 18.', 'added', 'a person of a sink has their own'),
    ('agent:main:sms:dm:add_memory-2', 'memory', 'The cluster runs PostgreSQL 18.', 'added', 'and so has the next person'),
    ('agent:x:sms:dm:ADD_MEMORY-2', 'memory', 'The cluster runs PostgreSQL 18.', 'duplicate', 'but not twice'),
    ('agent:main:sms:group:add_memory-2', 'memory', 'The cluster runs PostgreSQL 18.', 'added', 'nor is it theirs in a group')
) AS t (identity, target, content, outcome, description)
CROSS JOIN LATERAL memvec.add_memory(t.identity, t.target, t.content, '{"by": "other"}') AS a;
SELECT is(
    (memvec.add_memory('add_memory-a', 'memory', 'The cluster runs PostgreSQL 18.')).id, (SELECT id FROM added),
    'a duplicate names the note that is there'
);
RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT metadata FROM memvec.memory_entries WHERE id = (SELECT id FROM added)), '{"by": "tool"}'::jsonb,
    'which keeps its metadata'
);
SELECT results_eq(
    $$ SELECT agent_identity, count(DISTINCT person_key), count(*)
         FROM memvec.memory_entries WHERE content = 'The cluster runs PostgreSQL 18.' AND person_key IS NOT NULL
        GROUP BY agent_identity ORDER BY agent_identity $$,
    $$ VALUES ('external-group', 1::bigint, 1::bigint), ('whatsapp-dm', 2, 2) $$,
    'every row of a sink belongs to one person'
);

-- Refused

SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    format('SELECT memvec.add_memory(%L, %L, %L)', 'add_memory-c', t.target, t.content), 'MV001', NULL, t.description
)
FROM (VALUES
    ('memory', NULL, 'no text is refused'),
    ('memory', '', 'an empty text is refused'),
    ('memory', U&' \00A0\3000\000A', 'a blank text is refused'),
    (NULL, 'x', 'no target is refused'),
    ('Memory', 'x', 'an unknown target is refused')
) AS t (target, content, description);
SELECT throws_ok(
    format($$ SELECT memvec.add_memory('add_memory-c', 'memory', 'x', p_embedding => memvec_tests.vec(1, %s), p_space => %L) $$,
           t.dim, t.space),
    t.state, NULL, t.description
)
FROM (VALUES
    (8, '0', 'MV004', 'an unknown space is refused'),
    (8, NULL, 'MV004', 'a vector without a space is refused'),
    (7, current_setting('add_memory.space'), 'MV005', 'a vector that is too short is refused'),
    (9, current_setting('add_memory.space'), 'MV005', 'one that is too long is refused')
) AS t (dim, space, state, description);
RESET SESSION AUTHORIZATION;
SELECT is_empty(
    $$ SELECT * FROM memvec.memory_entries WHERE agent_identity = 'add_memory-c' $$, 'of what is refused nothing is stored'
);

-- Vectors

CREATE FUNCTION pg_temp.vectors(p_content text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_count bigint;
BEGIN
    EXECUTE format(
        'SELECT count(*) FROM memvec.%I AS e JOIN memvec.memory_entries AS m USING (id, agent_identity, target)
          WHERE m.content = $1 AND e.person_key IS NOT DISTINCT FROM m.person_key AND e.embedding = memvec_tests.vec(1)',
        (SELECT entry_table FROM memvec.embedding_spaces WHERE id = current_setting('add_memory.space')::integer)
    ) INTO v_count USING p_content;
    RETURN v_count;
END;
$$;

SELECT memvec_tests.act_as('hermes');
SELECT memvec.add_memory('add_memory-v', 'memory', 'with vector', p_embedding => memvec_tests.vec(1), p_space => s.id)
FROM (SELECT current_setting('add_memory.space')::integer AS id) AS s;
SELECT memvec.add_memory('add_memory-v', 'memory', 'with vector', p_embedding => memvec_tests.vec(2), p_space => s.id)
FROM (SELECT current_setting('add_memory.space')::integer AS id) AS s;
SELECT memvec.add_memory('add_memory-v', 'memory', 'healed');
SELECT is(
    (memvec.add_memory('add_memory-v', 'memory', 'healed', p_embedding => memvec_tests.vec(1), p_space => s.id)).outcome,
    'duplicate', 'a duplicate may bring the vector'
)
FROM (SELECT current_setting('add_memory.space')::integer AS id) AS s;
SELECT is(
    (memvec.add_memory('add_memory-v', 'memory', 'zero', p_embedding => '[0,0,0,0,0,0,0,0]', p_space => s.id)).outcome,
    'added', 'a note with a vector of length zero is stored'
)
FROM (SELECT current_setting('add_memory.space')::integer AS id) AS s;
SELECT memvec.add_memory(
    'add_memory-v', 'memory', 'never', p_embedding => memvec_tests.vec(1), p_space => s.id, p_embed => false
)
FROM (SELECT current_setting('add_memory.space')::integer AS id) AS s;
SELECT memvec.add_memory('add_memory-v', 'memory', 'never', p_embedding => memvec_tests.vec(1), p_space => s.id)
FROM (SELECT current_setting('add_memory.space')::integer AS id) AS s;
SELECT memvec.add_memory('add_memory-v', 'memory', 'either', p_embed => NULL);
SELECT memvec.add_memory('agent:main:sms:dm:add_memory-v', 'user', 'of a person', p_embedding => memvec_tests.vec(1), p_space => s.id)
FROM (SELECT current_setting('add_memory.space')::integer AS id) AS s;
SELECT memvec.add_memory('add_memory-v', 'memory', 'space without vector', p_space => 0);

RESET SESSION AUTHORIZATION;
SELECT is(pg_temp.vectors(t.content), t.expected::bigint, t.description)
FROM (VALUES
    ('with vector', 1, 'a vector is stored once, and the first one stays'),
    ('healed', 1, 'a duplicate gives a note the vector that it lacked'),
    ('zero', 0, 'a vector of length zero is not stored'),
    ('never', 0, 'nor one for a note that is never to be embedded, however often it is offered'),
    ('of a person', 1, 'a person''s vector is that person''s')
) AS t (content, expected, description);
SELECT is(
    (SELECT string_agg(content, ', ' ORDER BY content) FROM memvec.memory_entries WHERE agent_identity = 'add_memory-v' AND NOT embed),
    'never', 'whether a note may be embedded is kept; no answer means yes'
);

-- Sources

SELECT memvec_tests.act_as('hermes');
SELECT memvec.add_memory('add_memory-s', 'memory', 'from files', p_source => t.source)
FROM (VALUES
    (NULL::uuid), ('00000000-0000-0000-0000-00000000ad01'), ('00000000-0000-0000-0000-00000000ad02'),
    ('00000000-0000-0000-0000-00000000ad01')
) AS t (source);
RESET SESSION AUTHORIZATION;
SELECT is(
    ARRAY(SELECT right(s.source::text, 4)
            FROM memvec.entry_sources AS s
            JOIN memvec.memory_entries AS m ON m.id = s.entry_id
           WHERE m.agent_identity = 'add_memory-s' ORDER BY 1),
    '{ad01,ad02}', 'each home that holds a note is kept once'
);

-- Metadata of any shape, and governance

SELECT memvec_tests.act_as('hermes');
SELECT memvec.add_memory('add_memory-m', 'memory', '1', NULL);
SELECT memvec.add_memory('add_memory-m', 'memory', '2', '[1]');
SELECT memvec.add_memory('add_memory-m', 'memory', '3', p_governance => '{"aliases": {"add_memory-m": "add_memory-n"}}');
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT agent_identity, content, metadata FROM memvec.memory_entries WHERE agent_identity LIKE 'add\_memory-_' AND content ~ '^.$'
        ORDER BY content $$,
    $$ VALUES ('add_memory-m', '1', '{}'::jsonb), ('add_memory-m', '2', '{"value": [1]}'), ('add_memory-n', '3', '{}') $$,
    'metadata is an object always; a host''s rules hold'
);

-- Texts that break things

SELECT memvec_tests.act_as('hermes');
CREATE TEMP TABLE hard AS
SELECT * FROM (VALUES
    ('quotes', $$it's "quoted" $1 %s \$$),
    ('injection', $$'; DROP TABLE memvec.memory_entries; --$$),
    ('astral', U&'\+01F600 \+020000'),
    ('right to left', U&'\202Eabc\202C'),
    ('one character', 'x'),
    ('control characters', E'a\001b\tc'),
    ('3,000 characters without a space', repeat('x', 3000)),
    ('2,000,000 characters', 'blob-text ' || (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 62500) AS i)),
    ('120,000 words', 'huge-text ' || (SELECT string_agg(left(md5(i::text), 12), ' ') FROM generate_series(1, 120000) AS i)),
    ('500,000 CJK characters', repeat(U&'\6F22\5B57\4EEE\540D\8A9E', 100000))
) AS t (description, content);
GRANT SELECT ON hard TO public;
SELECT is((memvec.add_memory('add_memory-h', 'memory', h.content)).outcome, 'added', h.description || ' can be stored')
FROM hard AS h;
RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT count(*) FROM hard AS h
       JOIN memvec.memory_entries AS m ON m.content = h.content AND m.content_hash = sha256(convert_to(h.content, 'UTF8'))
      WHERE m.agent_identity = 'add_memory-h'),
    (SELECT count(*) FROM hard), 'each of them whole'
);
SELECT is(
    (SELECT count(*) FROM memvec.memory_entries WHERE agent_identity = 'add_memory-h' AND search @@ to_tsquery('simple', t.word)),
    1::bigint, 'and the long ones are found: ' || t.word
)
FROM (VALUES ('blob'), ('huge')) AS t (word);

SELECT * FROM finish();
ROLLBACK;
