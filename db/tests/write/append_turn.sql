BEGIN;
SELECT plan(42);
SELECT memvec_tests.alone();

-- The contract

SELECT is(
    pg_get_function_arguments('memvec.append_turn'::regproc),
    'p_identity text, p_session_id text, p_role text, p_content text, p_parent_session_id text DEFAULT NULL::text, '
    'p_ts timestamp with time zone DEFAULT NULL::timestamp with time zone, p_metadata jsonb DEFAULT ''{}''::jsonb, '
    'p_embedding halfvec DEFAULT NULL::halfvec, p_space integer DEFAULT NULL::integer, p_embed boolean DEFAULT true, '
    'p_governance jsonb DEFAULT NULL::jsonb, OUT id bigint, OUT outcome text, OUT content_hash bytea',
    'arguments and columns'
);
SELECT volatility_is('memvec', 'append_turn', 'volatile', 'volatile');
SELECT is_definer('memvec', 'append_turn', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.append_turn'), '{hermes,tap_admin}', 'who may execute it');

SELECT memvec_tests.act_as('tap_admin');
SELECT set_config('append_turn.space', memvec.add_embedding_space('append_turn', 8)::text, true);

-- A new turn

SELECT memvec_tests.act_as('hermes');
CREATE TEMP TABLE first_turn AS
SELECT * FROM memvec.append_turn(
    'Append_Turn-A', ' s1 ', 'user', E'  Where does the cluster run?\n', ' s0 ', '2026-01-02 03:04:05+00', '{"by": "hook"}'
);
SELECT results_eq(
    $$ SELECT outcome, content_hash FROM first_turn $$, $$ VALUES ('added', sha256('Where does the cluster run?')) $$,
    'a new turn is added'
);
SELECT memvec.append_turn('append_turn-a', 's1', 'assistant', 'In Paris.');
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT id = (SELECT id FROM first_turn), person_key, session_id, parent_session_id, role, content, ts, metadata, embed,
              search @@ to_tsquery('english', 'clusters')
         FROM memvec.conversations WHERE agent_identity = 'append_turn-a' AND role = 'user' $$,
    $$ VALUES (true, NULL::uuid, 's1', 's0', 'user', 'Where does the cluster run?', '2026-01-02 03:04:05+00'::timestamptz,
               '{"by": "hook"}'::jsonb, true, true) $$,
    'it is stored with all that was said of it, trimmed'
);
SELECT is(
    (SELECT ROW(ts = now(), parent_session_id, metadata, embed)::text FROM memvec.conversations
      WHERE agent_identity = 'append_turn-a' AND role = 'assistant'),
    '(t,,{},t)', 'what is not said is now, none, nothing, yes'
);

-- What is the same turn, and what is another

SELECT memvec_tests.act_as('hermes');
SELECT is(a.outcome, t.outcome, t.description)
FROM (VALUES
    ('append_turn-a', 's1', 'user', 'Where does the cluster run?', 'duplicate', 'the same words in the same session are one turn'),
    ('APPEND_TURN-A', 's1 ', 'user', ' Where does the cluster run? ', 'duplicate', 'however they are trimmed'),
    ('append_turn-a', 's1', 'assistant', 'Where does the cluster run?', 'added', 'another role is another turn'),
    ('append_turn-a', 's2', 'user', 'Where does the cluster run?', 'added', 'another session is another turn'),
    ('append_turn-a', 'S1', 'user', 'Where does the cluster run?', 'added', 'sessions are told apart by case'),
    ('append_turn-a', 's1', 'user', 'where does the cluster run?', 'added', 'texts too'),
    ('append_turn-b', 's1', 'user', 'Where does the cluster run?', 'added', 'another theme is another turn'),
    ('append_turn-a', NULL, 'tool', 'output', 'added', 'without a session it is in the session default'),
    ('append_turn-a', ' ', 'tool', 'output', 'duplicate', 'a blank one is none'),
    ('append_turn-a', 'default', 'tool', 'output', 'duplicate', 'which is the session default'),
    ('append_turn-a', 's1', 'system', 'Be kind.', 'added', 'the system speaks too'),
    ('sms:dm:append_turn-1', 's1', 'user', 'Where does the cluster run?', 'added', 'a person of a sink has their own'),
    ('sms:dm:append_turn-2', 's1', 'user', 'Where does the cluster run?', 'added', 'and so has the next'),
    ('agent:main:sms:dm:append_turn-2', 's1', 'user', 'Where does the cluster run?', 'duplicate', 'but not twice')
) AS t (identity, session_id, role, content, outcome, description)
CROSS JOIN LATERAL memvec.append_turn(
    t.identity, t.session_id, t.role, t.content, 'other', '2027-01-01 00:00:00+00', '{"by": "other"}'
) AS a;
SELECT is(
    (memvec.append_turn('append_turn-a', 's1', 'user', 'Where does the cluster run?')).id, (SELECT id FROM first_turn),
    'a duplicate names the turn that is there'
);
RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT ROW(ts, parent_session_id, metadata)::text FROM memvec.conversations WHERE id = (SELECT id FROM first_turn)),
    ROW('2026-01-02 03:04:05+00'::timestamptz, 's0', '{"by": "hook"}'::jsonb)::text, 'which stays as it was'
);
SELECT is(
    (SELECT count(DISTINCT person_key) FROM memvec.conversations
      WHERE content = 'Where does the cluster run?' AND agent_identity = 'whatsapp-dm'),
    2::bigint, 'turns of a sink belong to their persons'
);

-- Cleaned

SELECT memvec_tests.act_as('hermes');
SELECT memvec.append_turn('append_turn-t', 's', 'user', t.ts::text, p_ts => t.ts)
FROM (VALUES
    ('infinity'::timestamptz), ('-infinity'), ('294276-12-31Z'), ('4713-01-01Z BC'), ('0001-01-02Z'), ('9999-12-30Z')
) AS t (ts);
CREATE TEMP TABLE long_session AS
SELECT string_agg(md5(i::text), '') AS id, string_agg(md5(i::text), '') || 'x' AS other_id FROM generate_series(1, 30000) AS i;
SELECT is(
    (SELECT array_agg((memvec.append_turn('append_turn-l', t.session_id, 'user', 'x', t.session_id)).outcome)
       FROM long_session AS l CROSS JOIN LATERAL (VALUES (1, l.id), (2, l.id), (3, l.other_id)) AS t (position, session_id)),
    '{added,duplicate,added}', 'sessions of any length are told apart'
);
SELECT is(
    (SELECT array_agg(length(r.session_id)) FROM long_session AS l, memvec.recall_conversation('append_turn-l', 'x', p_session_id => l.id) AS r),
    '{200}', 'found by their id and stored short'
);
SELECT is_empty(
    $$ SELECT r.id FROM long_session AS l,
           memvec.recall_conversation('append_turn-l', 'x', p_session_id => l.id, p_exclude_session => l.id) AS r $$,
    'and left out by their id'
);
RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT array_agg(ts = now() ORDER BY id) FROM memvec.conversations WHERE agent_identity = 'append_turn-t'),
    '{t,t,t,t,f,f}', 'a time that no calendar of a client has is now'
);

-- Refused

SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    format('SELECT memvec.append_turn(%L, %L, %L, %L)', 'append_turn-c', 's', t.role, t.content), 'MV001', NULL, t.description
)
FROM (VALUES
    ('user', NULL, 'no text is refused'),
    ('user', U&'\00A0 \3000', 'a blank text is refused'),
    (NULL, 'x', 'no role is refused'),
    ('User', 'x', 'an unknown role is refused')
) AS t (role, content, description);
SELECT throws_ok(
    format($$ SELECT memvec.append_turn('append_turn-c', 's', 'user', 'x', p_embedding => memvec_tests.vec(1, %s), p_space => %L) $$,
           t.dim, t.space),
    t.state, NULL, t.description
)
FROM (VALUES
    (8, '0', 'MV004', 'an unknown space is refused'),
    (8, NULL, 'MV004', 'a vector without a space is refused'),
    (7, current_setting('append_turn.space'), 'MV005', 'a vector of another width is refused')
) AS t (dim, space, state, description);
RESET SESSION AUTHORIZATION;
SELECT is_empty(
    $$ SELECT * FROM memvec.conversations WHERE agent_identity = 'append_turn-c' $$, 'of what is refused nothing is stored'
);

-- Vectors

SELECT memvec_tests.act_as('hermes');
SELECT memvec.append_turn('append_turn-v', 's', 'user', t.content, p_embedding => t.vector, p_space => s.id, p_embed => t.embed)
FROM (VALUES
    ('with vector', memvec_tests.vec(1), true), ('with vector', memvec_tests.vec(2), true),
    ('healed', NULL, true), ('healed', memvec_tests.vec(1), true),
    ('zero', '[0,0,0,0,0,0,0,0]', true),
    ('never', memvec_tests.vec(1), false), ('never', memvec_tests.vec(1), true)
) AS t (content, vector, embed)
CROSS JOIN (SELECT current_setting('append_turn.space')::integer AS id) AS s;
RESET SESSION AUTHORIZATION;
CREATE FUNCTION pg_temp.vectors() RETURNS text []
LANGUAGE plpgsql AS $$
DECLARE
    v_vectors text[];
BEGIN
    EXECUTE format(
        'SELECT array_agg(c.content ORDER BY c.content)
           FROM memvec.%I AS e JOIN memvec.conversations AS c USING (id, agent_identity, session_id, ts)
          WHERE c.agent_identity = $1 AND e.embedding = memvec_tests.vec(1)',
        (SELECT turn_table FROM memvec.embedding_spaces WHERE id = current_setting('append_turn.space')::integer)
    ) INTO v_vectors USING 'append_turn-v';
    RETURN v_vectors;
END;
$$;
SELECT is(
    pg_temp.vectors(), '{healed,"with vector"}',
    'a vector is stored once, the first one; a duplicate heals; zero and never-embed have none'
);
SELECT is(
    (SELECT string_agg(content, ', ' ORDER BY content) FROM memvec.conversations WHERE agent_identity = 'append_turn-v' AND NOT embed),
    'never', 'whether a turn may be embedded is kept'
);

-- Size and governance

SELECT memvec_tests.act_as('hermes');
SELECT is(
    (memvec.append_turn('append_turn-h', 's', 'tool', t.content)).content_hash, sha256(convert_to(t.content, 'UTF8')),
    t.description || ' are stored whole'
)
FROM (VALUES
    ('2,000,000 characters', repeat(md5('x'), 62500)),
    ('120,000 words', (SELECT string_agg(left(md5(i::text), 12), ' ') FROM generate_series(1, 120000) AS i))
) AS t (description, content);
SELECT memvec.append_turn('append_turn-x', 's', 'user', 'x', p_governance => '{"aliases": {"append_turn-x": "append_turn-y"}}');
RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT array_agg(length(content) ORDER BY length(content)) FROM memvec.conversations WHERE agent_identity = 'append_turn-h'),
    '{1559999,2000000}', 'every character of them'
);
SELECT isnt_empty($$ SELECT * FROM memvec.conversations WHERE agent_identity = 'append_turn-y' $$, 'a host''s rules hold');

SELECT * FROM finish();
ROLLBACK;
