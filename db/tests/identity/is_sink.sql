BEGIN;
SELECT plan(8);

SELECT is(memvec_tests.callers('memvec.is_sink'), '{}', 'internal');
SELECT is(memvec.is_sink(t.theme), t.expected, t.theme)
FROM (VALUES
    ('whatsapp-dm', true), ('external-group', true), ('_bench', true),
    ('default', false), ('marketing', false), ('bench', false), ('WhatsApp-DM', false)
) AS t (theme, expected);

SELECT * FROM finish();
ROLLBACK;
