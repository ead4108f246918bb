-- Who is the same person by session keys is tested in canonical_identity.sql; here, what the key is made of.
BEGIN;
SELECT plan(16);

SELECT is(memvec_tests.callers('memvec.person_key'), '{}', 'internal');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.person_key('sms:1', 'direct') $$, '42501', NULL, 'the runtime login may not try out numbers');
SELECT throws_ok($$ SELECT value FROM memvec.secrets $$, '42501', NULL, 'nor read the secret');
RESET SESSION AUTHORIZATION;

SELECT is(memvec.person_key('marketing', 'theme'), NULL, 'a theme is nobody');
SELECT is(memvec.person_key('skill-bench', 'bench'), NULL, 'a benchmark is nobody');
SELECT is(memvec.person_key(NULL, 'default'), NULL, 'nothing is nobody');
SELECT is(
    memvec.person_key('sms:dm:15550100123', 'direct'), memvec.person_key('sms:15550100123', 'direct'),
    'the marker dm is not part of a person'
);
SELECT is(memvec.person_key(t.one, 'direct') = memvec.person_key(t.other, 'direct'), t.same, t.description)
FROM (VALUES
    ('agent:main:discord:dm:112233445566:7', 'discord:112233445566', true, 'nor the thread of a marked chat'),
    ('discord:112233445566:778899001122', 'discord:112233445566:990011223344', false, 'an unmarked first id may be a server''s: two people'),
    ('slack:u0123abcd:u1111aaaa', 'slack:u0123abcd:u2222bbbb', false, 'whatever the platform'),
    ('email:bob@example.com:7', 'email:bob@example.com', true, 'an address is a person''s')
) AS t (one, other, same, description);
SELECT isnt(
    memvec.person_key('sms:15550100123', 'group'), memvec.person_key('sms:dm:15550100123', 'group'),
    'of a group''s key nothing but the agent''s namespace is left out'
);
SELECT is(
    memvec.person_key('agent:a:discord:group:7:8', 'group'), memvec.person_key('agent:b:discord:group:7:8', 'group'),
    'the namespace is'
);

-- Another secret, other persons: what one database calls somebody tells nothing in another.
CREATE TEMP TABLE before AS SELECT memvec.person_key('sms:15550100123', 'direct') AS person;
UPDATE memvec.secrets SET value = sha256('another') WHERE name = 'person_key';
SELECT isnt(memvec.person_key('sms:15550100123', 'direct'), b.person, 'the secret decides') FROM before AS b;
SELECT is(length(s.value), 32, 'the secret has 256 bits') FROM memvec.secrets AS s WHERE s.name = 'person_key';
DELETE FROM memvec.secrets;
SELECT throws_ok(
    $$ SELECT memvec.person_key('sms:15550100123', 'direct') $$, 'P0002', NULL,
    'without the secret there is an error, never a person without a key'
);

SELECT * FROM finish();
ROLLBACK;
