BEGIN;
SELECT plan(11);

SELECT is(
    pg_get_function_arguments('memvec.register_agent'::regproc),
    'p_identity text, p_attrs jsonb DEFAULT ''{}''::jsonb, p_governance jsonb DEFAULT NULL::jsonb, OUT agent_identity text, '
    'OUT kind text, OUT first_seen timestamp with time zone, OUT last_seen timestamp with time zone',
    'arguments and columns'
);
SELECT volatility_is('memvec', 'register_agent', 'volatile', 'volatile');
SELECT is_definer('memvec', 'register_agent', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.register_agent'), '{hermes,tap_admin}', 'who may execute it');

SELECT memvec_tests.act_as('hermes');
SELECT results_eq(
    $$ SELECT agent_identity, kind, first_seen = now(), last_seen = now()
         FROM memvec.register_agent(' Register-A', '{"host": "a", "tags": ["x", "y"]}') $$,
    $$ VALUES ('register-a', 'theme', true, true) $$,
    'a new theme'
);
SELECT memvec.register_agent('register-a', '{"version": 2}');
SELECT memvec.register_agent('register-a', '{"tags": ["x"]}');
SELECT memvec.register_agent('register-a');
SELECT memvec.register_agent('register-a', NULL);
SELECT memvec.register_agent('register-a', 'null');
SELECT memvec.register_agent('register-b', '"text"');
SELECT memvec.register_agent('agent:main:sms:group:register:1', '{"name": "Bob"}');
SELECT memvec.register_agent('agent:main:sms:dm:+15550100123', '{"name": "Bob", "phone": "+15550100123"}');
SELECT memvec.register_agent('register-c', '{"host": "c"}', '{"aliases": {"register-c": "register-d"}}');

RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT attrs FROM memvec.memory_agents WHERE agent_identity = 'register-a'),
    '{"host": "a", "version": 2, "tags": ["x"]}'::jsonb,
    'attributes are merged key by key, a later value stands, nothing takes nothing away'
);
SELECT is(
    (SELECT attrs FROM memvec.memory_agents WHERE agent_identity = 'register-b'), '{"value": "text"}'::jsonb,
    'what is no object becomes one'
);
SELECT results_eq(
    $$ SELECT agent_identity, kind, sink, attrs FROM memvec.memory_agents WHERE sink ORDER BY agent_identity $$,
    $$ VALUES ('external-group', 'group', true, '{}'::jsonb), ('whatsapp-dm', 'direct', true, '{}') $$,
    'of a sink nothing is kept'
);
SELECT is_empty(
    $$ SELECT * FROM memvec.memory_agents WHERE agent_identity = 'register-c' $$,
    'a host''s alias holds'
);
SELECT is_empty(
    $$ SELECT * FROM memvec.memory_agents AS a WHERE a::text ~ '1555' $$,
    'no number is anywhere in the registry'
);

-- Seen again
UPDATE memvec.memory_agents
   SET first_seen = now() - interval '2 days', last_seen = now() - interval '1 day'
 WHERE agent_identity = 'register-a';
SELECT memvec_tests.act_as('hermes');
SELECT results_eq(
    $$ SELECT first_seen < now(), last_seen = now() FROM memvec.register_agent('register-a') $$,
    $$ VALUES (true, true) $$,
    'the first sighting stays, the last is now'
);

SELECT * FROM finish();
ROLLBACK;
