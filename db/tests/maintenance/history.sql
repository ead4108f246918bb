BEGIN;
SELECT plan(21);

SELECT is_definer('memvec', 'history', 'runs as its owner');
SELECT volatility_is('memvec', 'history', 'stable', 'is stable');
SELECT is(memvec_tests.callers('memvec.history'), '{tap_admin}', 'only an admin may call it');

SELECT memvec_tests.act_as('hermes');
SELECT lives_ok(
    $$ SELECT memvec.add_memory('history-a', 'memory', 'port is 80', '{"by": "tool"}'),
              memvec.add_memory('history-a', 'user', 'likes tea'),
              memvec.add_memory('history-b', 'memory', 'port is 81'),
              memvec.add_memory('history-c', 'memory', 'port is 82'),
              memvec.add_memory('sms:+15550109911', 'memory', 'her code'),
              memvec.add_memory('sms:+15550109922', 'memory', 'his code'),
              memvec.sync_memories('history-b', '00000000-0000-0000-0000-00000000a157', 'memory', '{from a file}') $$,
    'some notes'
);
SELECT lives_ok(
    $$ SELECT memvec.replace_memory('history-a', 'memory', 'port is 80', 'port is 8080'),
              memvec.remove_memory('history-a', 'user', 'likes tea'),
              memvec.remove_memory('sms:+15550109911', 'memory', 'her code'),
              memvec.remove_memory('sms:+15550109922', 'memory', 'his code'),
              memvec.sync_memories('history-b', '00000000-0000-0000-0000-00000000a157', 'memory', '{}') $$,
    'are taken away'
);
SELECT throws_ok($$ SELECT * FROM memvec.history('history-a') $$, '42501', NULL, 'the runtime login is refused');
RESET SESSION AUTHORIZATION;

SELECT memvec_tests.act_as('tap_admin');
SELECT results_eq(
    $$ SELECT agent_identity, target, action, content, acted_by, acted_at, metadata, restored_at FROM memvec.history('history-a') $$,
    $$ VALUES ('history-a', 'user', 'remove', 'likes tea', 'hermes', now(), '{}'::jsonb, NULL::timestamptz),
              ('history-a', 'memory', 'replace', 'port is 80', 'hermes', now(), '{"by": "tool"}', NULL) $$,
    'a theme''s, the latest first: what, how, when and by whom'
);
SELECT results_eq(
    $$ SELECT content, action FROM memvec.history(' History-B ') $$, $$ VALUES ('from a file', 'reconcile') $$,
    'the theme in any spelling'
);
SELECT is((SELECT count(*) FROM memvec.history() WHERE agent_identity LIKE 'history-_'), 3::bigint, 'all of them');
SELECT results_eq(
    $$ SELECT content FROM memvec.history('agent:main:sms:dm:15550109911') $$, $$ VALUES ('her code') $$,
    'one person''s with a chat''s key'
);
SELECT set_eq(
    $$ SELECT content FROM memvec.history('whatsapp-dm') $$, $$ VALUES ('her code'), ('his code') $$, 'a sink''s with its name'
);
SELECT is_empty($$ SELECT * FROM memvec.history('history-c') $$, 'none of a theme that lost none');
SELECT results_eq(
    $$ SELECT content FROM memvec.history('history-a', p_target => 'user') $$, $$ VALUES ('likes tea') $$, 'of one target'
);
SELECT results_eq(
    $$ SELECT content FROM memvec.history('history-a', p_action => 'replace') $$, $$ VALUES ('port is 80') $$, 'of one action'
);
SELECT is_empty($$ SELECT * FROM memvec.history('history-a', p_since => now() + interval '1 s') $$, 'since');
SELECT is_empty($$ SELECT * FROM memvec.history('history-a', p_until => now()) $$, 'until');
SELECT results_eq(
    $$ SELECT content FROM memvec.history('history-a', p_limit => 1) $$, $$ VALUES ('likes tea') $$, 'a limit'
);
SELECT results_eq(
    $$ SELECT h.content FROM memvec.history('history-a', p_limit => 1) AS f
       CROSS JOIN LATERAL memvec.history('history-a', p_before => f.id) AS h $$,
    $$ VALUES ('port is 80') $$, 'and the page after it'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.history('history-d') $$, 'MV001', 'there is no theme "history-d"', 'a theme that nobody has is refused'
);
SELECT throws_ok($$ SELECT * FROM memvec.history(p_target => 'x') $$, 'MV001', NULL, 'an unknown target is refused');
SELECT throws_ok($$ SELECT * FROM memvec.history(p_action => 'x') $$, 'MV001', NULL, 'an unknown action too');
RESET SESSION AUTHORIZATION;

SELECT * FROM finish();
ROLLBACK;
