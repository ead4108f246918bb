-- The pairs are in canonical_identity.sql; here, rule by rule, what a cleaned key stands for.
BEGIN;
SELECT plan(82);

SELECT is(memvec_tests.callers('memvec.classify_key'), '{}', 'internal');

SELECT is(memvec.classify_key(t.key), t.kind, coalesce(t.key, 'NULL') || ' is ' || t.kind)
FROM (VALUES
    (NULL, 'default'),
    ('default', 'default'),
    -- the sinks' own names
    ('whatsapp-dm', 'direct'),
    ('external-group', 'group'),
    ('_bench', 'bench'),
    -- the host's form: only the chat types known to be direct are direct
    ('agent:main:telegram:dm:1', 'direct'),
    ('agent:main:telegram:direct:1', 'direct'),
    ('agent:main:telegram:p2p:1', 'direct'),
    ('agent:main:telegram:private:1', 'direct'),
    ('agent:main:telegram:dm', 'direct'),
    ('agent : main : telegram : dm', 'direct'),
    ('agent::telegram:dm:1', 'direct'),
    ('agent:main:telegram:group:1', 'group'),
    ('agent:main:telegram:dms:1', 'group'),
    ('agent:main:telegram::1', 'group'),
    ('agent:main:telegram:', 'group'),
    ('agent:main:telegram:new-type:dm:1', 'group'),
    ('agent:dm:telegram:group:1', 'group'),
    ('agent:main:dm:group:1', 'group'),
    ('agent:main:telegram', 'theme'),
    ('agent:main', 'theme'),
    ('agent', 'theme'),
    ('agents:main:telegram:notes', 'theme'),
    -- a platform in front of a chat type
    ('telegram:group:1', 'group'),
    ('telegram:topic:1', 'group'),
    ('telegram:dm:1', 'direct'),
    ('telegram:dm', 'direct'),
    ('desk:telegram:dm', 'direct'),
    ('telegram:notes', 'theme'),
    ('desk:telegram:group', 'theme'),
    ('eng:group:oncall', 'theme'),
    ('telegrams:group:oncall', 'theme'),
    -- dm as a whole segment that is followed by something
    ('dm:bob', 'direct'),
    ('a:b:dm:c', 'direct'),
    ('a dm:bob', 'theme'),
    ('dm', 'theme'),
    ('adm:bob', 'theme'),
    -- ids that only a group has
    ('matrix:!room:hs.org', 'group'),
    ('slack:c024be91l', 'group'),
    ('telegram:-100123456', 'group'),
    ('12036304@g.us', 'group'),
    -- ids that only a person has
    ('matrix:@bob:hs.org', 'direct'),
    ('slack:u024be7lh', 'direct'),
    ('slack:d024be91l', 'direct'),
    ('telegram:55512345', 'direct'),
    ('signal:123e4567-e89b-12d3-a456-426614174000', 'direct'),
    ('bob@example.org', 'direct'),
    ('+15550100123', 'direct'),
    ('15550100123', 'direct'),
    ('tel:555-0123', 'direct'),
    -- a group word wins over a number
    ('newplat:group:1:+15550100123', 'group'),
    ('group:+15550100123', 'group'),
    -- names that only look alike
    ('slack:updates', 'theme'),
    ('slack:general', 'theme'),
    ('matrix:reloaded', 'theme'),
    ('telegram:-1', 'theme'),
    ('telegram:1', 'theme'),
    ('tel:aviv', 'theme'),
    ('12345678', 'theme'),
    ('1234567890123456', 'theme'),
    ('2026-11-30-1200', 'theme'),
    ('bob@localhost', 'theme'),
    ('@ops', 'theme'),
    -- benchmarks
    ('bench', 'bench'),
    ('bench-ws', 'bench'),
    ('skill-bench', 'bench'),
    ('a:skill-bench', 'bench'),
    ('workbench', 'theme'),
    ('bench-2', 'theme'),
    ('my_bench', 'theme'),
    ('-bench', 'theme'),
    ('agent:main:discord:group:work-bench', 'group'),
    ('agent:main:webui:dm:my-bench', 'direct'),
    ('bob@example-bench', 'bench'),
    ('bob@example.work-bench', 'direct'),
    ('tel:٠١٥٥٥٠١٠٠١٢٣', 'direct'),
    ('+९१ ९८७६५ ४३२१०', 'direct'),
    ('slack:T024BE7LD:U024BE7LH', 'theme'),
    ('slack:t024be7ld:u024be7lh', 'direct')
) AS t (key, kind);

SELECT is(
    memvec.classify_key(repeat('1 ', 100000)), 'theme',
    'a long run of digits is decided in reasonable time'
);
SELECT is(
    memvec.classify_key(repeat('a@', 50000) || 'b'), 'theme',
    'so is one of at signs'
);

SELECT * FROM finish();
ROLLBACK;
