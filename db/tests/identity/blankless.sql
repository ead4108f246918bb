BEGIN;
SELECT plan(12);

SELECT is(memvec_tests.callers('memvec.blankless'), '{}', 'internal');

SELECT is(memvec.blankless(NULL), NULL, 'NULL stays NULL');
SELECT is(memvec.blankless(''), NULL, 'nothing is blank');
SELECT is(
    memvec.blankless(U&' \0009\000A\000B\000C\000D\001C\001D\001E\001F\0085\00A0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200A\2028\2029\202F\205F\3000'),
    NULL,
    'all that Python''s strip() removes is blank'
);
SELECT is(memvec.blankless(t.given), t.expected, t.description)
FROM (VALUES
    (U&'\00A0\3000 a b \000A', 'a b', 'both ends are trimmed, the inside is not'),
    ('0', '0', 'a zero is text'),
    ('.', '.', 'a dot is text'),
    ('\n', '\n', 'a backslash and an n are text'),
    (U&'\200B', U&'\200B', 'a zero-width space is not white space, as in Python'),
    (U&'\FEFF', U&'\FEFF', 'nor is a byte order mark'),
    (U&'\0001', U&'\0001', 'nor is a control character')
) AS t (given, expected, description);

SELECT is_empty(
    $$ SELECT to_hex(c)
         FROM generate_series(1, 65535) AS c
        WHERE c NOT BETWEEN 55296 AND 57343
          AND (memvec.blankless(chr(c)) IS NULL)
              <> (c IN (9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 133, 160, 5760, 8232, 8233, 8239, 8287, 12288)
                  OR c BETWEEN 8192 AND 8202) $$,
    'and no other character is'
);

SELECT * FROM finish();
ROLLBACK;
