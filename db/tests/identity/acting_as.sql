-- Who may act as which theme: acting_as and may_act_as, seen through the functions that a login calls.
BEGIN;
SELECT plan(38);

SELECT is(memvec_tests.callers('memvec.acting_as'), '{}', 'internal');
SELECT is(memvec_tests.callers('memvec.may_act_as'), '{}', 'internal');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.acting_as('x') $$, '42501', NULL, 'the runtime login may not call acting_as');
SELECT throws_ok($$ SELECT memvec.may_act_as('x') $$, '42501', NULL, 'nor may_act_as');

CREATE FUNCTION pg_temp.acts(p_identity text, p_governance text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (memvec.add_memory(p_identity, 'memory', 'acting as', p_governance => p_governance::jsonb)).outcome;
EXCEPTION WHEN SQLSTATE 'MV002' THEN
    RETURN 'MV002';
END;
$$;

SELECT is(pg_temp.acts('acting-any'), 'added', 'an unbound login may act as any theme');

RESET SESSION AUTHORIZATION;
SELECT memvec.bind_role('tap_bound', 'Acting-A');
SELECT memvec.bind_role('tap_bound', 'acting-b', true);
SELECT memvec.bind_role('tap_bound', 'agent:main:sms:dm:acting');
INSERT INTO memvec.identity_aliases (alias, agent_identity) VALUES ('acting-alias', 'acting-a'), ('acting-away', 'acting-c');

SELECT memvec_tests.act_as('tap_bound');
SELECT is(pg_temp.acts(t.identity, t.governance), t.expected, t.description)
FROM (VALUES
    ('acting-a', NULL, 'added', 'a bound login may act as its theme'),
    (' ACTING-B ', NULL, 'added', 'and as each of several, however it is spelled'),
    ('acting-alias', NULL, 'duplicate', 'and under the fleet''s alias'),
    ('acting-c', NULL, 'MV002', 'not as another theme'),
    ('acting-away', NULL, 'MV002', 'not under an alias of another'),
    ('default', NULL, 'MV002', 'not as default'),
    ('', NULL, 'MV002', 'not without a name'),
    ('agent:main:sms:dm:acting', NULL, 'added', 'as the sink it was bound to'),
    ('agent:main:sms:group:acting', NULL, 'MV002', 'not as another sink'),
    ('skill-bench', NULL, 'MV002', 'not as a benchmark'),
    ('acting-c', '{"aliases": {"acting-c": "acting-a"}}', 'duplicate', 'what counts is the theme that the host''s rules lead to'),
    ('acting-a', '{"aliases": {"acting-a": "acting-c"}}', 'MV002', 'also when they lead away'),
    ('acting-a', '{"allowed_themes": ["acting-c"]}', 'MV002', 'or into default')
) AS t (identity, governance, expected, description);
SELECT throws_ok(
    $$ SELECT memvec.add_memory('agent:main:telegram:group:-100:55512345', 'memory', 'x') $$,
    'MV002', 'login role tap_bound may not act as theme "external-group"',
    'the error names login and theme, never the key'
);
SELECT throws_ok(
    format('SELECT memvec.%s', t.call), 'MV002', NULL, 'every function refuses: ' || split_part(t.call, '(', 1)
)
FROM (VALUES
    ($$hello('acting-c')$$),
    ($$register_agent('acting-c')$$),
    ($$add_memory('acting-c', 'memory', 'x')$$),
    ($$replace_memory('acting-c', 'memory', 'x', 'y')$$),
    ($$remove_memory('acting-c', 'memory', 'x')$$),
    ($$sync_memories('acting-c', gen_random_uuid(), 'memory', '{}')$$),
    ($$append_turn('acting-c', 's', 'user', 'x')$$),
    ($$record_delegation('acting-c', 's', 't')$$),
    ($$recall_memory('acting-c', 'x')$$),
    ($$recall_conversation('acting-c', 'x')$$),
    ($$prefetch('acting-c', 'x')$$)
) AS t (call);

-- SET ROLE does not change who logged in
RESET SESSION AUTHORIZATION;
GRANT memvec_admin TO tap_bound;
SELECT memvec_tests.act_as('tap_bound');
SET LOCAL ROLE memvec_admin;
SELECT is(pg_temp.acts('acting-c'), 'MV002', 'a bound login stays bound as an administrator and under SET ROLE');
RESET ROLE;

RESET SESSION AUTHORIZATION;
SELECT memvec.unbind_role('tap_bound', 'acting-b');
SELECT memvec_tests.act_as('tap_bound');
SELECT is(pg_temp.acts('acting-b'), 'MV002', 'an unbound theme is gone');
SELECT is(pg_temp.acts('acting-a'), 'duplicate', 'the others stay');
RESET SESSION AUTHORIZATION;
SELECT memvec.unbind_role('tap_bound');
SELECT memvec_tests.act_as('tap_bound');
SELECT is(pg_temp.acts('acting-c'), 'added', 'a login without any binding may act as any theme again');

-- require_binding
RESET SESSION AUTHORIZATION;
REVOKE memvec_admin FROM tap_bound;
SELECT memvec.set_setting('require_binding', 'on');
SELECT memvec_tests.act_as('tap_bound');
SELECT is(pg_temp.acts('acting-a'), 'MV002', 'when binding is required, an unbound login may act as nobody');
SELECT memvec_tests.act_as('tap_admin');
SELECT is(pg_temp.acts('acting-a'), 'duplicate', 'but an administrator may');
SELECT memvec.bind_role('tap_bound', 'acting-a');
SELECT memvec_tests.act_as('tap_bound');
SELECT is(pg_temp.acts('acting-a'), 'duplicate', 'and who is bound');
SELECT is(pg_temp.acts('acting-c'), 'MV002', 'as that theme only');

SELECT * FROM finish();
ROLLBACK;
