BEGIN;
SELECT plan(8);

SELECT is(memvec_tests.callers('memvec.as_object'), '{}', 'internal');
SELECT is(memvec.as_object(t.given), t.expected::jsonb, coalesce(t.given::text, 'nothing'))
FROM (VALUES
    (NULL::jsonb, '{}'),
    ('null', '{}'),
    ('{}', '{}'),
    ('{"a": [1]}', '{"a": [1]}'),
    ('[1, 2]', '{"value": [1, 2]}'),
    ('"text"', '{"value": "text"}'),
    ('false', '{"value": false}')
) AS t (given, expected);

SELECT * FROM finish();
ROLLBACK;
