BEGIN;
SELECT plan(6);

SELECT is(memvec_tests.callers('memvec.clean_session'), '{}', 'internal');
SELECT is(memvec.clean_session(t.given), t.expected, t.description)
FROM (VALUES
    (' s1 ', 's1', 'trimmed'),
    (E'\n', NULL, 'blank is none'),
    (NULL, NULL, 'none is none'),
    (repeat('x', 200), repeat('x', 200), '200 characters stay as they are')
) AS t (given, expected, description);
SELECT is(length(memvec.clean_session(repeat('x', 1000000))), 200, 'more are cut, with a hash');

SELECT * FROM finish();
ROLLBACK;
