-- Which note does an edit mean? Decided in one function; replace_memory and remove_memory do as it says.
BEGIN;
SELECT plan(40);

SELECT is(memvec_tests.callers('memvec.find_entries'), '{}', 'internal');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    $$ SELECT memvec.find_entries('x', NULL, 'memory', 'x', NULL) $$, '42501', NULL, 'the runtime login may not call it'
);

SELECT memvec.add_memory('find_entries', 'memory', t.content)
FROM (VALUES
    ('port is 5432'), ('staging port is 5432 (old note)'), ('port is 6432'),
    ('50% off coupons'), ('500 off coupons'), ('a_b flag'), ('axb flag'), ('path c\d'), ('path c\\d'), ('(.*) [x]+'),
    ('Case Matters'), ('case matters not'),
    (U&'Caf\00E9 is open'), (U&'the Cafe\0301 list'), (U&'r\00E9sum\00E9'), (U&'my re\0301sume\0301 is long'),
    ('two' || chr(10) || 'lines'), (U&'\6F22\5B57\3068\4EEE\540D'), (U&'smile \+01F600 here')
) AS t (content);
SELECT memvec.add_memory('find_entries', 'user', 'of the user');
SELECT memvec.add_memory('find_entries-other', 'memory', 'of the other theme');
SELECT memvec.add_memory('agent:main:sms:dm:find_entries', 'memory', 'of the person');
RESET SESSION AUTHORIZATION;

CREATE FUNCTION pg_temp.found(p_old text, p_previous text) RETURNS text
LANGUAGE sql AS $$
    SELECT coalesce(string_agg(m.content, ' | ' ORDER BY m.id), '-')
      FROM unnest(memvec.find_entries('find_entries', NULL, 'memory', p_old, p_previous)) AS f (id)
      JOIN memvec.memory_entries AS m USING (id)
$$;

SELECT is(pg_temp.found(t.old, t.previous), t.expected, t.description)
FROM (VALUES
    ('port is 5432', NULL, 'port is 5432', 'the note that is the text comes before those that hold it'),
    ('  port is 5432  ', NULL, 'port is 5432', 'white space at the ends does not count'),
    ('old note', NULL, 'staging port is 5432 (old note)', 'a part finds the note that holds it'),
    ('port is', NULL, 'port is 5432 | staging port is 5432 (old note) | port is 6432', 'or all that do'),
    ('no such text', NULL, '-', 'or none'),
    -- the previous content is exact, and nothing is guessed beside it
    ('port', 'port is 6432', 'port is 6432', 'the previous content decides, whatever the old text is'),
    (NULL, 'port is 6432', 'port is 6432', 'also alone'),
    (' ', ' port is 6432 ', 'port is 6432', 'also beside a blank'),
    ('port is 5432', 'port is 7432', '-', 'a previous content that is not there means no note'),
    ('old note', 'old note', '-', 'also when it is part of one'),
    ('port is 6432', ' ', 'port is 6432', 'a blank previous content is none'),
    -- signs that mean something in patterns
    ('50%', NULL, '50% off coupons', 'a percent sign is a percent sign'),
    ('%', NULL, '50% off coupons', 'also alone'),
    ('a_b', NULL, 'a_b flag', 'an underscore is an underscore'),
    ('c\d', NULL, 'path c\d', 'a backslash is a backslash'),
    ('c\\d', NULL, 'path c\\d', 'two are two'),
    ('(.*)', NULL, '(.*) [x]+', 'an expression is its letters'),
    ('.*', NULL, '(.*) [x]+', 'and matches nothing else'),
    ('^port', NULL, '-', 'nor does an anchor'),
    -- letters
    ('Case', NULL, 'Case Matters', 'upper and lower case are not the same'),
    ('case', NULL, 'case matters not', 'in either direction'),
    ('PORT IS 6432', NULL, '-', 'not even for a whole note'),
    (U&'Cafe\0301 is', NULL, U&'Caf\00E9 is open', 'a decomposed accent finds the composed one'),
    (U&'Caf\00E9 list', NULL, U&'the Cafe\0301 list', 'and the other way round'),
    (U&'re\0301sume\0301', NULL, U&'r\00E9sum\00E9', 'a whole note in the other form comes before a part'),
    ('Cafe', NULL, '-', 'without the accent it is another word'),
    ('two' || chr(10) || 'lines', NULL, 'two' || chr(10) || 'lines', 'a line break is found'),
    (U&'\5B57\3068', NULL, U&'\6F22\5B57\3068\4EEE\540D', 'CJK text is found by any part'),
    (U&'\+01F600', NULL, U&'smile \+01F600 here', 'so is a character beyond 16 bits'),
    -- whose
    ('of the user', NULL, '-', 'not in another target'),
    ('of the other theme', NULL, '-', 'not in another theme'),
    ('of the person', NULL, '-', 'not of a person')
) AS t (old, previous, expected, description);

SELECT throws_ok(
    format('SELECT memvec.find_entries(%L, NULL, %L, %L, %L)', 'find_entries', 'memory', t.old, t.previous),
    'MV001', NULL, t.description
)
FROM (VALUES
    (NULL, NULL, 'nothing at all is an error'),
    ('', '', 'so is an empty text'),
    (U&' \00A0\3000\000A', NULL, 'so are blanks'),
    (NULL, U&'\2003', 'on either side')
) AS t (old, previous, description);

SELECT is(
    memvec.find_entries('whatsapp-dm', (memvec.canonical_identity('sms:find_entries-2')).person_key, 'memory', 'of the person', NULL),
    '{}', 'a person finds nothing of another'
);
SELECT is(
    memvec.find_entries('whatsapp-dm', NULL, 'memory', 'of the person', NULL), '{}', 'nor does nobody'
);

SELECT * FROM finish();
ROLLBACK;
