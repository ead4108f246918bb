BEGIN;
SELECT plan(17);

SELECT is(
    pg_get_function_arguments('memvec.record_delegation'::regproc),
    'p_identity text, p_session_id text, p_child_session_id text, p_child_identity text DEFAULT NULL::text, '
    'p_attrs jsonb DEFAULT ''{}''::jsonb, p_governance jsonb DEFAULT NULL::jsonb, OUT id bigint, OUT outcome text',
    'arguments and columns'
);
SELECT volatility_is('memvec', 'record_delegation', 'volatile', 'volatile');
SELECT is_definer('memvec', 'record_delegation', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.record_delegation'), '{hermes,tap_admin}', 'who may execute it');
SELECT is(memvec_tests.callers('memvec.put_edge'), '{}', 'its inside is internal');

SELECT memvec_tests.act_as('hermes');
SELECT is(e.outcome, t.outcome, t.description)
FROM (VALUES
    ('Record_Delegation-A', 's1', 's2', 'Record_Delegation-B', 'added', 'a delegation is noted'),
    ('record_delegation-a', ' s1 ', ' s2 ', NULL, 'duplicate', 'once'),
    ('record_delegation-a', 's1', 's3', NULL, 'added', 'another child is another'),
    ('record_delegation-a', NULL, 's3', NULL, 'added', 'without a session it is the session default'),
    ('record_delegation-b', 's1', 's2', ' ', 'added', 'another theme is another'),
    ('sms:dm:record_delegation-1', 's1', 's2', 'sms:dm:+15550100123', 'added', 'a person''s'),
    ('sms:dm:record_delegation-2', 's1', 's2', NULL, 'added', 'another person''s')
) AS t (identity, session_id, child_session_id, child_identity, outcome, description)
CROSS JOIN LATERAL memvec.record_delegation(
    t.identity, t.session_id, t.child_session_id, t.child_identity, '{"task": "search"}'
) AS e;
SELECT is(a.id = b.id, true, 'a duplicate names the edge that is there')
FROM memvec.record_delegation('record_delegation-a', 's1', 's2') AS a
CROSS JOIN memvec.record_delegation('record_delegation-a', 's1', 's2', 'other', '{"task": "other"}') AS b;
SELECT throws_ok(
    format($$ SELECT memvec.record_delegation('record_delegation-a', 's1', %L) $$, t.child), 'MV001', NULL, 'no child, no delegation'
)
FROM (VALUES (NULL), (''), (U&'\3000')) AS t (child);

RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT parent_identity, parent_person IS NULL, parent_session_id, child_session_id, child_identity, attrs, created_at = now()
         FROM memvec.memory_agent_edges
        WHERE parent_identity LIKE 'record\_delegation%' OR parent_identity = 'whatsapp-dm'
        ORDER BY id $$,
    $$ VALUES
        ('record_delegation-a', true, 's1', 's2', 'record_delegation-b', '{"task": "search"}'::jsonb, true),
        ('record_delegation-a', true, 's1', 's3', NULL, '{"task": "search"}', true),
        ('record_delegation-a', true, 'default', 's3', NULL, '{"task": "search"}', true),
        ('record_delegation-b', true, 's1', 's2', NULL, '{"task": "search"}', true),
        ('whatsapp-dm', false, 's1', 's2', 'whatsapp-dm', '{"task": "search"}', true),
        ('whatsapp-dm', false, 's1', 's2', NULL, '{"task": "search"}', true) $$,
    'themes and sessions are kept, raw keys are not; the first word stands'
);

SELECT * FROM finish();
ROLLBACK;
