BEGIN;
SELECT plan(27);

SELECT is_definer('memvec', 'restore', 'runs as its owner');
SELECT volatility_is('memvec', 'restore', 'volatile', 'is volatile');
SELECT is(memvec_tests.callers('memvec.restore'), '{tap_admin}', 'only an admin may call it');

CREATE FUNCTION pg_temp.gone(p_identity text) RETURNS bigint
LANGUAGE sql
AS $$ SELECT id FROM memvec.history(p_identity, p_limit => 1) $$;

SELECT memvec_tests.act_as('hermes');
SELECT lives_ok(
    $$ SELECT memvec.add_memory('restore-a', 'memory', 'Harbour gate code 7', '{"by": "tool"}',
                                '00000000-0000-0000-0000-00000000a159', p_embed => false),
              memvec.add_memory('restore-b', 'memory', 'port is 80'),
              memvec.add_memory('sms:+15550108811', 'memory', 'her code') $$,
    'some notes'
);
SELECT memvec.remove_memory('restore-a', 'memory', 'Harbour gate code 7');
SELECT memvec.replace_memory('restore-b', 'memory', 'port is 80', 'port is 8080');
SELECT memvec.remove_memory('sms:+15550108811', 'memory', 'her code');
SELECT throws_ok($$ SELECT * FROM memvec.restore(1) $$, '42501', NULL, 'the runtime login is refused');
RESET SESSION AUTHORIZATION;
UPDATE memvec.memory_history SET created_at = '2026-01-02', updated_at = '2026-01-03' WHERE agent_identity = 'restore-a';

SELECT memvec_tests.act_as('tap_admin');
SELECT results_eq(
    $$ SELECT outcome, agent_identity, target, id IS NOT NULL FROM memvec.restore(pg_temp.gone('restore-a')) $$,
    $$ VALUES ('restored', 'restore-a', 'memory', true) $$, 'a removed note is restored'
);
SELECT results_eq(
    $$ SELECT restored_at, restored_by FROM memvec.history('restore-a') $$, $$ VALUES (now(), 'tap_admin') $$,
    'the history says when and by whom'
);
SELECT results_eq(
    $$ SELECT outcome, id IS NOT NULL FROM memvec.restore(pg_temp.gone('restore-a')) $$, $$ VALUES ('present', true) $$,
    'a second time it is there already'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT content, metadata, embed, created_at, updated_at FROM memvec.memory_entries WHERE agent_identity = 'restore-a' $$,
    $$ VALUES ('Harbour gate code 7', '{"by": "tool"}'::jsonb, false, '2026-01-02'::timestamptz, '2026-01-03'::timestamptz) $$,
    'once, as it was: metadata, dates, never to be embedded'
);
SELECT is_empty(
    $$ SELECT FROM memvec.entry_sources AS s JOIN memvec.memory_entries AS m ON m.id = s.entry_id
       WHERE m.agent_identity = 'restore-a' $$,
    'it belongs to no file'
);
SELECT results_eq(
    $$ SELECT table_name, rows, acted_by, parameters ->> 'theme', parameters ->> 'action', parameters ? 'entry'
       FROM memvec.maintenance_log WHERE operation = 'restore' $$,
    $$ VALUES ('memory_entries', 1::bigint, 'tap_admin'::name, 'restore-a', 'remove', true) $$,
    'the log tells of the one that was done'
);

SELECT memvec_tests.act_as('hermes');
SELECT is(
    (SELECT count(*) FROM memvec.recall_memory('restore-a', 'harbour gate')), 1::bigint, 'it is found by its words'
);
SELECT is(
    (memvec.sync_memories('restore-a', '00000000-0000-0000-0000-00000000a159', 'memory', '{}')).retired, 0,
    'a file that does not hold it leaves it'
);
SELECT is(
    (memvec.sync_memories('restore-a', '00000000-0000-0000-0000-00000000a159', 'memory', '{Harbour gate code 7}')).kept, 1,
    'one that does takes it as its own'
);
SELECT is((memvec.remove_memory('restore-a', 'memory', 'Harbour gate')).outcome, 'removed', 'it can go again');
RESET SESSION AUTHORIZATION;

SELECT memvec_tests.act_as('tap_admin');
SELECT is((SELECT count(*) FROM memvec.history('restore-a')), 2::bigint, 'which is history too');
SELECT results_eq(
    $$ SELECT outcome, id FROM memvec.restore((SELECT min(h.id) FROM memvec.history('restore-a') AS h)) $$,
    $$ VALUES ('restored before', NULL::bigint) $$, 'the first row is not restored twice'
);
SELECT is((memvec.restore(pg_temp.gone('restore-a'))).outcome, 'restored', 'the newer one is');

SELECT is((memvec.restore(pg_temp.gone('restore-b'))).outcome, 'restored', 'a replaced note is restored');
SELECT is((memvec.restore(pg_temp.gone('sms:+15550108811'))).outcome, 'restored', 'and a person''s');
SELECT throws_ok($$ SELECT * FROM memvec.restore(-1) $$, 'MV001', NULL, 'an unknown id is refused');
SELECT throws_ok($$ SELECT * FROM memvec.restore(NULL) $$, 'MV001', NULL, 'none too');
RESET SESSION AUTHORIZATION;
SELECT set_eq(
    $$ SELECT content FROM memvec.memory_entries WHERE agent_identity = 'restore-b' $$,
    $$ VALUES ('port is 80'), ('port is 8080') $$, 'what took its place stays'
);
SELECT memvec_tests.act_as('hermes');
SELECT is((SELECT count(*) FROM memvec.recall_memory('sms:+15550108811', 'code')), 1::bigint, 'she has hers again');
SELECT is((SELECT count(*) FROM memvec.recall_memory('sms:+15550108822', 'code')), 0::bigint, 'nobody else');
RESET SESSION AUTHORIZATION;
DELETE FROM memvec.memory_history WHERE agent_identity = 'restore-b';
SELECT is(
    (SELECT count(*) FROM memvec.maintenance_log WHERE operation = 'restore'), 4::bigint, 'the log has one row for each'
);
SELECT ok(
    NOT EXISTS (SELECT FROM memvec.maintenance_log WHERE operation = 'restore' AND parameters::text ~ 'code|port|15550'),
    'and none of the text, nor a chat''s key'
);

SELECT * FROM finish();
ROLLBACK;
