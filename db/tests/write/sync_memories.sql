-- A home's file is the truth about what that home holds. Homes are a1, a2 and a3 here.
BEGIN;
SELECT plan(49);

-- The contract

SELECT is(
    pg_get_function_arguments('memvec.sync_memories'::regproc),
    'p_identity text, p_source uuid, p_target text, p_contents text[], p_governance jsonb DEFAULT NULL::jsonb, '
    'OUT added integer, OUT retired integer, OUT kept integer',
    'arguments and columns'
);
SELECT volatility_is('memvec', 'sync_memories', 'volatile', 'volatile');
SELECT is_definer('memvec', 'sync_memories', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.sync_memories'), '{hermes,tap_admin}', 'who may execute it');
SELECT is(memvec_tests.callers('memvec.sync_file'), '{}', 'its inside is internal');

CREATE FUNCTION pg_temp.home(p_name text) RETURNS uuid LANGUAGE sql AS $$
    SELECT ('00000000-0000-0000-5afe-0000000000' || p_name)::uuid
$$;
CREATE FUNCTION pg_temp.held() RETURNS text
LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(format('%s/%s %s:%s', t.theme, t.target, t.content, t.homes), ', ' ORDER BY t.theme, t.target, t.content)
      FROM (SELECT replace(m.agent_identity, 'sync_memories-', '') AS theme, m.target, m.content,
                   coalesce(string_agg(right(s.source::text, 2), '+' ORDER BY s.source), '-') AS homes
              FROM memvec.memory_entries AS m LEFT JOIN memvec.entry_sources AS s ON s.entry_id = m.id
             WHERE m.agent_identity LIKE 'sync\_memories-%' OR m.content LIKE 'sync\_memories%'
             GROUP BY m.agent_identity, m.target, m.content) AS t
$$;
CREATE FUNCTION pg_temp.synced(p_identity text, p_home text, p_target text, VARIADIC p_contents text []) RETURNS text
LANGUAGE sql AS $$
    SELECT format('+%s -%s =%s', s.added, s.retired, s.kept)
      FROM memvec.sync_memories(p_identity, pg_temp.home(p_home), p_target, p_contents) AS s
$$;
ALTER FUNCTION pg_temp.held OWNER TO memvec_owner;

-- One home

SELECT memvec_tests.act_as('hermes');
SELECT is(pg_temp.synced('Sync_Memories-A', 'a1', 'memory', 'one', ' two ', 'three'), '+3 -0 =0', 'a first file is added');
SELECT is(pg_temp.synced('sync_memories-a', 'a1', 'memory', 'three', 'one', 'two'), '+0 -0 =3', 'the same again changes nothing');
SELECT is(
    pg_temp.synced('sync_memories-a', 'a1', 'memory', 'one', '', NULL, U&'\3000 ', 'one', ' one', 'four'), '+1 -2 =1',
    'what is missing goes, what is new comes; blanks and repetitions do not count'
);
SELECT is(pg_temp.synced('sync_memories-a', 'a1', 'user', 'of the user'), '+1 -0 =0', 'the other file is another list');
SELECT is(
    pg_temp.held(), 'a/memory four:a1, a/memory one:a1, a/user of the user:a1', 'each target is what its file says'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT content, action, acted_by FROM memvec.memory_history WHERE agent_identity = 'sync_memories-a' ORDER BY content $$,
    $$ VALUES ('three', 'reconcile', 'hermes'::name), ('two', 'reconcile', 'hermes') $$,
    'what went is in the history'
);
SELECT is(
    (SELECT metadata FROM memvec.memory_entries WHERE agent_identity = 'sync_memories-a' AND content = 'one'),
    '{"origin": "file"}'::jsonb, 'what came is marked as coming from a file'
);

-- NULL is not an empty list

SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    format('SELECT memvec.sync_memories(%L, %L, %L, %L)', 'sync_memories-a', t.source, t.target, t.contents), 'MV001', NULL, t.description
)
FROM (VALUES
    (pg_temp.home('a1'), 'memory', NULL, 'no list is refused'),
    (NULL, 'memory', '{}', 'no home is refused'),
    (pg_temp.home('a1'), 'files', '{}', 'an unknown target is refused'),
    (pg_temp.home('a1'), NULL, '{}', 'no target is refused')
) AS t (source, target, contents, description);
SELECT throws_ok(
    format('SELECT memvec.sync_memories(%L, %L, %L, %L)', t.identity, pg_temp.home('a1'), 'memory', '{x}'), 'MV009', NULL,
    'a file does not go to a sink: ' || t.identity
)
FROM (VALUES
    ('agent:main:sms:dm:+15550100123'), ('agent:main:sms:group:1'), ('skill-bench'), ('whatsapp-dm')
) AS t (identity);
SELECT is(
    pg_temp.held(), 'a/memory four:a1, a/memory one:a1, a/user of the user:a1', 'and nothing has changed'
);
SELECT is(
    (SELECT format('+%s -%s =%s', s.added, s.retired, s.kept)
       FROM memvec.sync_memories('sync_memories-a', pg_temp.home('a1'), 'memory', '{}') AS s),
    '+0 -2 =0', 'an empty list is an empty file'
);
SELECT is(pg_temp.held(), 'a/user of the user:a1', 'whose notes go, and no others');

-- Several homes

SELECT is(pg_temp.synced('sync_memories-a', 'a1', 'memory', 'shared', 'of 1'), '+2 -0 =0', 'one home');
SELECT is(pg_temp.synced('sync_memories-a', 'a2', 'memory', 'shared', 'of 2'), '+1 -0 =1', 'another, with one text in common');
SELECT is(pg_temp.synced('sync_memories-b', 'a3', 'memory', 'shared'), '+1 -0 =0', 'a third one in another theme');
SELECT is(
    pg_temp.held(), 'a/memory of 1:a1, a/memory of 2:a2, a/memory shared:a1+a2, a/user of the user:a1, b/memory shared:a3',
    'a text in common is one note'
);
SELECT is(pg_temp.synced('sync_memories-a', 'a1', 'memory', 'of 1'), '+0 -0 =1', 'one lets go of it');
SELECT is(
    pg_temp.held(), 'a/memory of 1:a1, a/memory of 2:a2, a/memory shared:a2, a/user of the user:a1, b/memory shared:a3',
    'it stays, for the other holds it'
);
SELECT is(pg_temp.synced('sync_memories-a', 'a2', 'memory', 'of 2'), '+0 -1 =1', 'the last one lets go');
SELECT is(
    pg_temp.held(), 'a/memory of 1:a1, a/memory of 2:a2, a/user of the user:a1, b/memory shared:a3',
    'it goes; what another theme says is that theme''s'
);

-- Notes that no file holds

SELECT memvec.add_memory('sync_memories-a', 'memory', 'by hand');
SELECT is(pg_temp.synced('sync_memories-a', 'a1', 'memory', 'of 1'), '+0 -0 =1', 'a note of no home');
SELECT is(pg_temp.synced('sync_memories-a', 'a1', 'memory', 'of 1', 'by hand'), '+0 -0 =2', 'is kept when a file holds it too');
SELECT is(
    pg_temp.held(), 'a/memory by hand:a1, a/memory of 1:a1, a/memory of 2:a2, a/user of the user:a1, b/memory shared:a3',
    'and is that home''s from then on'
);

-- One home, several themes: a note stays in the theme that wrote it

SELECT memvec.add_memory('sync_memories-c', 'memory', 'written in c', '{"by": "tool"}', pg_temp.home('a1'));
SELECT memvec.add_memory('agent:main:sms:dm:sync_memories', 'memory', 'sync_memories of a person', p_source => pg_temp.home('a1'));
SELECT is(
    pg_temp.synced('sync_memories-a', 'a1', 'memory', 'of 1', 'by hand', 'written in c', 'sync_memories of a person', 'new'),
    '+1 -0 =4', 'the file holds what several themes wrote'
);
SELECT is(
    pg_temp.held(),
    'a/memory by hand:a1, a/memory new:a1, a/memory of 1:a1, a/memory of 2:a2, a/user of the user:a1, b/memory shared:a3, '
    'c/memory written in c:a1, whatsapp-dm/memory sync_memories of a person:a1',
    'nothing is copied, only the unknown text goes to the home''s own theme'
);
SELECT is(pg_temp.synced('sync_memories-a', 'a1', 'memory', 'new'), '+0 -4 =1', 'what the file no longer holds');
SELECT is(
    pg_temp.held(), 'a/memory new:a1, a/memory of 2:a2, a/user of the user:a1, b/memory shared:a3', 'goes in every theme'
);
-- A file may be read before the writer of its newest text is heard

SELECT is(
    (memvec.add_memory('sync_memories-a', 'memory', 'shared', p_source => pg_temp.home('a3'))).outcome, 'added',
    'a writer names its theme after its text was taken for the home''s own'
);
SELECT is(pg_temp.synced('sync_memories-b', 'a3', 'memory', 'shared'), '+0 -1 =1', 'then the guess is taken back');
SELECT is(
    pg_temp.held(), 'a/memory new:a1, a/memory of 2:a2, a/memory shared:a3, a/user of the user:a1', 'and the text is where it was written'
);
SELECT is(pg_temp.synced('sync_memories-b', 'a3', 'memory', 'shared', 'guessed'), '+1 -0 =1', 'another text that nobody named a theme for');
SELECT memvec.add_memory('sync_memories-b', 'memory', 'guessed', p_source => pg_temp.home('a3'));
SELECT memvec.replace_memory('sync_memories-a', 'memory', 'shared', 'guessed', p_source => pg_temp.home('a3'));
SELECT is(
    pg_temp.synced('sync_memories-b', 'a3', 'memory', 'guessed'), '+0 -0 =1', 'one text that two themes wrote is one text of the file'
);
SELECT is(
    pg_temp.held(), 'a/memory guessed:a3, a/memory new:a1, a/memory of 2:a2, a/user of the user:a1, b/memory guessed:a3', 'and stays in both'
);
SELECT is(pg_temp.synced('sync_memories-b', 'a3', 'memory', 'other'), '+1 -2 =0', 'until the file lets go of it');

-- A bound login touches its own themes only

SELECT memvec.add_memory('sync_memories-d', 'memory', 'of d', p_source => pg_temp.home('a1'));
RESET SESSION AUTHORIZATION;
SELECT memvec.bind_role('tap_bound', 'sync_memories-a');
SELECT memvec_tests.act_as('tap_bound');
SELECT is(pg_temp.synced('sync_memories-a', 'a1', 'memory', 'newer'), '+1 -1 =0', 'a bound login retires what is in its theme');
SELECT is(
    pg_temp.held(), 'a/memory newer:a1, a/memory of 2:a2, a/user of the user:a1, b/memory other:a3, d/memory of d:a1', 'and no more'
);

SELECT memvec_tests.act_as('hermes');
SELECT is(
    (SELECT s.added FROM memvec.sync_memories(
        'sync_memories-x', pg_temp.home('a4'), 'memory', '{x}', '{"aliases": {"sync_memories-x": "sync_memories-y"}}'
    ) AS s), 1, 'a host''s rules hold'
);
SELECT matches(pg_temp.held(), 'y/memory x:a4', 'in its alias''s theme');

SELECT * FROM finish();
ROLLBACK;
