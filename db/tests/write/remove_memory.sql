-- Which note an edit means is tested in find_entries.sql; here, what becomes of it.
BEGIN;
SELECT plan(36);

-- The contract

SELECT is(
    pg_get_function_arguments('memvec.remove_memory'::regproc),
    'p_identity text, p_target text, p_old_text text, p_previous_content text DEFAULT NULL::text, '
    'p_source uuid DEFAULT NULL::uuid, p_governance jsonb DEFAULT NULL::jsonb, OUT id bigint, OUT outcome text, OUT matches integer',
    'arguments and columns'
);
SELECT volatility_is('memvec', 'remove_memory', 'volatile', 'volatile');
SELECT is_definer('memvec', 'remove_memory', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.remove_memory'), '{hermes,tap_admin}', 'who may execute it');
SELECT is(memvec_tests.callers('memvec.drop_entry'), '{}', 'its inside is internal');
SELECT is(memvec_tests.callers('memvec.retire_entry'), '{}', 'all of it');

-- The reported case: one blank pattern once emptied a theme

SELECT memvec_tests.act_as('hermes');
CREATE TEMP TABLE added AS
SELECT a.id, t.identity, t.content
FROM (VALUES
    ('remove_memory-a', '50% off coupons'), ('remove_memory-a', '500 off coupons'), ('remove_memory-a', 'a_b flag'),
    ('remove_memory-a', 'axb flag'), ('remove_memory-a', 'path c\d'), ('remove_memory-b', '50% off coupons')
) AS t (identity, content)
CROSS JOIN LATERAL memvec.add_memory(t.identity, 'memory', t.content, '{"by": "tool"}') AS a;
SELECT memvec.add_memory('remove_memory-a', 'user', '50% off coupons');

SELECT throws_ok(
    format('SELECT memvec.remove_memory(%L, %L, %L, %L)', 'remove_memory-a', t.target, t.old, t.previous), 'MV001', NULL, t.description
)
FROM (VALUES
    ('memory', '', NULL, 'an empty pattern is refused'),
    ('memory', NULL, NULL, 'so is none'),
    ('memory', U&'  \00A0 ', U&'\3000', 'so is a blank one'),
    (NULL, '50%', NULL, 'so is no target'),
    ('all', '50%', NULL, 'so is an unknown one')
) AS t (target, old, previous, description);
SELECT results_eq(
    format($$ SELECT outcome, matches, id IS NULL FROM memvec.remove_memory('remove_memory-a', 'memory', %L, %L) $$, t.old, t.previous),
    format($$ VALUES (%L::text, %s, true) $$, t.outcome, t.matches),
    t.description
)
FROM (VALUES
    ('coupons', NULL, 'ambiguous', 2, 'several notes: nothing is removed'),
    ('f', NULL, 'ambiguous', 4, 'the fewer letters the less'),
    ('no such note', NULL, 'absent', 0, 'no note'),
    ('COUPONS', NULL, 'absent', 0, 'another case'),
    ('50% off coupons', '50% off', 'absent', 0, 'a previous content that is not there is not guessed at')
) AS t (old, previous, outcome, matches, description);
RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT count(*) FROM memvec.memory_entries WHERE agent_identity LIKE 'remove\_memory-_'), 7::bigint, 'and everything is there'
);

SELECT memvec_tests.act_as('hermes');
SELECT results_eq(
    format($$ SELECT outcome, matches, id FROM memvec.remove_memory('Remove_Memory-A', 'memory', %L, %L) $$, t.old, t.previous),
    format($$ SELECT 'removed', 1, id FROM added WHERE identity = 'remove_memory-a' AND content = %L $$, t.content),
    t.description
)
FROM (VALUES
    ('50%', NULL, '50% off coupons', 'a percent sign is a percent sign'),
    ('a_b', NULL, 'a_b flag', 'an underscore is an underscore'),
    ('c\d', NULL, 'path c\d', 'a backslash is a backslash'),
    ('coupons', '500 off coupons', '500 off coupons', 'the previous content decides')
) AS t (old, previous, content, description);
SELECT results_eq(
    $$ SELECT outcome, matches FROM memvec.remove_memory('remove_memory-a', 'memory', '50%') $$, $$ VALUES ('absent', 0) $$,
    'what is gone stays gone'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT agent_identity, target, content FROM memvec.memory_entries WHERE agent_identity LIKE 'remove\_memory-_' ORDER BY 1, 2 $$,
    $$ VALUES ('remove_memory-a', 'memory', 'axb flag'), ('remove_memory-a', 'user', '50% off coupons'),
              ('remove_memory-b', 'memory', '50% off coupons') $$,
    'the rest is untouched: other notes, the other target, the other theme'
);
SELECT results_eq(
    $$ SELECT h.entry_id = a.id, h.agent_identity, h.target, h.content, h.metadata, h.action, h.acted_by
         FROM memvec.memory_history AS h
         JOIN added AS a ON a.identity = h.agent_identity AND a.content = h.content
        ORDER BY h.id $$,
    $$ SELECT true, 'remove_memory-a', 'memory', c, '{"by": "tool"}'::jsonb, 'remove', 'hermes'::name
         FROM unnest(ARRAY['50% off coupons', 'a_b flag', 'path c\d', '500 off coupons']) WITH ORDINALITY AS t (c, n) ORDER BY n $$,
    'what went is in the history'
);

-- Persons

SELECT memvec_tests.act_as('hermes');
SELECT memvec.add_memory(t.identity, 'memory', 'remove_memory secret')
FROM (VALUES ('sms:dm:remove_memory-1'), ('sms:dm:remove_memory-2'), ('remove_memory-p')) AS t (identity);
SELECT is((memvec.remove_memory(t.identity, 'memory', 'remove_memory secret')).outcome, t.outcome, t.description)
FROM (VALUES
    ('sms:dm:remove_memory-3', 'absent', 'a person cannot remove another''s note'),
    ('whatsapp-dm', 'absent', 'nor can the sink''s own name'),
    ('sms:group:remove_memory-1', 'absent', 'nor the same person in a group'),
    ('agent:x:sms:dm:Remove_Memory-1', 'removed', 'their own they can')
) AS t (identity, outcome, description);
RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT count(*) FROM memvec.memory_entries WHERE content = 'remove_memory secret'), 2::bigint, 'one is gone, two are there'
);
SELECT is(
    (SELECT h.person_key FROM memvec.memory_history AS h WHERE h.content = 'remove_memory secret'),
    (memvec.canonical_identity('sms:dm:remove_memory-1')).person_key, 'the history knows whose it was'
);

-- Homes

SELECT memvec_tests.act_as('hermes');
SELECT memvec.add_memory('remove_memory-s', 'memory', 'shared', p_source => t.source)
FROM (VALUES ('00000000-0000-0000-0000-0000000000b1'::uuid), ('00000000-0000-0000-0000-0000000000b2')) AS t (source);
SELECT memvec.add_memory('remove_memory-s', 'memory', 'by hand');
SELECT is((memvec.remove_memory('remove_memory-s', 'memory', t.old, p_source => t.source::uuid)).outcome, t.outcome, t.description)
FROM (VALUES
    ('shared', '00000000-0000-0000-0000-0000000000b1', 'released', 'a note that another home holds stays'),
    ('shared', '00000000-0000-0000-0000-0000000000b3', 'released', 'also when this home never held it'),
    ('shared', '00000000-0000-0000-0000-0000000000b2', 'removed', 'with its last home it goes'),
    ('by hand', '00000000-0000-0000-0000-0000000000b1', 'removed', 'a note that no home holds goes at once')
) AS t (old, source, outcome, description);
SELECT memvec.add_memory('remove_memory-s', 'memory', 'shared', p_source => t.source)
FROM (VALUES ('00000000-0000-0000-0000-0000000000b1'::uuid), ('00000000-0000-0000-0000-0000000000b2')) AS t (source);
SELECT is(
    (memvec.remove_memory('remove_memory-s', 'memory', 'shared')).outcome, 'removed', 'removed without a home, it goes for everybody'
);
SELECT is(
    (memvec.remove_memory(
        'remove_memory-c', 'memory', '50% off coupons', p_governance => '{"aliases": {"remove_memory-c": "remove_memory-b"}}'
    )).outcome,
    'removed', 'a host''s rules hold'
);

SELECT * FROM finish();
ROLLBACK;
