-- The pairs (raw session key, theme) that every release must keep, one test each, and what they cannot show: who is the same
-- person, what a long name becomes, and that no phone number or e-mail address is ever a theme's name.
BEGIN;
SELECT plan(221);

-- The contract

SELECT is(
    pg_get_function_arguments('memvec.canonical_identity'::regproc),
    'p_raw text, p_aliases jsonb DEFAULT NULL::jsonb, p_allowed text[] DEFAULT NULL::text[], '
    'p_bench_mode text DEFAULT NULL::text, OUT agent_identity text, OUT person_key uuid, OUT kind text, OUT reason text',
    'arguments and columns'
);
SELECT volatility_is('memvec', 'canonical_identity', 'stable', 'stable');
SELECT is_definer('memvec', 'canonical_identity', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.canonical_identity'), '{hermes,tap_admin,tap_reader}', 'who may execute it');

-- The pairs

CREATE TEMP TABLE golden (
    position integer GENERATED ALWAYS AS IDENTITY,
    raw text,
    identity text NOT NULL,
    reason text NOT NULL,
    aliases jsonb,
    allowed text [],
    bench_mode text
);
GRANT SELECT ON golden TO public;

INSERT INTO golden (raw, identity, reason) VALUES
(NULL, 'default', 'empty'),
('', 'default', 'empty'),
('   ', 'default', 'empty'),
(U&'\00A0\0009\000A', 'default', 'empty'),
('marketing', 'marketing', 'unchanged'),
('  marketing  ', 'marketing', 'trimmed'),
('Marketing', 'marketing', 'lowercased'),
('MORNING-Report', 'morning-report', 'lowercased'),
('Default', 'default', 'lowercased'),
('agent:main:whatsapp:dm:15550100123', 'whatsapp-dm', 'dm-bucket'),
('agent:main:whatsapp:dm:15550100123@s.whatsapp.net', 'whatsapp-dm', 'dm-bucket'),
('agent:coder:whatsapp:dm:15550100123:77', 'whatsapp-dm', 'dm-bucket'),
('agent:main:whatsapp:dm', 'whatsapp-dm', 'dm-bucket'),
('agent:main:telegram:dm:55512345', 'whatsapp-dm', 'dm-bucket'),
('agent:main:telegram:dm', 'whatsapp-dm', 'dm-bucket'),
('agent:main:discord:dm:112233445566', 'whatsapp-dm', 'dm-bucket'),
('agent:main:slack:dm:D024BE91L:1700000000.1', 'whatsapp-dm', 'dm-bucket'),
('agent:main:email:dm:bob@example.com', 'whatsapp-dm', 'dm-bucket'),
('agent:main:matrix:dm:!room:hs.org', 'whatsapp-dm', 'dm-bucket'),
('agent:main:a_new_platform:dm:x', 'whatsapp-dm', 'dm-bucket'),
('signal:dm:+15550100123', 'whatsapp-dm', 'dm-bucket'),
('dm:bob', 'whatsapp-dm', 'dm-bucket'),
('x:dm:bob', 'whatsapp-dm', 'dm-bucket'),
('dm', 'dm', 'unchanged'),
('whatsapp:dm', 'whatsapp-dm', 'dm-bucket'),
('whatsapp:15550100123', 'whatsapp-dm', 'dm-bucket'),
('telegram:+15551234', 'whatsapp-dm', 'dm-bucket'),
('WhatsApp:15550100123', 'whatsapp-dm', 'dm-bucket'),
('whatsapp:abc', 'whatsapp:abc', 'unchanged'),
('whatsapp_cloud:15550100123', 'whatsapp-dm', 'dm-bucket'),
('sms:+15550100123', 'whatsapp-dm', 'dm-bucket'),
('sms:15550100123', 'whatsapp-dm', 'dm-bucket'),
('email:bob@example.com', 'whatsapp-dm', 'dm-bucket'),
('discord:112233445566', 'whatsapp-dm', 'dm-bucket'),
('slack:U024BE7LH', 'whatsapp-dm', 'dm-bucket'),
('matrix:@bob:hs.org', 'whatsapp-dm', 'dm-bucket'),
('+15550100123', 'whatsapp-dm', 'dm-bucket'),
('desk:signal:main', 'desk:signal:main', 'unchanged'),
('desk:signal:9am', 'desk:signal:9am', 'unchanged'),
('whatsapp-dm', 'whatsapp-dm', 'unchanged'),
('WhatsApp-DM', 'whatsapp-dm', 'lowercased'),
('agent:main:webui:direct:bob', 'whatsapp-dm', 'dm-bucket'),
('agent:main:feishu:p2p:ou_1', 'whatsapp-dm', 'dm-bucket'),
('agent:main:whatsapp:group:12036304@g.us:15550100123', 'external-group', 'group-bucket'),
('agent:main:telegram:group:-100123:55512345', 'external-group', 'group-bucket'),
('agent:main:telegram:forum:-100123:7:55512345', 'external-group', 'group-bucket'),
('agent:main:telegram:channel:-100123', 'external-group', 'group-bucket'),
('agent:main:discord:channel:998877:1122', 'external-group', 'group-bucket'),
('agent:main:discord:thread:998877:66', 'external-group', 'group-bucket'),
('agent:main:slack:group:C024BE91L:U024BE7LH', 'external-group', 'group-bucket'),
('agent:main:slack:thread:C024:1700.1', 'external-group', 'group-bucket'),
('agent:main:sms:group:thread9:+15550100123', 'external-group', 'group-bucket'),
('agent:main:matrix:group:!room:hs.org:@bob:hs.org', 'external-group', 'group-bucket'),
('agent:main:matrix:room:!room:hs.org', 'external-group', 'group-bucket'),
('agent:main:line:room:R123:U9', 'external-group', 'group-bucket'),
('agent:main:webhook:webhook:gh:delivery-1', 'external-group', 'group-bucket'),
('agent:main:teams:channel:19:abc', 'external-group', 'group-bucket'),
('agent:main:telegram:supergroup:-100:55', 'external-group', 'group-bucket'),
('agent:main:x:broadcast:1:2', 'external-group', 'group-bucket'),
('whatsapp:group:12036304:15550100123', 'external-group', 'group-bucket'),
('telegram:forum:-100:55', 'external-group', 'group-bucket'),
('line:room:R1:U1', 'external-group', 'group-bucket'),
('sms:thread:1:+15550100123', 'external-group', 'group-bucket'),
('newplat:group:1:+15550100123', 'external-group', 'group-bucket'),
('eng:channel:alerts', 'eng:channel:alerts', 'unchanged'),
('ops:group:oncall', 'ops:group:oncall', 'unchanged'),
('group:oncall', 'group:oncall', 'unchanged'),
('agent:main:slack:groups:C1', 'external-group', 'group-bucket'),
('external-group', 'external-group', 'unchanged'),
('agent:main:email:group', 'external-group', 'group-bucket'),
('skill-bench', '_bench', 'bench-bucket'),
('skill-bench-ws', '_bench', 'bench-bucket'),
('bench', '_bench', 'bench-bucket'),
('bench-ws', '_bench', 'bench-bucket'),
('my-bench', '_bench', 'bench-bucket'),
('workbench', 'workbench', 'unchanged'),
('skill-bench-2', 'skill-bench-2', 'unchanged'),
('_bench', '_bench', 'unchanged'),
(U&'bench\000A', '_bench', 'bench-bucket'),
(U&'Caf\00E9', U&'caf\00E9', 'lowercased'),
(U&'Cafe\0301', U&'caf\00E9', 'cleaned'),
(U&'stra\00DFe', U&'stra\00DFe', 'unchanged'),
('STRASSE', 'strasse', 'lowercased'),
(U&'\041C\0430rketing', U&'\043C\0430rketing', 'lowercased'),
(U&'market\200Bing', 'marketing', 'cleaned'),
('mark eting', 'mark eting', 'unchanged'),
(U&'\FF37hatsapp:dm:1', 'whatsapp-dm', 'dm-bucket'),
('whatsapp :dm:1', 'whatsapp-dm', 'dm-bucket'),
('''; drop table memory_entries; --', '''; drop table memory_entries; --', 'unchanged'),
('agent:main:telegram:private:55512345', 'whatsapp-dm', 'dm-bucket'),
('AGENT:Main:WhatsApp:DM:15550100123', 'whatsapp-dm', 'dm-bucket'),
('agent:main:teams:meeting:19:meeting_abc:8:orgid:77', 'external-group', 'group-bucket'),
('agent:main:zoom:huddle', 'external-group', 'group-bucket'),
('agent-trading', 'agent-trading', 'unchanged'),
('morning-report-sr', 'morning-report-sr', 'unchanged'),
('phone:+44 20 7946 0958', 'whatsapp-dm', 'dm-bucket'),
('team:ops', 'team:ops', 'unchanged'),
('v2:signal:alerts', 'v2:signal:alerts', 'unchanged'),
('release:2026-11-30', 'release:2026-11-30', 'unchanged'),
('ticket:12345', 'ticket:12345', 'unchanged');

INSERT INTO golden (raw, identity, reason, bench_mode)
SELECT
    p.raw,
    p.identity,
    p.reason,
    'reject'
FROM (VALUES
    ('skill-bench', 'default', 'bench-reject')
) AS p (raw, identity, reason);

INSERT INTO golden (raw, identity, reason, bench_mode)
SELECT
    p.raw,
    p.identity,
    p.reason,
    'bogus'
FROM (VALUES
    ('skill-bench', '_bench', 'bench-bucket')
) AS p (raw, identity, reason);

INSERT INTO golden (raw, identity, reason, aliases)
SELECT
    p.raw,
    p.identity,
    p.reason,
    '{"agent-hermes": "hermes", "Sales-Bot": "Sales", "wa": "agent:main:whatsapp:dm:15550100123", "blank": "  ", "b": "skill-bench", "chain1": "chain2", "chain2": "end"}'::jsonb
FROM (VALUES
    ('agent-hermes', 'hermes', 'alias'),
    ('Agent-Hermes', 'hermes', 'alias'),
    ('sales-bot', 'sales', 'alias'),
    ('wa', 'whatsapp-dm', 'dm-bucket'),
    ('blank', 'default', 'alias'),
    ('b', '_bench', 'bench-bucket'),
    ('chain1', 'chain2', 'alias'),
    (' agent-hermes ', 'hermes', 'alias')
) AS p (raw, identity, reason);

INSERT INTO golden (raw, identity, reason, allowed)
SELECT
    p.raw,
    p.identity,
    p.reason,
    ARRAY['Marketing', ' sales ', '']::text []
FROM (VALUES
    ('marketing', 'marketing', 'unchanged'),
    ('Marketing', 'marketing', 'lowercased'),
    ('sales', 'sales', 'unchanged'),
    ('trading', 'default', 'not-in-allowlist'),
    ('whatsapp-dm', 'whatsapp-dm', 'unchanged'),
    ('_bench', '_bench', 'unchanged'),
    ('agent:main:sms:dm:1', 'whatsapp-dm', 'dm-bucket'),
    ('skill-bench', '_bench', 'bench-bucket'),
    ('external-group', 'external-group', 'unchanged'),
    ('hermes', 'default', 'not-in-allowlist')
) AS p (raw, identity, reason);

INSERT INTO golden (raw, identity, reason, allowed)
SELECT
    p.raw,
    p.identity,
    p.reason,
    ARRAY[]::text []
FROM (VALUES
    ('sales', 'sales', 'unchanged')
) AS p (raw, identity, reason);

INSERT INTO golden (raw, identity, reason, aliases, allowed)
SELECT
    p.raw,
    p.identity,
    p.reason,
    '{"agent-hermes": "hermes", "Sales-Bot": "Sales", "wa": "agent:main:whatsapp:dm:15550100123", "blank": "  ", "b": "skill-bench", "chain1": "chain2", "chain2": "end"}'::jsonb,
    ARRAY['hermes']::text []
FROM (VALUES
    ('agent-hermes', 'hermes', 'alias')
) AS p (raw, identity, reason);

SELECT memvec_tests.act_as('hermes');

SELECT is(
    c.agent_identity || ', ' || c.reason, g.identity || ', ' || g.reason,
    format('%s. %s', g.position, coalesce(to_json(g.raw)::text, 'NULL'))
)
FROM golden AS g
CROSS JOIN LATERAL memvec.canonical_identity(g.raw, g.aliases, g.allowed, g.bench_mode) AS c
ORDER BY g.position;

-- kind and person_key

SELECT is(c.kind, t.kind, 'kind of ' || t.raw)
FROM (VALUES
    ('', 'default'),
    ('default', 'default'),
    ('marketing', 'theme'),
    ('agent:main:whatsapp:dm:15550100123', 'direct'),
    ('agent:main:discord:group:77', 'group'),
    ('skill-bench', 'bench')
) AS t (raw, kind)
CROSS JOIN LATERAL memvec.canonical_identity(t.raw) AS c;

SELECT is_empty(
    $$ SELECT g.raw, c.*
         FROM golden AS g
        CROSS JOIN LATERAL memvec.canonical_identity(g.raw, g.aliases, g.allowed, g.bench_mode) AS c
        WHERE (c.person_key IS NOT NULL) <> (c.agent_identity IN ('whatsapp-dm', 'external-group'))
           OR (c.kind = 'direct') <> (c.agent_identity = 'whatsapp-dm')
           OR (c.kind = 'group') <> (c.agent_identity = 'external-group')
           OR (c.kind = 'bench') <> (c.agent_identity = '_bench')
           OR (c.kind = 'default') <> (c.agent_identity = 'default') $$,
    'a person is known exactly in the two sinks of people, and kind agrees with the theme'
);

SELECT is_empty(
    $$ SELECT g.raw, once.agent_identity, twice.agent_identity
         FROM golden AS g
        CROSS JOIN LATERAL memvec.canonical_identity(g.raw, g.aliases, g.allowed, g.bench_mode) AS once
        CROSS JOIN LATERAL memvec.canonical_identity(once.agent_identity) AS twice
        WHERE once.agent_identity <> twice.agent_identity $$,
    'a theme''s name stands for itself'
);

-- No personal data in a name

SELECT is_empty(
    $$ SELECT t.raw, c.agent_identity
         FROM (VALUES
             ('15550100123'), ('+15550100123'), ('+1 (555) 010-0123'), ('+1-555-010-0123'), ('+1.555.010.0123'),
             (U&'+1\2013555\2013010\20130123'), (U&'+1\2011555\2011010\20110123'), ('+(44) 20 7946 0958'),
             ('+49/30/1234567'), ('+ 1 555 010 0123'), ('(555) 010-0123'), ('1-555-010-0123'), ('555-010-0123'),
             ('555.010.0123'), (U&'\FF0B\FF11\FF15\FF15\FF15\FF10\FF11\FF10\FF10\FF11\FF12\FF13'),
             (U&'+1555\200B0100123'), (U&'+1\00A0555\00A00100123'), ('c+1 and +15550100123'), ('team of +15550100123'),
             ('sms:+15550100123'), ('sms:15550100123'), ('SMS: +1 555 0100 123'), ('signal:+15550100123'),
             ('tel:+15550100123'), ('tel:555-0123'), ('phone:(555) 010-0123'), ('telegram:55512345'),
             ('team:+15550100123'), ('a:b:c:+15550100123'),
             ('15550100123@s.whatsapp.net'), ('whatsapp:15550100123@c.us'), ('12036304@g.us'),
             ('user@example.org'), ('User@Example.ORG'), (U&'user\FF20example.org'), ('mail of user@example.org'),
             ('mailto:user@example.org'), ('a:user@example.org:b'), (U&'user@beispiel.\0440\0444'),
             ('<user@example.org>'), ('user+tag@example.co.uk'), ('matrix:@bob:hs.org'), ('matrix:!room:hs.org'),
             ('slack:U024BE7LH'), ('discord:112233445566'), ('signal:123e4567-e89b-12d3-a456-426614174000'),
             ('agent:main:sms:dm:+15550100123'), ('agent:main:sms:+15550100123'), ('agent::sms:dm:+15550100123'),
             ('agent:main:sms:never-heard-of:+15550100123'), ('agent : main : sms : dm : +15550100123'),
             ('newplat:dm:+15550100123')
         ) AS t (raw)
        CROSS JOIN LATERAL memvec.canonical_identity(t.raw) AS c
        WHERE c.agent_identity NOT IN ('whatsapp-dm', 'external-group') $$,
    'phone numbers, e-mail addresses and platform ids end in a sink, however they are spelled'
);
SELECT is_empty(
    $$ SELECT t.raw, c.agent_identity
         FROM (VALUES
             ('c++ team'), ('release:2026-11-30'), ('2026-11-30'), ('2026-11-30 12:00'), ('ticket:12345'), ('v1.2.3'),
             ('10.0.0.1'), ('desk:signal:9am'), ('eng:channel:alerts'), ('room 101'), ('1+1'), ('sprint 2026/27'), ('@ops'),
             ('a@b')
         ) AS t (raw)
        CROSS JOIN LATERAL memvec.canonical_identity(t.raw) AS c
        WHERE c.agent_identity <> t.raw OR c.kind <> 'theme' $$,
    'ordinary names with digits, colons and signs stay what they are'
);
SELECT is(
    (memvec.canonical_identity(t.raw)).kind, t.kind,
    'a chat stays a chat, whatever its id looks like: ' || t.raw
)
FROM (VALUES
    ('agent:main:discord:group:work-bench', 'group'),
    ('agent:main:webui:dm:my-bench', 'direct'),
    ('agent:main:telegram:group:-100:bench-ws', 'group'),
    ('agent:bench:telegram:dm:55', 'direct'),
    ('agent:main:matrix:space:!x:example.org', 'group')
) AS t (raw, kind);

-- Names

SELECT is(
    length((memvec.canonical_identity(repeat('x', 300))).agent_identity), 200,
    'a name of 300 characters is cut to 200'
);
SELECT isnt(
    (memvec.canonical_identity(repeat('x', 300))).agent_identity,
    (memvec.canonical_identity(repeat('x', 299) || 'y')).agent_identity,
    'two long names that begin alike stay two'
);
SELECT is(
    (memvec.canonical_identity(upper(repeat('x', 300)))).agent_identity,
    (memvec.canonical_identity(repeat('x', 300))).agent_identity,
    'one long name stays one'
);
SELECT is(
    (memvec.canonical_identity(repeat('x', 200))).agent_identity, repeat('x', 200),
    'a name of 200 characters is not cut'
);
SELECT is(
    (memvec.canonical_identity(repeat('x', 300), NULL, ARRAY[repeat('X', 300)])).kind, 'theme',
    'a long name can be allowed'
);
SELECT is(
    (memvec.canonical_identity(repeat('agent:main:sms:dm:', 20000))).agent_identity, 'whatsapp-dm',
    'a very long chat key is a chat key'
);

-- Aliases and allow-lists of odd shapes

SELECT is((memvec.canonical_identity('ci-x', '[1]')).agent_identity, 'ci-x', 'aliases that are no object are no aliases');
SELECT is((memvec.canonical_identity('ci-x', '{"ci-x": null}')).agent_identity, 'default', 'an alias onto null is default');
SELECT is((memvec.canonical_identity(NULL, '{"": "ci-y"}')).agent_identity, 'default', 'nothing has no alias');
SELECT is((memvec.canonical_identity('ci-x', NULL, ARRAY[NULL, ' '])).agent_identity, 'ci-x', 'a list of blanks allows all');
SELECT is(
    (memvec.canonical_identity('ci-x', NULL, ARRAY['marketing', U&'\200B'])).agent_identity, 'default',
    'an invisible name in the list does not open it'
);

-- One contact is one person

SELECT ok(a.person_key = b.person_key AND a.agent_identity = b.agent_identity, format('one person: %s = %s', t.a, t.b))
FROM (VALUES
    ('agent:main:whatsapp:dm:15550100123', 'agent:coder:whatsapp:dm:15550100123'),
    ('agent:main:whatsapp:dm:15550100123', 'AGENT:Main:WhatsApp:DM:15550100123'),
    ('agent:main:whatsapp:dm:15550100123', 'agent : main : whatsapp : dm : 15550100123'),
    ('agent:main:whatsapp:dm:15550100123', 'agent:main:whatsapp:dm:15550100123@s.whatsapp.net'),
    ('agent:main:whatsapp:dm:15550100123', 'agent:main:whatsapp:dm:15550100123:12@s.whatsapp.net'),
    ('agent:main:whatsapp:dm:15550100123', 'agent:main:whatsapp:dm:15550100123@c.us'),
    ('agent:main:whatsapp:dm:15550100123', 'agent:main:whatsapp:dm:15550100123:77'),
    ('agent:main:whatsapp:dm:15550100123', 'agent:main:whatsapp:direct:+15550100123'),
    ('agent:main:whatsapp:dm:15550100123', 'whatsapp:dm:15550100123'),
    ('agent:main:whatsapp:dm:15550100123', 'whatsapp:+1 (555) 010-0123'),
    ('agent:main:sms:dm:+15550100123', 'sms:15550100123'),
    ('+15550100123', '15550100123'),
    ('+15550100123', U&'+1\2013555\2013010\20130123'),
    ('agent:main:telegram:dm:55512345', 'telegram:55512345'),
    ('agent:main:telegram:dm:55512345', 'agent:main:telegram:private:55512345:9'),
    ('agent:main:slack:dm:D024BE91L', 'agent:main:slack:dm:d024be91l:1700000000.1'),
    ('agent:main:email:dm:Bob@Example.com', 'email:bob@example.com'),
    ('agent:main:email:dm:bob@example.com', 'agent:main:email:dm:bob@example.com:thread-7'),
    ('agent:main:discord:dm:112233445566', 'discord:112233445566'),
    ('agent:main:discord:group:77:1122', 'agent:coder:discord:group:77:1122'),
    ('agent:main:discord:group:77:1122', 'Discord:Group:77:1122')
) AS t (a, b)
CROSS JOIN LATERAL memvec.canonical_identity(t.a) AS a
CROSS JOIN LATERAL memvec.canonical_identity(t.b) AS b;

-- Two contacts are never one person

SELECT ok(a.person_key <> b.person_key, format('two persons: %s, %s', t.a, t.b))
FROM (VALUES
    ('agent:main:whatsapp:dm:15550100123', 'agent:main:whatsapp:dm:15550100124'),
    ('agent:main:whatsapp:dm:15550100123', 'agent:main:telegram:dm:15550100123'),
    ('agent:main:whatsapp:dm:15550100123', 'agent:main:whatsapp:dm'),
    ('agent:main:whatsapp:dm:15550100123', 'whatsapp-dm'),
    ('agent:main:whatsapp:dm', 'agent:main:telegram:dm'),
    ('whatsapp:15550', 'whatsapp:155501'),
    ('sms:tel:+15550100123', 'sms:tel:+15550100999'),
    ('sms:e164:+15550100123', 'sms:e164:+15550100999'),
    ('sms:dm:1:+15550100123', 'sms:dm:1:+15550100999'),
    ('imessage:dm:imessage:+15550100123', 'imessage:dm:imessage:+15550100999'),
    ('signal:dm:username:bob.01', 'signal:dm:username:eve.01'),
    ('relay:dm:10.0.11.1', 'relay:dm:10.0.1.11'),
    ('webui:dm:4-2', 'webui:dm:42'),
    ('agent:main:webui:dm:user-42', 'agent:main:webui:dm:user-43'),
    ('email:bob@c.us', 'agent:main:email:dm:bob'),
    ('email:dm:bob@c.usa.com', 'email:dm:boba.com'),
    ('email:bob@example.com', 'email:bob@example.org'),
    ('email:b.ob@example.com', 'email:bob@example.com'),
    ('agent:main:slack:dm:D024BE91L', 'agent:main:slack:dm:D024BE91M'),
    ('agent:main:slack:dm:users:D024BE91L', 'agent:main:slack:dm:users:D024BE91M'),
    ('agent:main:matrix:dm:!room:hs.org', 'agent:main:matrix:dm:!room:other.org'),
    ('agent:main:matrix:dm:!a:hs.org', 'agent:main:matrix:dm:!b:hs.org'),
    ('agent:main:matrix:dm:@bob:hs.org', 'agent:main:matrix:dm:@bob:other.org'),
    ('agent:main:teams:dm:19:abc', 'agent:main:teams:dm:19:def'),
    ('agent:main:feishu:p2p:ou_1', 'agent:main:feishu:p2p:ou_2'),
    ('dm:bob', 'dm:eve'),
    -- members of one group, one member in two groups, the group without a member
    ('agent:main:telegram:group:-100123:55512345', 'agent:main:telegram:group:-100123:55512346'),
    ('agent:main:telegram:group:-100123:55512345', 'agent:main:telegram:group:-100124:55512345'),
    ('agent:main:telegram:group:-100123:55512345', 'agent:main:telegram:group:-100123'),
    ('agent:main:sms:group:thread9:+15550100123', 'agent:main:sms:group:thread9:+15550100124'),
    ('agent:main:matrix:group:!room:hs.org:@bob:hs.org', 'agent:main:matrix:group:!room:hs.org:@eve:hs.org'),
    ('agent:main:matrix:room:!room:hs.org', 'agent:main:matrix:room:!room:other.org'),
    ('agent:main:matrix:group:!room:hs.org', 'agent:main:matrix:room:!room:hs.org'),
    ('agent:main:slack:thread:C024:1700.1', 'agent:main:slack:thread:C024:1700.2'),
    -- the same id, alone with the agent and in a group
    ('agent:main:discord:dm:1122', 'agent:main:discord:group:1122')
) AS t (a, b)
CROSS JOIN LATERAL memvec.canonical_identity(t.a) AS a
CROSS JOIN LATERAL memvec.canonical_identity(t.b) AS b;

SELECT isnt(a.person_key, b.person_key, 'an alias onto a sink keeps persons apart')
FROM memvec.canonical_identity('ci-bob', '{"ci-bob": "whatsapp-dm", "ci-eve": "whatsapp-dm"}') AS a
CROSS JOIN memvec.canonical_identity('ci-eve', '{"ci-bob": "whatsapp-dm", "ci-eve": "whatsapp-dm"}') AS b;
SELECT is(
    (memvec.canonical_identity('agent:main:sms:dm:+15550100123', '{"agent:main:sms:dm:+15550100123": "whatsapp-dm"}')).person_key,
    (memvec.canonical_identity('sms:15550100123')).person_key,
    'an alias of a chat onto its sink leaves the person who it is'
);
SELECT is(
    (memvec.canonical_identity('ci-wa', '{"ci-wa": "agent:main:sms:dm:+15550100123"}')).person_key,
    (memvec.canonical_identity('sms:15550100123')).person_key,
    'an alias onto a chat key is that person'
);
SELECT unalike(
    (memvec.canonical_identity('agent:main:sms:dm:+15550100123')).person_key::text,
    '%' || substr(encode(sha256(convert_to('sms:15550100123', 'UTF8')), 'hex'), 1, 8) || '%',
    'a person is not a bare hash of the number, which anybody could try out'
);

-- The fleet's settings are the default, in the database and for everybody

RESET SESSION AUTHORIZATION;
INSERT INTO memvec.identity_aliases (alias, agent_identity) VALUES ('ci-old', 'Ci-New'), ('ci-new', 'ci-newer');
SELECT memvec.set_setting('allowed_themes', 'ci-new, CI-TOO');
SELECT memvec.set_setting('bench_mode', 'reject');
SELECT memvec_tests.act_as('hermes');

SELECT is(c.agent_identity || ', ' || c.reason, t.expected, 'with settings in the database: ' || t.raw)
FROM (VALUES
    ('CI-Old', 'ci-new, alias'),
    ('ci-too', 'ci-too, unchanged'),
    ('ci-other', 'default, not-in-allowlist'),
    ('ci-bench', 'default, bench-reject'),
    ('sms:+15550100123', 'whatsapp-dm, dm-bucket')
) AS t (raw, expected)
CROSS JOIN LATERAL memvec.canonical_identity(t.raw) AS c;
SELECT is(
    (memvec.canonical_identity('ci-old', '{}', ARRAY[]::text [], 'bucket')).agent_identity, 'ci-old',
    'arguments that are not NULL stand in for the settings'
);

-- Whom a login may not act as, it cannot name either

RESET SESSION AUTHORIZATION;
CREATE TEMP TABLE named AS SELECT person_key FROM memvec.canonical_identity('sms:+15550100123');
GRANT SELECT ON named TO PUBLIC;
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.set_setting('allowed_themes', '');
SELECT memvec.bind_role('tap_bound', 'ci-bound');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT results_eq(
    $$ SELECT agent_identity, person_key FROM memvec.canonical_identity('sms:+15550100123') $$,
    $$ VALUES ('whatsapp-dm', NULL::uuid) $$, 'a role bound to a theme is told the sink, not the person'
);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_admin');
SELECT is((memvec.canonical_identity('sms:+15550100123')).person_key, n.person_key, 'an administrator is') FROM named AS n;
SELECT memvec.bind_role('tap_bound', 'whatsapp-dm');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT is((memvec.canonical_identity('sms:+15550100123')).person_key, n.person_key, 'so is a role bound to the sink') FROM named AS n;

SELECT * FROM finish();
ROLLBACK;
