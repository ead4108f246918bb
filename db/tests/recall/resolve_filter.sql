BEGIN;
SELECT plan(24);

SELECT is(memvec_tests.callers('memvec.resolve_filter'), '{}', 'internal');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    $$ SELECT memvec.resolve_filter('a', 'own', NULL, NULL, NULL, NULL, NULL, NULL) $$, '42501', NULL,
    'the runtime login may not call it'
);
RESET SESSION AUTHORIZATION;

CREATE FUNCTION pg_temp.filter(
    p_identity text, p_scope text, p_target text = NULL, p_session text = NULL, p_governance jsonb = NULL
) RETURNS memvec.recall_filter
LANGUAGE sql
AS $$ SELECT memvec.resolve_filter(p_identity, p_scope, p_target, p_session, NULL, NULL, NULL, p_governance) $$;

CREATE FUNCTION pg_temp.person(p_identity text) RETURNS uuid
LANGUAGE sql
AS $$ SELECT person_key FROM memvec.canonical_identity(p_identity) $$;

-- Scopes

SELECT is_empty(
    $$ SELECT s.scope FROM unnest(ARRAY['own', 'current', ' OWN ', '', '   ', NULL]) AS s (scope)
       WHERE pg_temp.filter('Resolve_filter', s.scope)
           IS DISTINCT FROM ROW('resolve_filter', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter $$,
    'own, current, blank and NULL mean the caller''s rows'
);
SELECT is(
    pg_temp.filter('resolve_filter', 'resolve_filter'), pg_temp.filter('resolve_filter', 'own'), 'so does one''s own name'
);
SELECT is(
    pg_temp.filter('resolve_filter', 'all'),
    ROW('resolve_filter', NULL, true, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter,
    'all: the caller''s rows and every ordinary theme'
);
SELECT is(
    (pg_temp.filter('resolve_filter', 'all', p_governance => '{"allowed_themes": ["Resolve_Filter", "sales", " "]}')).themes,
    ARRAY['resolve_filter', 'sales', 'default'],
    'all is no more than a host''s allow-list'
);
UPDATE memvec.settings SET value = 'sales, ops, resolve_filter' WHERE name = 'allowed_themes';
SELECT is(
    (pg_temp.filter('resolve_filter', 'all')).themes, ARRAY['sales', 'ops', 'resolve_filter', 'default'], 'nor than the fleet''s'
);
SELECT is(
    (pg_temp.filter('resolve_filter', 'all', p_governance => '{"allowed_themes": ["resolve_filter", "sales", "hr"]}')).themes,
    ARRAY['sales', 'resolve_filter', 'default'], 'with both lists, than what they have in common'
);
UPDATE memvec.settings SET value = '' WHERE name = 'allowed_themes';
SELECT is(
    pg_temp.filter('resolve_filter', ' Sales '),
    ROW('sales', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter,
    'a name: that theme only, in any spelling'
);
SELECT is(
    (SELECT f.own FROM pg_temp.filter('resolve_filter', '%') AS f), '%',
    'a wildcard is just a name'
);
SELECT is(
    pg_temp.filter('agent:main:telegram:dm:42', 'own'),
    ROW('whatsapp-dm', pg_temp.person('agent:main:telegram:dm:42'), false, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter,
    'in a sink, own is one person''s'
);
SELECT is(
    pg_temp.filter('agent:main:telegram:dm:42', 'agent:main:telegram:dm:43'), pg_temp.filter('agent:main:telegram:dm:42', 'own'),
    'in a sink, another person''s key is still one''s own'
);
SELECT is(
    pg_temp.filter('agent:main:telegram:dm:42', 'whatsapp-dm'), pg_temp.filter('agent:main:telegram:dm:42', 'own'),
    'so is the sink''s name'
);
SELECT is(
    pg_temp.filter('agent:main:telegram:dm:42', 'sales'), pg_temp.filter('resolve_filter', 'sales'),
    'from a sink, a named theme is read as nobody'
);
SELECT is(
    pg_temp.filter('resolve_filter', 'session', p_session => ' s1 '),
    ROW('resolve_filter', NULL, false, NULL, NULL, 's1', NULL, NULL, NULL)::memvec.recall_filter,
    'session keeps the theme'
);
SELECT throws_ok(
    $$ SELECT pg_temp.filter('resolve_filter', 'session') $$, 'MV001', NULL, 'session needs a session'
);

-- Refused

DO $$
DECLARE
    v_scope text;
BEGIN
    FOREACH v_scope IN ARRAY ARRAY[
        'whatsapp-dm', 'WhatsApp-DM', 'external-group', ' EXTERNAL-GROUP ', '_bench', '_BENCH', 'skill-bench',
        'agent:main:telegram:dm:42', 'agent:main:slack:channel:c1', '+1 555 010 0123', 'user@example.org'
    ] LOOP
        BEGIN
            PERFORM pg_temp.filter('resolve_filter', v_scope);
            RAISE EXCEPTION 'scope % was not refused', v_scope;
        EXCEPTION WHEN SQLSTATE 'MV003' THEN
            IF sqlerrm ~ '42|c1|555|user@' THEN
                RAISE EXCEPTION 'the message quotes the key: %', sqlerrm;
            END IF;
        END;
    END LOOP;
END
$$;
SELECT pass('a sink cannot be named, in any spelling, and the message quotes no key');
SELECT throws_ok(
    $$ SELECT pg_temp.filter('resolve_filter', 'sales', p_governance => '{"allowed_themes": ["resolve_filter"]}') $$,
    'MV003', NULL, 'a theme that the host does not allow is refused, not read as default'
);
SELECT throws_ok(
    $$ SELECT pg_temp.filter('agent:main:telegram:dm:42', 'external-group') $$, 'MV003', NULL,
    'from one sink, another one is refused'
);

-- Target and session

SELECT is((pg_temp.filter('resolve_filter', 'own', ' User ')).target, 'user', 'a target in any spelling');
SELECT is((pg_temp.filter('resolve_filter', 'own', 'both')).target, NULL, 'both targets');
SELECT is((pg_temp.filter('resolve_filter', 'own', ' ')).target, NULL, 'a blank target means both');
SELECT throws_ok(
    $$ SELECT pg_temp.filter('resolve_filter', 'own', 'notes') $$, 'MV001', NULL, 'an unknown target is refused'
);
SELECT is((pg_temp.filter('resolve_filter', 'own', p_session => '  ')).session_id, NULL, 'a blank session is none');

SELECT * FROM finish();
ROLLBACK;
