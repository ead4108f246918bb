-- The door of the hosts' outboxes. What each operation does is tested with the function it names; here, that a batch does
-- it in order, exactly once, and that a bad one harms no other.
BEGIN;
SELECT plan(87);
SELECT memvec_tests.alone();

-- The contract

SELECT is(
    pg_get_function_arguments('memvec.apply_ops'::regproc) || ' -> ' || pg_get_function_result('memvec.apply_ops'::regproc),
    'p_ops jsonb -> TABLE(op_id uuid, outcome text, id bigint, content_hash bytea, detail jsonb, error_code text, message text)',
    'arguments and columns'
);
SELECT volatility_is('memvec', 'apply_ops', 'volatile', 'volatile');
SELECT is_definer('memvec', 'apply_ops', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.apply_ops'), '{hermes,tap_admin}', 'who may execute it');
SELECT is_empty(
    $$ SELECT p.proname FROM pg_proc AS p
        WHERE p.pronamespace = 'memvec'::regnamespace
          AND p.proname IN ('apply_run', 'apply_edit', 'apply_turns', 'apply_entries', 'resolve_ops', 'batch_locks', 'operation_runs',
                            'put_turns', 'put_entries', 'put_entry')
          AND memvec_tests.callers(p.oid::regproc) <> '{}' $$,
    'its inside is internal'
);

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('apply_ops', 8);

-- What a theme holds, and an operation's id by its number
CREATE FUNCTION pg_temp.notes(p_theme text) RETURNS text []
LANGUAGE sql SECURITY DEFINER AS $$
    SELECT coalesce(array_agg(m.content ORDER BY m.content), '{}') FROM memvec.memory_entries AS m WHERE m.agent_identity = p_theme
$$;
CREATE FUNCTION pg_temp.turns(p_theme text) RETURNS text []
LANGUAGE sql SECURITY DEFINER AS $$
    SELECT coalesce(array_agg(c.content ORDER BY c.id), '{}') FROM memvec.conversations AS c WHERE c.agent_identity = p_theme
$$;
RESET SESSION AUTHORIZATION;
ALTER FUNCTION pg_temp.notes OWNER TO memvec_owner;
ALTER FUNCTION pg_temp.turns OWNER TO memvec_owner;
CREATE FUNCTION pg_temp.ops(VARIADIC p_ops text []) RETURNS jsonb
LANGUAGE sql AS $$
    SELECT jsonb_agg(
               jsonb_build_object('op_id', '00000000-0000-0000-0000-' || lpad(split_part(o, ' ', 1), 12, '0'),
                                  'op', split_part(o, ' ', 2))
               || substr(o, strpos(o, '{'))::jsonb
               ORDER BY n
           )
      FROM unnest(p_ops) WITH ORDINALITY AS t (o, n)
$$;

-- Not a batch

SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    format('SELECT * FROM memvec.apply_ops(%L)', t.ops), 'MV001', 'apply_ops needs an array of operations',
    coalesce(t.ops, 'NULL') || ' is no batch'
)
FROM (VALUES (NULL), ('null'), ('{}'), ('"x"'), ('5')) AS t (ops);
SELECT is_empty($$ SELECT * FROM memvec.apply_ops('[]') $$, 'an empty batch is none to do');

-- One of each kind, in order: later operations see what earlier ones did

SELECT set_config('apply_ops.batch', pg_temp.ops(
    '1 register_agent {"identity": "Apply_Ops-A", "attrs": {"host": "h"}}',
    '2 add_memory {"identity": "apply_ops-a", "target": "memory", "content": " one ", "metadata": {"by": "tool"}}',
    '3 add_memory {"identity": "apply_ops-a", "target": "memory", "content": "one"}',
    '4 add_memory {"identity": "apply_ops-a", "target": "user", "content": "never", "embed": false,
                   "source": "00000000-0000-0000-0000-0000000000c1"}',
    '5 replace_memory {"identity": "apply_ops-a", "target": "memory", "old_text": "one", "content": "two"}',
    '6 add_memory {"identity": "apply_ops-a", "target": "memory", "content": "one"}',
    '7 replace_memory {"identity": "apply_ops-a", "target": "memory", "old_text": "o", "content": "three"}',
    '8 replace_memory {"identity": "apply_ops-a", "target": "memory", "old_text": "x", "previous_content": "two", "content": "three"}',
    '9 remove_memory {"identity": "apply_ops-a", "target": "memory", "old_text": "one"}',
    '10 remove_memory {"identity": "apply_ops-a", "target": "memory", "previous_content": "one"}',
    '11 append_turn {"identity": "apply_ops-a", "session_id": "s", "role": "user", "content": "hello",
                     "parent_session_id": "p", "ts": "2026-01-02T03:04:05Z", "metadata": {"by": "hook"}, "embed": false}',
    '12 append_turn {"identity": "apply_ops-a", "session_id": "s", "role": "user", "content": "hello"}',
    '13 append_turn {"identity": "apply_ops-a", "session_id": "s", "role": "assistant", "content": "hello"}',
    '14 record_delegation {"identity": "apply_ops-a", "session_id": "s", "child_session_id": "t", "child_identity": "apply_ops-b",
                           "attrs": {"task": "search"}}',
    '15 record_delegation {"identity": "apply_ops-a", "session_id": "s", "child_session_id": "t"}',
    '16 sync_memories {"identity": "apply_ops-a", "target": "memory", "source": "00000000-0000-0000-0000-0000000000c1",
                       "contents": ["four", "", "three", "four"]}',
    '17 sync_memories {"identity": "apply_ops-a", "target": "user", "source": "00000000-0000-0000-0000-0000000000c1", "contents": []}',
    '18 add_memory {"identity": "apply_ops-a", "target": "memory", "content": "last"}'
)::text, true);
CREATE TEMP TABLE answers AS
SELECT row_number() OVER () AS n, a.* FROM memvec.apply_ops(current_setting('apply_ops.batch')::jsonb) AS a;

SELECT is(
    array_agg(format('%s %s', right(op_id::text, 2)::integer, outcome) ORDER BY n),
    '{1 registered,2 added,3 duplicate,4 added,5 replaced,6 added,7 ambiguous,8 merged,9 removed,10 absent,11 added,12 duplicate,'
    '13 added,14 added,15 duplicate,16 synced,17 synced,18 added}',
    'a row for each operation, in order, with its outcome'
)
FROM answers;
SELECT is_empty($$ SELECT * FROM answers WHERE error_code IS NOT NULL OR message IS NOT NULL $$, 'and no error');
SELECT is(
    pg_temp.notes('apply_ops-a'), '{four,last,three}', 'together they did what they would have done one by one'
);
SELECT results_eq(
    $$ SELECT n::integer, content_hash FROM answers WHERE content_hash IS NOT NULL ORDER BY n $$,
    $$ SELECT n, sha256(convert_to(c, 'UTF8'))
         FROM (VALUES (2, 'one'), (3, 'one'), (4, 'never'), (5, 'two'), (6, 'one'), (7, 'three'), (8, 'three'), (11, 'hello'),
                      (12, 'hello'), (13, 'hello'), (18, 'last')) AS t (n, c) $$,
    'what holds a text answers with its hash, by which the vector comes later'
);
SELECT results_eq(
    $$ SELECT n::integer, detail FROM answers WHERE n IN (5, 7, 8, 9, 10) ORDER BY n $$,
    $$ VALUES (5, '{"matches": 1}'::jsonb), (7, '{"matches": 2}'), (8, '{"matches": 1}'), (9, '{"matches": 1}'), (10, '{"matches": 0}') $$,
    'edits tell how many matched'
);
RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT detail - 'rows' FROM answers WHERE n = 16), '{"added": 1, "retired": 0, "kept": 1}'::jsonb, 'a sync tells what it did'
);
SELECT is(
    (SELECT detail FROM answers WHERE n = 17), '{"added": 0, "retired": 1, "kept": 0, "rows": []}'::jsonb, 'an empty file too'
);
SELECT results_eq(
    $$ SELECT (r ->> 'id')::bigint, r ->> 'content_hash', (r ->> 'position')::integer
         FROM answers, jsonb_array_elements(detail -> 'rows') AS r WHERE n = 16 ORDER BY 3 $$,
    $$ SELECT m.id, encode(m.content_hash, 'hex'), t.position
         FROM (VALUES ('four', 0), ('three', 2)) AS t (content, position)
         JOIN memvec.memory_entries AS m ON m.content = t.content AND m.agent_identity = 'apply_ops-a'
        ORDER BY 3 $$,
    'and which row each text of the file is'
);
SELECT results_eq(
    $$ SELECT n::integer FROM answers AS a WHERE EXISTS (SELECT FROM memvec.conversations AS c WHERE c.id = a.id)
          AND n BETWEEN 11 AND 13 ORDER BY n $$,
    $$ VALUES (11), (12), (13) $$,
    'ids are those of the rows'
);
SELECT results_eq(
    $$ SELECT role, session_id, parent_session_id, ts, metadata, embed FROM memvec.conversations
        WHERE agent_identity = 'apply_ops-a' AND role = 'user' $$,
    $$ VALUES ('user', 's', 'p', '2026-01-02 03:04:05+00'::timestamptz, '{"by": "hook"}'::jsonb, false) $$,
    'a turn takes all its arguments'
);
SELECT results_eq(
    $$ SELECT content, metadata FROM memvec.memory_history WHERE agent_identity = 'apply_ops-a' ORDER BY id $$,
    $$ VALUES ('one', '{"by": "tool"}'::jsonb), ('two', '{"by": "tool"}'), ('one', '{}'), ('never', '{}') $$,
    'what went is in the history, metadata that was not given is empty'
);
SELECT results_eq(
    $$ SELECT child_identity, attrs FROM memvec.memory_agent_edges WHERE parent_identity = 'apply_ops-a' $$,
    $$ VALUES ('apply_ops-b', '{"task": "search"}'::jsonb) $$,
    'a delegation takes all its arguments'
);
SELECT is(
    (SELECT attrs FROM memvec.memory_agents WHERE agent_identity = 'apply_ops-a'), '{"host": "h"}'::jsonb, 'a registration too'
);

-- Exactly once

SELECT memvec_tests.act_as('hermes');
SELECT results_eq(
    $$ SELECT op_id, outcome, id, detail, error_code, message FROM memvec.apply_ops(current_setting('apply_ops.batch')::jsonb) $$,
    $$ SELECT op_id, outcome, id, detail, error_code, message FROM answers ORDER BY n $$,
    'the same batch again answers the same'
);
SELECT results_eq(
    $$ SELECT outcome FROM memvec.apply_ops(pg_temp.ops(
           '9 remove_memory {"identity": "apply_ops-a", "target": "memory", "old_text": "last"}',
           '99 add_memory {"identity": "apply_ops-a", "target": "memory", "content": "later"}',
           '2 add_memory {"identity": "apply_ops-a", "target": "memory", "content": "not again"}')) $$,
    $$ VALUES ('removed'), ('added'), ('added') $$,
    'what was done is not done again, even if it says something else now'
);
SELECT is(pg_temp.notes('apply_ops-a'), '{four,last,later,three}', 'nothing came back and nothing went');
SELECT is(cardinality(pg_temp.turns('apply_ops-a')), 2, 'no turn is there twice');
SELECT results_eq(
    $$ SELECT outcome, id = lag(id) OVER () FROM memvec.apply_ops(pg_temp.ops(
           '100 add_memory {"identity": "apply_ops-twice", "target": "memory", "content": "a"}',
           '100 add_memory {"identity": "apply_ops-twice", "target": "memory", "content": "b"}',
           '101 remove_memory {"identity": "apply_ops-twice", "target": "memory", "old_text": "a"}',
           '100 add_memory {"identity": "apply_ops-twice", "target": "memory", "content": "a"}')) $$,
    $$ VALUES ('added', NULL::boolean), ('added', true), ('removed', true), ('added', true) $$,
    'an operation that comes twice in a batch is done once'
);
SELECT is(pg_temp.notes('apply_ops-twice'), '{}', 'and what a later one removed stays removed');

-- Bad operations, each between good ones

CREATE TEMP TABLE bad AS
SELECT row_number() OVER () AS n, t.* FROM (VALUES
    ('null', 'MV001', 'null'),
    ('5', 'MV001', 'a number'),
    ('"text"', 'MV001', 'a string'),
    ('[]', 'MV001', 'an array'),
    ('{}', 'MV001', 'nothing in it'),
    ('{"op": "add_memory", "identity": "apply_ops-bad", "target": "memory", "content": "x"}', 'MV001', 'no op_id'),
    ('{"op_id": null, "op": "add_memory", "identity": "apply_ops-bad", "target": "memory", "content": "x"}', 'MV001', 'op_id null'),
    ('{"op_id": "17", "op": "add_memory", "identity": "apply_ops-bad", "target": "memory", "content": "x"}', 'MV001', 'op_id not a uuid'),
    ('{"op_id": 17, "op": "add_memory", "identity": "apply_ops-bad", "target": "memory", "content": "x"}', 'MV001', 'op_id a number'),
    ('{"op_id": ["00000000-0000-0000-0001-000000000000"], "op": "add_memory"}', 'MV001', 'op_id an array'),
    ('{"op_id": "00000000-0000-0000-0001-000000000001"}', 'MV001', 'no op'),
    ('{"op_id": "00000000-0000-0000-0001-000000000002", "op": "drop_everything"}', 'MV001', 'an unknown op'),
    ('{"op_id": "00000000-0000-0000-0001-000000000003", "op": ["add_memory"]}', 'MV001', 'an op that is an array'),
    ('{"op_id": "00000000-0000-0000-0001-000000000004", "op": "add_memory", "target": "memory", "content": " "}', 'MV001', 'a blank text'),
    ('{"op_id": "00000000-0000-0000-0001-000000000005", "op": "add_memory", "target": "memory"}', 'MV001', 'no text'),
    ('{"op_id": "00000000-0000-0000-0001-000000000006", "op": "add_memory", "content": "x"}', 'MV001', 'no target'),
    ('{"op_id": "00000000-0000-0000-0001-000000000007", "op": "add_memory", "target": 5, "content": "x"}', 'MV001', 'an unknown target'),
    ('{"op_id": "00000000-0000-0000-0001-000000000008", "op": "add_memory", "target": "memory", "content": "x", "source": "y"}', '22P02', 'a source that is no uuid'),
    ('{"op_id": "00000000-0000-0000-0001-000000000009", "op": "add_memory", "target": "memory", "content": "x", "embed": "maybe"}', '22P02', 'embed neither true nor false'),
    ('{"op_id": "00000000-0000-0000-0001-000000000010", "op": "append_turn", "role": "user"}', 'MV001', 'a turn without text'),
    ('{"op_id": "00000000-0000-0000-0001-000000000011", "op": "append_turn", "role": "robot", "content": "x"}', 'MV001', 'an unknown role'),
    ('{"op_id": "00000000-0000-0000-0001-000000000012", "op": "append_turn", "role": "user", "content": "x", "ts": "yesterday-ish"}', '22007', 'a time that is none'),
    ('{"op_id": "00000000-0000-0000-0001-000000000013", "op": "append_turn", "role": "user", "content": "x", "ts": "2026-13-45"}', '22008', 'a date that is none'),
    ('{"op_id": "00000000-0000-0000-0001-000000000014", "op": "replace_memory", "target": "memory", "old_text": "", "content": "x"}', 'MV001', 'a blank pattern'),
    ('{"op_id": "00000000-0000-0000-0001-000000000015", "op": "remove_memory", "target": "memory"}', 'MV001', 'no pattern'),
    ('{"op_id": "00000000-0000-0000-0001-000000000016", "op": "sync_memories", "target": "memory", "contents": []}', 'MV001', 'a sync without a home'),
    ('{"op_id": "00000000-0000-0000-0001-000000000017", "op": "sync_memories", "target": "memory", "source": "00000000-0000-0000-0000-0000000000c1"}', 'MV001', 'a sync without a list'),
    ('{"op_id": "00000000-0000-0000-0001-000000000018", "op": "sync_memories", "target": "memory", "source": "00000000-0000-0000-0000-0000000000c1", "contents": "x"}', 'MV001', 'a list that is a text'),
    ('{"op_id": "00000000-0000-0000-0001-000000000019", "op": "sync_memories", "target": "memory", "source": "x", "contents": []}', '22P02', 'a home that is no uuid'),
    ('{"op_id": "00000000-0000-0000-0001-000000000020", "op": "sync_memories", "identity": "skill-bench", "target": "memory", "source": "00000000-0000-0000-0000-0000000000c1", "contents": []}', 'MV009', 'a sync into a sink'),
    ('{"op_id": "00000000-0000-0000-0001-000000000021", "op": "record_delegation", "session_id": "s"}', 'MV001', 'a delegation to nobody')
) AS t (op, error_code, description);
GRANT SELECT ON bad TO public;

CREATE TEMP TABLE mixed AS
SELECT a.n, a.op_id, a.outcome, a.id, a.error_code, a.message
FROM (
    SELECT jsonb_agg(o.op ORDER BY o.n, o.good) AS batch
    FROM (
        SELECT b.n, false AS good, CASE WHEN jsonb_typeof(b.op::jsonb) = 'object' THEN '{"identity": "apply_ops-bad"}' || b.op::jsonb ELSE b.op::jsonb END AS op
          FROM bad AS b
        UNION ALL
        SELECT b.n, true, pg_temp.ops(format(
                   CASE b.n % 2 WHEN 0 THEN '%s add_memory {"identity": "apply_ops-mixed", "target": "memory", "content": "good %s"}'
                   ELSE '%s append_turn {"identity": "apply_ops-mixed", "role": "user", "content": "good %s"}' END,
                   200 + b.n, b.n)) -> 0
          FROM bad AS b
    ) AS o
) AS given
CROSS JOIN LATERAL (SELECT row_number() OVER () AS n, r.* FROM memvec.apply_ops(given.batch) AS r) AS a;

SELECT is(m.outcome || ' ' || m.error_code, 'error ' || b.error_code, b.description || ' is reported')
FROM bad AS b
JOIN mixed AS m ON m.n = 2 * b.n - 1
ORDER BY b.n;
SELECT is_empty($$ SELECT * FROM mixed WHERE outcome = 'error' AND coalesce(message, '') = '' $$, 'with a message');
SELECT is(
    (SELECT count(*) FROM mixed WHERE n % 2 = 0 AND outcome = 'added' AND error_code IS NULL AND message IS NULL),
    (SELECT count(*) FROM bad), 'and every other operation is applied'
);
SELECT is(
    cardinality(pg_temp.notes('apply_ops-mixed')) + cardinality(pg_temp.turns('apply_ops-mixed')), (SELECT count(*) FROM bad)::integer,
    'really'
);
SELECT is(pg_temp.notes('apply_ops-bad') || pg_temp.turns('apply_ops-bad'), '{}', 'of the bad ones nothing is stored');
SELECT is((SELECT op_id FROM mixed WHERE n = 23), '00000000-0000-0000-0001-000000000002'::uuid, 'a bad one is named by its op_id');
SELECT is((SELECT op_id FROM mixed WHERE n = 1), NULL, 'unless it has none');

-- Neighbours of one kind go in together: one bad one among them fails alone
SELECT results_eq(
    $$ SELECT outcome, error_code FROM memvec.apply_ops(pg_temp.ops(
           '301 append_turn {"identity": "apply_ops-run", "role": "user", "content": "1"}',
           '302 append_turn {"identity": "apply_ops-run", "role": "user", "content": " "}',
           '303 append_turn {"identity": "apply_ops-run", "role": "user", "content": "3"}',
           '304 append_turn {"identity": "apply_ops-run", "role": "user", "content": "1"}',
           '305 add_memory {"identity": "apply_ops-run", "target": "memory", "content": "1"}',
           '306 add_memory {"identity": "apply_ops-run", "target": "x", "content": "2"}',
           '307 add_memory {"identity": "apply_ops-run", "target": "memory", "content": "1"}')) $$,
    $$ VALUES ('added', NULL), ('error', 'MV001'), ('added', NULL), ('duplicate', NULL), ('added', NULL), ('error', 'MV001'),
              ('duplicate', NULL) $$,
    'in a run of one kind a bad one fails alone'
);
SELECT is(pg_temp.turns('apply_ops-run') || pg_temp.notes('apply_ops-run'), '{1,3,1}', 'and the others are there, in order');

-- A bad one is not remembered as done: corrected, it is applied
SELECT is(
    (memvec.apply_ops(pg_temp.ops('302 append_turn {"identity": "apply_ops-run", "role": "user", "content": "2"}'))).outcome, 'added',
    'what failed may be sent again'
);

-- Who: raw keys of any kind, a host's rules, bound logins

SELECT results_eq(
    $$ SELECT outcome, error_code FROM memvec.apply_ops(pg_temp.ops(
           '401 add_memory {"identity": "sms:dm:apply_ops-1", "target": "memory", "content": "apply_ops secret"}',
           '402 add_memory {"identity": "sms:dm:apply_ops-2", "target": "memory", "content": "apply_ops secret"}',
           '403 add_memory {"identity": "agent:x:sms:dm:Apply_Ops-2", "target": "memory", "content": "apply_ops secret"}',
           '404 remove_memory {"identity": "sms:dm:apply_ops-3", "target": "memory", "old_text": "apply_ops secret"}',
           '405 remove_memory {"identity": "sms:dm:apply_ops-1", "target": "memory", "old_text": "apply_ops secret"}',
           '406 add_memory {"identity": "apply_ops-g", "governance": {"aliases": {"apply_ops-g": "apply_ops-h"}}, "target": "memory",
                            "content": "aliased"}',
           '407 add_memory {"identity": "apply_ops-g", "governance": {"allowed_themes": ["apply_ops-g"]}, "target": "memory",
                            "content": "allowed"}',
           '408 add_memory {"identity": "apply_ops-g", "governance": null, "target": "memory", "content": "plain"}')) $$,
    $$ VALUES ('added', NULL), ('added', NULL), ('duplicate', NULL), ('absent', NULL), ('removed', NULL), ('added', NULL),
              ('added', NULL), ('added', NULL) $$,
    'each operation acts as its own key says'
);
SELECT is(pg_temp.notes('apply_ops-h') || pg_temp.notes('apply_ops-g'), '{aliased,allowed,plain}', 'under its own host''s rules');
SELECT results_eq(
    $$ SELECT outcome FROM memvec.apply_ops(pg_temp.ops(
           '409 append_turn {"session_id": "apply_ops", "role": "user", "content": "nobody"}',
           '410 append_turn {"identity": 5, "session_id": "apply_ops", "role": "user", "content": "a number"}',
           '411 append_turn {"identity": null, "session_id": "apply_ops", "role": "user", "content": "null"}')) $$,
    $$ VALUES ('added'), ('added'), ('added') $$,
    'a key that is absent or no text is the theme default'
);
RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT count(*) FROM memvec.conversations WHERE session_id = 'apply_ops' AND agent_identity = 'default'), 3::bigint, 'all three'
);
SELECT is(
    (SELECT person_key FROM memvec.memory_entries WHERE content = 'apply_ops secret'),
    (memvec.canonical_identity('sms:dm:apply_ops-2')).person_key, 'a person''s note is that person''s'
);

SELECT memvec.bind_role('tap_bound', 'apply_ops-bound');
SELECT memvec_tests.act_as('tap_bound');
SELECT results_eq(
    $$ SELECT outcome, error_code FROM memvec.apply_ops(pg_temp.ops(
           '501 add_memory {"identity": "apply_ops-bound", "target": "memory", "content": "mine"}',
           '502 add_memory {"identity": "apply_ops-other", "target": "memory", "content": "not mine"}',
           '503 register_agent {"identity": "apply_ops-other"}',
           '504 append_turn {"identity": "sms:dm:+15550100123", "role": "user", "content": "not mine"}')) $$,
    $$ VALUES ('added', NULL), ('error', 'MV002'), ('error', 'MV002'), ('error', 'MV002') $$,
    'a bound login acts as its theme only'
);
SELECT is(pg_temp.notes('apply_ops-bound') || pg_temp.notes('apply_ops-other'), '{mine}', 'and nowhere else');
SELECT is_empty(
    $$ SELECT * FROM memvec.apply_ops(pg_temp.ops('505 append_turn {"identity": "sms:dm:+15550100123", "role": "user", "content": "x"}'))
        WHERE message ~ '1555' OR message !~ 'tap_bound' $$,
    'the message names login and theme, never the key'
);

-- Vectors come later, by id and hash

SELECT memvec_tests.act_as('hermes');
SELECT is(s.stored, 2, 'what a batch answers is enough to store the vectors')
FROM (
    SELECT array_agg(a.id) AS ids, array_agg(a.content_hash) AS hashes
    FROM memvec.apply_ops(pg_temp.ops(
        '601 add_memory {"identity": "apply_ops-v", "target": "memory", "content": "a"}',
        '602 replace_memory {"identity": "apply_ops-v", "target": "memory", "old_text": "b", "content": "c"}'
    )) AS a
) AS b
CROSS JOIN LATERAL memvec.store_embeddings(
    (memvec.hello('apply_ops-v', 'apply_ops', 8)).space_id, '{entry,entry}', b.ids, b.hashes, ARRAY[memvec_tests.vec(1), memvec_tests.vec(2)]
) AS s;

-- An op_id is no proof of who sent it first

CREATE FUNCTION pg_temp.again(p_op text) RETURNS text
LANGUAGE sql
AS $$
    SELECT concat_ws(' ', a.outcome, (a.content_hash IS NOT NULL)::text, a.detail -> 'rows')
    FROM memvec.apply_ops(jsonb_build_array(p_op::jsonb)) AS a
$$;
SELECT is(
    pg_temp.again('{"op_id": "00000000-0000-0000-0000-0000000007a1", "op": "add_memory", "identity": "apply_ops-mine", "target": "memory", "content": "PIN 1234"}'),
    'added true', 'a note is added'
);
SELECT is(
    pg_temp.again('{"op_id": "00000000-0000-0000-0000-0000000007a1", "op": "append_turn", "identity": "apply_ops-theirs"}'),
    'added false', 'another theme that sends its op_id does not learn the hash of the text'
);
SELECT is(
    pg_temp.again('{"op_id": "00000000-0000-0000-0000-0000000007a1", "op": "add_memory", "identity": "apply_ops-mine"}'),
    'added true', 'its own does'
);
SELECT matches(
    pg_temp.again('{"op_id": "00000000-0000-0000-0000-0000000007a2", "op": "sync_memories", "identity": "apply_ops-mine", "target": "user", "source": "00000000-0000-0000-0000-0000000007a9", "contents": ["a", "b"]}'),
    '^synced false .*content_hash', 'a file is synchronised'
);
SELECT is(
    pg_temp.again('{"op_id": "00000000-0000-0000-0000-0000000007a2", "op": "sync_memories", "identity": "apply_ops-theirs"}')
    = pg_temp.again('{"op_id": "00000000-0000-0000-0000-0000000007a2", "op": "sync_memories", "identity": "apply_ops-mine"}'),
    true, 'whoever may act as the theme of its rows is told of them again'
);

-- Many at once, and texts without end

SELECT is(
    (SELECT count(*) FROM memvec.apply_ops((
        SELECT jsonb_agg(jsonb_build_object('op_id', gen_random_uuid(), 'op', 'append_turn', 'identity', 'apply_ops-many',
                                            'session_id', 's', 'role', 'user', 'content', 'turn ' || i))
          FROM generate_series(1, 1000) AS i)) AS a WHERE a.outcome = 'added'),
    1000::bigint, 'a thousand turns'
);
SELECT is(
    pg_temp.turns('apply_ops-many'), ARRAY(SELECT 'turn ' || i FROM generate_series(1, 1000) AS i), 'in the order in which they came'
);
SELECT results_eq(
    $$ SELECT outcome, content_hash = sha256(convert_to(repeat(md5('x'), 62500), 'UTF8')) FROM memvec.apply_ops(
           jsonb_build_array(jsonb_build_object('op_id', gen_random_uuid(), 'op', 'add_memory', 'identity', 'apply_ops-huge',
                                                'target', 'memory', 'content', repeat(md5('x'), 62500)))) $$,
    $$ VALUES ('added', true) $$,
    'a text of 2,000,000 characters is stored whole'
);

SELECT * FROM finish();
ROLLBACK;
