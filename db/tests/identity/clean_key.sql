BEGIN;
SELECT plan(20);

SELECT is(memvec_tests.callers('memvec.clean_key'), '{}', 'internal');

SELECT is(memvec.clean_key(t.raw), t.expected, t.description)
FROM (VALUES
    (NULL, NULL, 'NULL stays NULL'),
    ('', NULL, 'nothing is nothing'),
    (U&' \00A0\200B\FEFF ', NULL, 'nothing but invisible characters is nothing'),
    ('  Marketing ', 'marketing', 'trimmed and lower-cased'),
    (U&'\FF2D\FF41\FF52keting', 'marketing', 'full-width letters'),
    (U&'Cafe\0301', U&'caf\00E9', 'a decomposed accent is composed'),
    (U&'CAFE\200B\0301', U&'caf\00E9', 'also when an invisible character stood between'),
    (U&'mar\200Bket\00ADing\FE0F', 'marketing', 'zero-width characters, soft hyphens and variation selectors go'),
    (U&'marketing\+0E0041\+0E007F', 'marketing', 'and so do the invisible tag characters'),
    (U&'\202Emarketing\202C', 'marketing', 'and marks of writing direction'),
    (E'mar\tket\ning', 'marketing', 'control characters go'),
    ('mark eting', 'mark eting', 'a space inside stays'),
    (U&'STRA\1E9EE', U&'stra\00DFe', 'capital sharp s'),
    (U&'\041C\0410RKETING', U&'\043C\0430rketing', 'Cyrillic letters are folded and are not taken for Latin ones'),
    (U&'\0130stanbul', lower(U&'\0130stanbul' COLLATE memvec.folding), 'a dotted capital I'),
    (U&'\FB01nance', 'finance', 'a ligature is its letters'),
    (U&'a\3000b', 'a b', 'an ideographic space is a space'),
    ('%_\', '%_\', 'signs that mean something elsewhere are ordinary')
) AS t (raw, expected, description);

SELECT is_empty(
    $$ SELECT to_hex(c)
         FROM generate_series(1, 65535) AS c
        CROSS JOIN LATERAL memvec.clean_key('a' || chr(c) || 'b') AS once (key)
        WHERE c NOT BETWEEN 55296 AND 57343 AND memvec.clean_key(once.key) IS DISTINCT FROM once.key $$,
    'a cleaned key stays as it is'
);

SELECT * FROM finish();
ROLLBACK;
