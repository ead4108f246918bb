-- The fleet's rules and a host's own: the host's may only narrow.
BEGIN;
SELECT plan(59);

SELECT is(memvec_tests.callers('memvec.governed_identity'), '{}', 'internal');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.governed_identity('x') $$, '42501', NULL, 'the runtime login may not call it');
RESET SESSION AUTHORIZATION;

INSERT INTO memvec.identity_aliases (alias, agent_identity) VALUES
('gi-old', 'gi-new'),
('gi-blank', ' '),
('gi-chat', 'agent:main:sms:dm:+15550100123'),
('agent:main:sms:dm:+15550100777', 'gi-family');

CREATE TEMP VIEW given AS
SELECT * FROM (VALUES
    -- no rules, or none of a known shape
    ('Gi-X', NULL, 'gi-x'),
    ('Gi-X', '{}', 'gi-x'),
    ('gi-x', '[]', 'gi-x'),
    ('gi-x', '"gi-y"', 'gi-x'),
    ('gi-x', 'null', 'gi-x'),
    ('gi-x', '{"aliases": ["gi-x"], "allowed_themes": "gi-y", "bench_mode": 5}', 'gi-x'),
    ('gi-x', '{"aliases": null, "allowed_themes": null, "bench_mode": null}', 'gi-x'),
    -- aliases
    ('gi-x', '{"aliases": {"gi-x": "gi-y"}}', 'gi-y'),
    (' GI-X', '{"aliases": {"Gi-X ": " Gi-Y"}}', 'gi-y'),
    ('gi-x', '{"aliases": {"gi-x": "gi-y", "gi-y": "gi-z"}}', 'gi-y'),
    ('gi-z', '{"aliases": {"gi-x": "gi-y"}}', 'gi-z'),
    ('gi-x', '{"aliases": {"gi-x": " "}}', 'default'),
    ('gi-x', '{"aliases": {"gi-x": "whatsapp-dm"}}', 'whatsapp-dm'),
    ('gi-x', '{"aliases": {"gi-x": "agent:main:sms:dm:1"}}', 'whatsapp-dm'),
    ('gi-x', '{"aliases": {"gi-x": "skill-bench"}}', '_bench'),
    ('default', '{"aliases": {"default": "gi-y"}}', 'gi-y'),
    (NULL, '{"aliases": {"": "gi-y"}}', 'default'),
    -- the fleet's alias comes first, and once more for what the host's alias names
    ('gi-old', NULL, 'gi-new'),
    ('gi-old', '{"aliases": {"gi-old": "gi-y"}}', 'gi-new'),
    ('gi-old', '{"aliases": {"gi-new": "gi-y"}}', 'gi-new'),
    ('gi-blank', '{"aliases": {"gi-blank": "gi-y"}}', 'default'),
    ('gi-x', '{"aliases": {"gi-x": "gi-old"}}', 'gi-new'),
    ('gi-x', '{"aliases": {"gi-x": "gi-chat"}}', 'whatsapp-dm'),
    -- a chat stays in its sink, whatever the host says
    ('agent:main:sms:dm:1', '{"aliases": {"agent:main:sms:dm:1": "gi-y"}}', 'whatsapp-dm'),
    ('agent:main:sms:dm:1', '{"aliases": {"whatsapp-dm": "gi-y"}}', 'whatsapp-dm'),
    ('whatsapp-dm', '{"aliases": {"whatsapp-dm": "gi-y"}}', 'whatsapp-dm'),
    ('agent:main:sms:group:1', '{"aliases": {"agent:main:sms:group:1": "gi-y"}}', 'external-group'),
    ('external-group', '{"aliases": {"external-group": "whatsapp-dm"}}', 'external-group'),
    ('gi-chat', '{"aliases": {"gi-chat": "gi-y"}}', 'whatsapp-dm'),
    ('skill-bench', '{"aliases": {"skill-bench": "gi-y"}}', '_bench'),
    ('agent:main:sms:dm:1', '{"allowed_themes": ["gi-y"]}', 'whatsapp-dm'),
    ('skill-bench', '{"allowed_themes": ["gi-y"]}', '_bench'),
    -- only the fleet may give a chat a theme
    ('agent:main:sms:dm:+15550100777', '{"aliases": {"agent:main:sms:dm:+15550100777": "gi-y"}}', 'gi-family'),
    -- allow-lists
    ('gi-x', '{"allowed_themes": ["gi-y"]}', 'default'),
    ('gi-x', '{"allowed_themes": ["gi-y", " GI-X "]}', 'gi-x'),
    ('gi-x', '{"allowed_themes": []}', 'gi-x'),
    ('gi-x', '{"allowed_themes": ["", null]}', 'gi-x'),
    ('gi-x', '{"allowed_themes": ["gi-y", "\u200b"]}', 'default'),
    ('gi-x', '{"aliases": {"gi-x": "gi-y"}, "allowed_themes": ["gi-x"]}', 'default'),
    ('gi-x', '{"aliases": {"gi-x": "gi-y"}, "allowed_themes": ["gi-y"]}', 'gi-y'),
    -- benchmarks
    ('skill-bench', '{"bench_mode": "reject"}', 'default'),
    ('skill-bench', '{"bench_mode": "bucket"}', '_bench'),
    ('gi-x', '{"aliases": {"gi-x": "skill-bench"}, "bench_mode": "reject"}', 'default')
) AS t (raw, governance, expected);

SELECT is(
    (memvec.governed_identity(g.raw, g.governance::jsonb)).agent_identity, g.expected,
    coalesce(g.raw, 'NULL') || ' with ' || coalesce(g.governance, 'nothing') || ' is ' || g.expected
)
FROM given AS g;
SELECT is_empty(
    $$ SELECT g.raw, g.governance, i.*
         FROM given AS g
        CROSS JOIN LATERAL memvec.governed_identity(g.raw, g.governance::jsonb) AS i
        WHERE (i.person_key IS NOT NULL) <> (i.agent_identity IN ('whatsapp-dm', 'external-group'))
           OR (i.kind = 'theme') <> (i.agent_identity LIKE 'gi-%')
           OR (i.kind = 'default') <> (i.agent_identity = 'default') $$,
    'person and kind agree with the theme'
);

SELECT is(a.person_key, b.person_key, 'a host''s rules make no other person of a chat')
FROM memvec.governed_identity('agent:main:sms:dm:1', '{"aliases": {"agent:main:sms:dm:1": "sms:2"}}') AS a
CROSS JOIN memvec.governed_identity('agent:main:sms:dm:1') AS b;
SELECT isnt(a.person_key, b.person_key, 'a host''s aliases onto a sink keep persons apart')
FROM memvec.governed_identity('gi-bob', '{"aliases": {"gi-bob": "whatsapp-dm", "gi-eve": "whatsapp-dm"}}') AS a
CROSS JOIN memvec.governed_identity('gi-eve', '{"aliases": {"gi-bob": "whatsapp-dm", "gi-eve": "whatsapp-dm"}}') AS b;

-- The fleet's settings with the host's
SELECT memvec.set_setting('allowed_themes', 'gi-a, gi-b, gi-new');
SELECT is(
    (memvec.governed_identity(t.raw, t.governance::jsonb)).agent_identity, t.expected,
    'allowed are gi-a, gi-b, gi-new: ' || t.raw || ' with ' || coalesce(t.governance, 'nothing') || ' is ' || t.expected
)
FROM (VALUES
    ('gi-a', NULL, 'gi-a'),
    ('gi-c', NULL, 'default'),
    ('gi-c', '{"allowed_themes": ["gi-c"]}', 'default'),
    ('gi-b', '{"allowed_themes": ["gi-a", "gi-c"]}', 'default'),
    ('gi-a', '{"allowed_themes": ["gi-a", "gi-c"]}', 'gi-a'),
    ('gi-c', '{"aliases": {"gi-c": "gi-a"}}', 'gi-a'),
    ('gi-a', '{"aliases": {"gi-a": "gi-c"}}', 'default'),
    ('gi-chat', '{"allowed_themes": ["gi-a"]}', 'whatsapp-dm'),
    ('agent:main:sms:dm:+15550100777', '{"aliases": {"agent:main:sms:dm:+15550100777": "gi-a"}}', 'default')
) AS t (raw, governance, expected);

SELECT memvec.set_setting('bench_mode', 'reject');
SELECT is(
    (memvec.governed_identity('skill-bench', '{"bench_mode": "bucket"}')).agent_identity, 'default',
    'reject wins over a host''s bucket'
);
SELECT is(
    (memvec.governed_identity('gi-a', '{"aliases": {"gi-a": "skill-bench"}}')).agent_identity, 'default',
    'also for what an alias names'
);

SELECT * FROM finish();
ROLLBACK;
