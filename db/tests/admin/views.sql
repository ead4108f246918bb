BEGIN;
SELECT plan(9);

SELECT memvec_tests.act_as('hermes');
SELECT memvec.hello('views-a');
SELECT memvec.add_memory('views-a', 'memory', 'Port 5432', '{"by": "tool"}', '00000000-0000-0000-0000-0000000000f1');
SELECT memvec.add_memory('views-a', 'user', 'Likes tea');
SELECT memvec.append_turn('views-a', 's', 'user', 'hello there', 'parent');
SELECT memvec.append_turn('views-b', 's', 'user', 'never registered');
SELECT throws_ok('SELECT * FROM memvec.v_agent_memory', '42501', NULL, 'the runtime login reads no view');
SELECT throws_ok('SELECT * FROM memvec.v_memory_entries', '42501', NULL, 'not the notes');
SELECT throws_ok('SELECT * FROM memvec.v_conversations', '42501', NULL, 'nor the turns');
RESET SESSION AUTHORIZATION;

SELECT memvec_tests.act_as('tap_admin');
SELECT results_eq(
    $$ SELECT identity, kind, memory_rows, conversation_rows, first_seen, last_seen FROM memvec.v_agent_memory
       WHERE identity LIKE 'views-_' ORDER BY identity $$,
    $$ VALUES ('views-a', 'theme', 2::bigint, 1::bigint, now(), now()), ('views-b', 'theme', 0, 1, NULL, NULL) $$,
    'an admin sees the themes'
);
SELECT results_eq(
    $$ SELECT target, content, metadata, sources, person_key, embed FROM memvec.v_memory_entries
       WHERE agent_identity = 'views-a' ORDER BY id $$,
    $$ VALUES ('memory', 'Port 5432', '{"by": "tool"}'::jsonb, '{00000000-0000-0000-0000-0000000000f1}'::uuid[], NULL::uuid, true),
              ('user', 'Likes tea', '{}', '{}', NULL, true) $$,
    'the notes with the homes that hold them'
);
SELECT results_eq(
    $$ SELECT session_id, parent_session_id, role, content, ts FROM memvec.v_conversations WHERE agent_identity = 'views-a' $$,
    $$ VALUES ('s', 'parent', 'user', 'hello there', now()) $$,
    'and the turns'
);
SELECT throws_ok($$ DELETE FROM memvec.v_conversations $$, '42501', NULL, 'but changes nothing through a view');
SELECT throws_ok($$ UPDATE memvec.v_memory_entries SET content = '' $$, NULL, NULL, 'nothing at all');
SELECT throws_ok($$ SELECT * FROM memvec.memory_entries $$, '42501', NULL, 'and the tables stay closed');
RESET SESSION AUTHORIZATION;

SELECT * FROM finish();
ROLLBACK;
