BEGIN;
SELECT plan(15);

SELECT is_definer('memvec', 'scan_pii', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.scan_pii'), '{tap_admin}', 'only an admin may call it');

-- Shapes, and what only looks like them

CREATE TEMP TABLE shapes (expected text, content text);
INSERT INTO shapes VALUES
('phone','call me at 555 010 0123'),('phone','my number is +15550100123'),('phone','+49 (0)30 1234567'),('phone','tel: 030/1234567'),('phone','(555) 010-0123'),
('phone','user-15550100123'),('phone','ping 15550100123 please'),('phone','07700900123'),('phone','+44 7700 900123'),('phone','555.010.0123'),('phone','whatsapp 15550100123@s.whatsapp.net'),
('phone','call me at 5550100123'),('phone','{"phone": "15550100123"}'),('phone','Her phone number is 5550100123.'),('phone','01 23 45 67 89'),('phone','handy: 0151 23456789'),
('phone','٠١٥١٢٣٤٥٦٧٨ telefon ٠١٥١٢٣٤٥٦٧٨'),('phone','+1-555-010-0123'),('phone','reach me on +1 (555) 010–0123'),('phone','4915112345677'),('phone','00491701234567'),
('email','mail bob@example.com now'),('email','Bob.Smith+x@mail.example.co.uk'),('email','<müller@example.de>'),('email','[write](mailto:bob@example.com)'),('email','email:bob@example.com'),('email','bob@example.com: yes'),
('card','4111 1111 1111 1111'),('card','5500-0000-0000-0004'),('card','378282246310005'),('card','card 4111111111111111.'),
('key','sk-abcdefghijklmnopqrstuvwx'),('key','postgres://u:hunter2@db/x'),('key','password: hunter22x'),('key','das Passwort ist Geheim123'),('key','la contraseña es Secreta9x'),('key','-----BEGIN RSA PRIVATE KEY-----'),('key','ghp_abcdefghijklmnopqrstuvwxyz0123456789'),
('key','eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.abcdefghijkl'),('key','AKIAIOSFODNN7EXAMPLE'),('key','Authorization: Bearer abcdef0123456789abcdef'),('key','api_key = "abc123def456"'),('key','Bearer abcdef0123456789abcdef'),
(null,'version 10.0.19045.3803'),(null,'pg 18.6.3 and 1.23.456'),(null,'2026-01-31 12:00:00+01'),(null,'31.01.2026'),(null,'2026/01/31'),(null,'192.168.100.200'),(null,'10.0.0.1:5432'),
(null,'commit 983dd04a1b2c3d4e5f60718293a4b5c6d7e8f901'),(null,'commit 6281529'),(null,'550e8400-e29b-41d4-a716-446655440000'),(null,'00000000-0000-0000-0000-000000000002'),(null,'1700000000'),(null,'1700000000123'),(null,'20260131T120000Z'),
(null,'20261130_110436'),(null,'20261130110436'),(null,'processed 4295032833 bytes'),(null,'2001:db8::1'),(null,'port 5432, 8080 and 9090'),(null,'git@github.com:org/repo.git'),(null,'logo@2x.png'),(null,'scp notes deploy@web.example.com:~/in'),(null,'rsync deploy@web.example.com:/srv'),(null,'das Passwort ist bekannt'),(null,'ticket 0000123456'),(null,'npm i left-pad@1.3.0'),
(null,'order 1234567890'),(null,'4111 1111 1111 1112'),(null,'pi 3.14159265358979'),(null,'1,234,567,890'),(null,'password is [redacted]'),(null,'password: ***'),(null,'token count: 1200'),(null,'set PASSWORD=$DB_PASSWORD'),
(null,'CVE-2024-3094'),(null,'ISBN 978-3-16-148410-0'),(null,'range 100-200 and 300-400'),(null,'@@ -1234,7 +1234,8 @@'),(null,'0.1.2'),(null,'2026-11-30T11:04:36.123456789Z'),(null,'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'),
(null,'the password is rotated weekly'),(null,'id=550e8400e29b41d4a716446655440000'),(null,'12884901888 bytes free'),(null,'run 30 of 2000: 1234 5678'),(null,'postgres://hermes@db.example.com/x'),(null,'2026-01-31-15-30-45'),(null,'1.1.1.1 8.8.8.8'),(null,'10:30:45.123456'), (null,'123-45-6789');
SELECT is_empty(
    $$ SELECT s.expected, s.content, f.found
       FROM shapes AS s
       CROSS JOIN LATERAL (SELECT string_agg(f.pii, ',') FROM memvec.find_pii(s.content, NULL, NULL, false) AS f) AS f (found)
       WHERE f.found IS DISTINCT FROM s.expected $$,
    'each text has just the kind it should, and harmless ones none'
);
SELECT is_empty(
    $$ SELECT s.content, f.sample
       FROM shapes AS s
       CROSS JOIN LATERAL memvec.find_pii(s.content, NULL, NULL, false) AS f
       CROSS JOIN LATERAL regexp_matches(s.content, '[[:alnum:]]{6,}', 'g') AS w (word)
       WHERE f.sample <> 'private key' AND position(w.word[1] IN f.sample) > 0
           AND w.word[1] NOT IN ('password', 'postgres', 'Authorization') $$,
    'a sample shows no value'
);
SELECT results_eq(
    $$ SELECT n.name, f.pii FROM unnest(ARRAY['user-15550100123', 'chat-5550100123', 'web:1555 010 0123', 'agent-bob@example.com',
                                              'sess-20261130_110436_ab12cd', 'cron-1700000000', 'release-2.10.345',
                                              '550e8400-e29b-41d4-a716-446655440000', 'a1b2c3d4e5f6'])
                                WITH ORDINALITY AS n (name, place)
       LEFT JOIN LATERAL memvec.find_pii(n.name, NULL, NULL, true) AS f ON true ORDER BY n.place $$,
    $$ VALUES ('user-15550100123', 'phone'), ('chat-5550100123', 'phone'), ('web:1555 010 0123', 'phone'),
              ('agent-bob@example.com', 'email'), ('sess-20261130_110436_ab12cd', NULL), ('cron-1700000000', NULL),
              ('release-2.10.345', NULL), ('550e8400-e29b-41d4-a716-446655440000', NULL), ('a1b2c3d4e5f6', NULL) $$,
    'in a name any long number counts'
);

-- Everywhere

SELECT memvec_tests.act_as('hermes');
SELECT memvec.add_memory('user-15550107701', 'memory', 'call +1 555 010 7702 or x@example.com', '{"card": "4111111111111111"}');
SELECT memvec.append_turn('scan_pii-a', 'chat-15550107703', 'user', 'nothing here, but project Falcon',
                          p_parent_session_id => 'chat-15550107704');
SELECT memvec.record_delegation('scan_pii-a', 's', 'to-15550107705');
SELECT memvec.record_delegation('desk-15550107708', 's', 'c');
SELECT memvec.register_agent('scan_pii-a', '{"host": "sk-abcdefghijklmnopqrstuvwx"}');
SELECT memvec.add_memory('scan_pii-a', 'memory', 'old number 15550107706');
SELECT memvec.remove_memory('scan_pii-a', 'memory', 'old number');
SELECT throws_ok($$ SELECT * FROM memvec.scan_pii() $$, '42501', NULL, 'the runtime login is refused');
RESET SESSION AUTHORIZATION;

SELECT memvec_tests.act_as('tap_admin');
SELECT set_eq(
    $$ SELECT table_name, agent_identity, place, pii, sample, matches FROM memvec.scan_pii('falcon')
       WHERE agent_identity IN ('user-15550107701', 'scan_pii-a') $$,
    $$ VALUES ('memory_agents', 'user-15550107701', 'agent_identity', 'phone', '*********01', 1),
              ('memory_agents', 'scan_pii-a', 'attrs', 'key', 'sk-***', 1),
              ('memory_agent_edges', 'scan_pii-a', 'child_session_id', 'phone', '*********05', 1),
              ('memory_entries', 'user-15550107701', 'content', 'phone', '+* *** *** **02', 1),
              ('memory_entries', 'user-15550107701', 'content', 'email', 'x***@e***.com', 1),
              ('memory_entries', 'user-15550107701', 'metadata', 'card', '************1111', 1),
              ('conversations', 'scan_pii-a', 'content', 'pattern', 'F***', 1),
              ('conversations', 'scan_pii-a', 'session_id', 'phone', '*********03', 1),
              ('conversations', 'scan_pii-a', 'parent_session_id', 'phone', '*********04', 1),
              ('memory_history', 'scan_pii-a', 'content', 'phone', '*********06', 1) $$,
    'in texts, metadata, session ids, names, attributes, edges and history; and a pattern besides'
);
SELECT is(
    (SELECT f.place FROM memvec.scan_pii() AS f WHERE f.table_name = 'memory_agent_edges' AND f.agent_identity = 'desk-15550107708'),
    'parent_identity', 'an edge''s parent may have no row of its own'
);
SELECT set_eq(
    $$ SELECT DISTINCT pii FROM memvec.scan_pii('falcon', '{card,pattern}') $$, $$ VALUES ('card'), ('pattern') $$,
    'only the kinds that are wanted'
);
CREATE FUNCTION pg_temp.page_by_page() RETURNS SETOF text
LANGUAGE plpgsql
AS $$
DECLARE
    v_row record;
    v_table text;
    v_after bigint := 0;
    v_more boolean := true;
BEGIN
    WHILE v_more LOOP
        v_more := false;
        FOR v_row IN SELECT * FROM memvec.scan_pii(p_table => v_table, p_after => v_after, p_limit => 1) LOOP
            IF v_row.pii IS NULL THEN
                v_table := v_row.table_name;
                v_after := v_row.id;
                v_more := true;
            ELSE
                RETURN NEXT v_row::text;
            END IF;
        END LOOP;
    END LOOP;
END
$$;
SELECT bag_eq(
    $$ SELECT pg_temp.page_by_page() $$, $$ SELECT s::text FROM memvec.scan_pii() AS s $$, 'page by page it finds the same'
);
SELECT is_empty($$ SELECT * FROM memvec.scan_pii('', '{pattern}') $$, 'a blank pattern finds nothing');
SELECT throws_ok($$ SELECT * FROM memvec.scan_pii('(') $$, 'MV001', NULL, 'a bad pattern is refused');
SELECT throws_ok($$ SELECT * FROM memvec.scan_pii(NULL, '{faces}') $$, 'MV001', NULL, 'an unknown kind');
SELECT throws_ok($$ SELECT * FROM memvec.scan_pii(p_table => 'secrets') $$, 'MV001', NULL, 'an unknown table');
RESET SESSION AUTHORIZATION;
SELECT is(memvec.passes_luhn('4111111111111111') AND NOT memvec.passes_luhn('4111111111111112') AND NOT memvec.passes_luhn('0000000000000000'),
          true, 'the check digit counts');

SELECT * FROM finish();
ROLLBACK;
