BEGIN;
SELECT plan(17);
SELECT memvec_tests.alone();

SELECT set_eq(
    $$ SELECT unnest(memvec_tests.callers('memvec.export_rows')) $$, $$ VALUES ('tap_admin'::text) $$,
    'only administrators may export'
);
SELECT memvec_tests.act_as('tap_admin');
SELECT is(memvec.add_embedding_space('export-model', 8), memvec.add_embedding_space('export-model', 8), 'there is a space');
SELECT is(
    (SELECT count(*) FROM memvec.import_rows(
        '[{"kind": "entry", "identity": "export-a", "target": "memory", "content": "one \"line\"\nand another",
           "created_at": "2025-01-02T03:04:05.678Z", "metadata": {"n": 1}, "sources": ["00000000-0000-0000-0000-00000000000e"]},
          {"kind": "entry", "identity": "export-a", "target": "user", "content": "two", "embed": false},
          {"kind": "entry", "identity": "export-b", "target": "user", "content": "of b"},
          {"kind": "entry", "identity": "agent:main:sms:dm:+15550100999", "target": "user", "content": "of a person"},
          {"kind": "entry", "identity": "whatsapp-dm", "target": "user", "content": "of nobody"},
          {"kind": "turn", "identity": "export-a", "session_id": "s", "role": "user", "content": "said"},
          {"kind": "edge", "identity": "export-a", "session_id": "s", "child_session_id": "t"}]',
        memvec.add_embedding_space('export-model', 8),
        ARRAY[memvec_tests.vec(1), NULL, NULL, NULL, NULL, memvec_tests.vec(2), NULL])),
    7::bigint, 'there are rows'
);

SELECT results_eq(
    $$ SELECT line ->> 'content', line ->> 'target', (line ->> 'created_at')::timestamptz, line -> 'metadata' ->> 'n',
              line -> 'sources' ->> 0, line ->> 'embed', line ->> 'vectors'
         FROM memvec.export_rows('entry', p_identity => 'Export-A') $$,
    $$ VALUES (E'one "line"\nand another', 'memory', '2025-01-02 03:04:05.678Z'::timestamptz, '1',
               '00000000-0000-0000-0000-00000000000e', 'true', NULL),
              ('two', 'user', now(), NULL, NULL, 'false', NULL) $$,
    'entries of a theme as they are'
);
SELECT results_eq(
    $$ SELECT (line -> 'vectors' ->> memvec.add_embedding_space('export-model', 8)::text)::public.halfvec = memvec_tests.vec(n)
         FROM (VALUES ('entry', 1), ('turn', 2)) AS k (kind, n)
        CROSS JOIN LATERAL memvec.export_rows(k.kind, p_identity => 'export-a', p_limit => 1, p_vectors => true) $$,
    $$ VALUES (true), (true) $$,
    'vectors are exact'
);
SELECT is(
    (SELECT array_agg(line ->> 'content') FROM memvec.export_rows(
        'entry', (SELECT min(id) FROM memvec.export_rows('entry', p_identity => 'export-a')), p_identity => 'export-a')),
    '{two}', 'a page begins after the given id'
);
SELECT is(
    (SELECT count(*) FROM memvec.export_rows('entry', p_limit => 1, p_identity => 'export-a')), 1::bigint, 'and has an end'
);
SELECT is(
    (SELECT array_agg(line ->> 'content') FROM memvec.export_rows('entry', p_identity => 'agent:main:sms:dm:+15550100999')),
    '{of a person}', 'with a chat''s key only that person''s'
);
SELECT is(
    (SELECT array_agg(line ->> 'content' ORDER BY id) FROM memvec.export_rows('entry', p_identity => 'whatsapp-dm')
      WHERE line ->> 'content' LIKE 'of %'),
    '{of a person,of nobody}', 'with a sink''s name the whole sink'
);
SELECT is(
    (SELECT count(*) FROM memvec.export_rows('entry', p_limit => 10000)
      WHERE line ->> 'content' IN ('two', 'of b', 'of a person', 'of nobody')),
    4::bigint, 'without an identity everything'
);
SELECT results_eq(
    $$ SELECT line ->> 'session_id', line ->> 'child_session_id' FROM memvec.export_rows('edge', p_identity => 'export-a') $$,
    $$ VALUES ('s', 't') $$, 'delegations'
);
SELECT results_eq(
    $$ SELECT line ->> 'identity' FROM memvec.export_rows('agent', p_identity => 'export-a') $$,
    $$ VALUES ('export-a') $$, 'themes'
);
SELECT throws_ok($$ SELECT * FROM memvec.export_rows('page') $$, 'MV001', NULL, 'there are no other kinds');
SELECT is_empty(
    $$ SELECT 1 FROM memvec.import_rows(
           (SELECT jsonb_agg(e.line) FROM (SELECT line FROM memvec.export_rows('entry', p_limit => 10000)
             UNION ALL SELECT line FROM memvec.export_rows('turn', p_limit => 10000)
             UNION ALL SELECT line FROM memvec.export_rows('edge', p_limit => 10000)
             UNION ALL SELECT line FROM memvec.export_rows('agent', p_limit => 10000)) AS e))
        WHERE outcome <> 'duplicate' $$,
    'what was exported is known when it comes back'
);
SELECT throws_ok($$ SELECT memvec.export_header('Export-Misspelt') $$, 'MV001', 'there is no theme "export-misspelt"', 'an export of a theme that nobody has is refused');
SELECT is(
    (SELECT h ->> 'persons' = memvec.persons_mark() AND h ->> 'theme' = 'export-a'
        AND h -> 'spaces' @> '[{"model": "export-model", "dim": 8, "query_prefix": ""}]'
       FROM (SELECT memvec.export_header('export-a')::jsonb AS h) AS e),
    true, 'the header names the spaces and whose persons they are'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT parameters, acted_by FROM memvec.maintenance_log WHERE operation = 'export' $$,
    $$ VALUES ('{"theme": "export-a"}'::jsonb, 'tap_admin'::name) $$,
    'who exported what is logged'
);

SELECT * FROM finish();
ROLLBACK;
