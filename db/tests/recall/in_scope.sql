BEGIN;
SELECT plan(7);

SELECT is(memvec_tests.callers('memvec.in_scope'), '{}', 'internal');
SELECT ok(
    (SELECT NOT prosecdef AND proconfig IS NULL AND prosqlbody IS NOT NULL FROM pg_proc WHERE oid = 'memvec.in_scope'::regproc),
    'the planner can inline it: an SQL body, neither definer nor SET'
);
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    $$ SELECT memvec.in_scope('a', NULL, 'a', NULL, false, NULL) $$, '42501', NULL,
    'the runtime login may not call it'
);
RESET SESSION AUTHORIZATION;

-- Every kind of row against every kind of caller. Persons p and q are in a sink, "nobody" is a sink row without a person.
CREATE TEMP TABLE row_of (name text, theme text, person uuid);
INSERT INTO row_of VALUES
('own', 'mine', NULL), ('other', 'theirs', NULL), ('default', 'default', NULL),
('dm p', 'whatsapp-dm', '00000000-0000-0000-0000-00000000000a'),
('dm q', 'whatsapp-dm', '00000000-0000-0000-0000-00000000000b'),
('dm nobody', 'whatsapp-dm', NULL),
('group p', 'external-group', '00000000-0000-0000-0000-00000000000a'),
('group nobody', 'external-group', NULL),
('bench', '_bench', NULL),
('person in a theme', 'theirs', '00000000-0000-0000-0000-00000000000a');

CREATE TEMP TABLE caller (name text, own text, person uuid, others boolean, themes text[], sees text);
INSERT INTO caller VALUES
('mine, own', 'mine', NULL, false, NULL, 'own'),
('mine, all', 'mine', NULL, true, NULL, 'default, other, own'),
('mine, all of a bound role', 'mine', NULL, true, '{mine,default}', 'default, own'),
('mine, no theme at all', 'mine', NULL, true, '{}', 'own'),
('a named theme', NULL, NULL, true, '{theirs}', 'other'),
('no named theme', NULL, NULL, true, '{}', NULL),
('all without an own theme', NULL, NULL, true, NULL, 'default, other, own'),
('nothing', NULL, NULL, false, NULL, NULL),
('dm p, own', 'whatsapp-dm', '00000000-0000-0000-0000-00000000000a', false, NULL, 'dm p'),
('dm p, all', 'whatsapp-dm', '00000000-0000-0000-0000-00000000000a', true, NULL, 'default, dm p, other, own'),
('dm without a person, own', 'whatsapp-dm', NULL, false, NULL, NULL),
('dm without a person, all', 'whatsapp-dm', NULL, true, NULL, 'default, other, own'),
('group without a person', 'external-group', NULL, false, NULL, NULL),
('group p, own', 'external-group', '00000000-0000-0000-0000-00000000000a', false, NULL, 'group p'),
('a sink among the themes', 'mine', NULL, true, '{whatsapp-dm,external-group,_bench}', 'own'),
('bench, own', '_bench', NULL, false, NULL, 'bench'),
('bench, all', '_bench', NULL, true, NULL, 'bench, default, other, own'),
('theme with a person', 'mine', '00000000-0000-0000-0000-00000000000a', false, NULL, NULL);

SELECT set_eq(
    $$ SELECT c.name,
              (SELECT string_agg(r.name, ', ' ORDER BY r.name) FROM row_of AS r
               WHERE memvec.in_scope(r.theme, r.person, c.own, c.person, c.others, c.themes))
       FROM caller AS c $$,
    $$ SELECT name, sees FROM caller $$,
    'each caller sees exactly these rows'
);
SELECT is_empty(
    $$ SELECT c.name FROM caller AS c, row_of AS r
       WHERE r.person IS NOT NULL AND c.person IS DISTINCT FROM r.person
           AND memvec.in_scope(r.theme, r.person, c.own, c.person, c.others, c.themes) $$,
    'no row of a person is seen by anybody else'
);
SELECT is_empty(
    $$ SELECT c.name FROM caller AS c, row_of AS r
       WHERE r.name IN ('dm nobody', 'group nobody')
           AND memvec.in_scope(r.theme, r.person, c.own, c.person, c.others, c.themes) $$,
    'a chat row without a person is seen by nobody'
);

-- NULL and empty lists of themes mean different things, and the same in counts and both legs, which all ask this function
-- (case X17).
SELECT is(
    (SELECT count(*) FROM pg_proc AS p
     WHERE p.pronamespace = 'memvec'::regnamespace
         AND p.proname IN ('count_rows', 'text_own', 'text_planned', 'text_newest', 'text_newest_own', 'vector_candidates', 'holders')
         AND p.prosrc LIKE '%memvec.in_scope(%'),
    7::bigint,
    'counts, legs and holders filter with this function'
);

SELECT * FROM finish();
ROLLBACK;
