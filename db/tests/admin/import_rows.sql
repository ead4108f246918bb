BEGIN;
SELECT plan(37);
SELECT memvec_tests.alone();

SELECT set_eq(
    $$ SELECT unnest(memvec_tests.callers('memvec.import_rows')) $$, $$ VALUES ('tap_admin'::text) $$,
    'only administrators may import'
);
SELECT memvec_tests.act_as('tap_admin');
SELECT is(memvec.add_embedding_space('import-model', 8), memvec.add_embedding_space('import-model', 8), 'there is a space');

-- Entries, in one batch with bad rows
PREPARE entries AS
SELECT ordinal, outcome, agent_identity, reason, message FROM memvec.import_rows(jsonb_build_array(
    '{"kind": "entry", "identity": "Import-A", "target": "memory", "content": " Port 5432 ", "created_at": "2025-01-02 03:04:05+00",
      "updated_at": "2025-02-03T00:00:00Z", "metadata": {"n": 1, "raw_identity": "agent:main:whatsapp:dm:15550100123"},
      "sources": ["00000000-0000-0000-0000-00000000000a"]}'::jsonb,
    '{"kind": "entry", "identity": "import-a", "target": "memory", "content": "Port 5432"}'::jsonb,
    '{"kind": "entry", "identity": "import-a", "target": "elsewhere", "content": "x"}'::jsonb,
    '{"kind": "entry", "identity": "import-a", "target": "user", "content": "\u00a0\n"}'::jsonb,
    '{"kind": "entry", "identity": "import-a", "target": "user", "content": "x", "created_at": "yesterday-ish"}'::jsonb,
    '"text"'::jsonb,
    '{"kind": "page", "identity": "import-a"}'::jsonb,
    '{"kind": "entry", "target": "user", "content": "x"}'::jsonb,
    '{"kind": "entry", "identity": "import-a", "target": "user", "content": "x", "sources": ["y"]}'::jsonb,
    '{"kind": "entry", "identity": "import-a", "target": "user", "content": "Ines", "metadata": [1], "created_at": "infinity"}'::jsonb
));
CREATE TEMP TABLE seen AS EXECUTE entries;
SELECT results_eq(
    $$ SELECT outcome FROM seen ORDER BY ordinal $$,
    $$ VALUES ('added'), ('duplicate'), ('refused'), ('refused'), ('refused'), ('refused'), ('refused'), ('refused'),
              ('refused'), ('added') $$,
    'good rows are stored, bad ones refused, each on its own'
);
SELECT results_eq(
    $$ SELECT message FROM seen WHERE outcome = 'refused' ORDER BY ordinal $$,
    $$ VALUES ('the target of an entry is memory or user'), ('it has no content'), ('created_at is not a time'),
              ('a row is an object'), ('the kind of a row is entry, turn, edge or agent, not "page"'), ('it has no identity'),
              ('sources is not a list of uuids') $$,
    'and each is told why'
);
SELECT is((SELECT reason FROM seen WHERE ordinal = 1), 'lowercased', 'the identity is governed as any other');
SELECT set_eq(
    $$ EXECUTE entries $$,
    $$ SELECT ordinal, CASE outcome WHEN 'added' THEN 'duplicate' ELSE outcome END, agent_identity, reason, message FROM seen $$,
    'the same again changes nothing'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT target, content, created_at, updated_at, metadata FROM memvec.memory_entries
        WHERE agent_identity = 'import-a' AND content = 'Port 5432' $$,
    $$ VALUES ('memory', 'Port 5432', '2025-01-02 03:04:05Z'::timestamptz, '2025-02-03Z'::timestamptz, '{"n": 1}'::jsonb) $$,
    'times and metadata are kept, text is trimmed, a chat key noted in the metadata is not stored'
);
SELECT results_eq(
    $$ SELECT created_at = now(), updated_at = now(), metadata FROM memvec.memory_entries
        WHERE agent_identity = 'import-a' AND content = 'Ines' $$,
    $$ VALUES (true, true, '{"value": [1]}'::jsonb) $$,
    'a time no calendar has is now, and metadata is an object'
);
SELECT results_eq(
    $$ SELECT s.source FROM memvec.entry_sources AS s JOIN memvec.memory_entries AS m ON m.id = s.entry_id
        WHERE m.agent_identity = 'import-a' $$,
    $$ VALUES ('00000000-0000-0000-0000-00000000000a'::uuid) $$,
    'the homes whose files hold it are kept'
);
SELECT results_eq(
    $$ SELECT kind, sink, first_seen FROM memvec.memory_agents WHERE agent_identity = 'import-a' $$,
    $$ VALUES ('theme', false, '2025-01-02 03:04:05Z'::timestamptz) $$,
    'the theme is registered since its oldest row'
);

-- Chats
SELECT memvec_tests.act_as('tap_admin');
SELECT results_eq(
    $$ SELECT outcome, agent_identity, reason FROM memvec.import_rows('[
        {"kind": "entry", "identity": "agent:main:whatsapp:dm:15550100777", "target": "memory", "content": "import: of a raw key"},
        {"kind": "entry", "identity": "whatsapp-dm", "raw_identity": "agent:main:whatsapp:dm:15550100777", "target": "memory",
         "content": "import: of a key kept beside"},
        {"kind": "entry", "identity": "whatsapp-dm", "raw_identity": "agent:main:telegram:group:1:2", "target": "memory",
         "content": "import: of a group"},
        {"kind": "entry", "identity": "whatsapp-dm", "raw_identity": "desk:signal:9am", "target": "memory",
         "content": "import: not out of the sink"},
        {"kind": "entry", "identity": "WhatsApp-DM", "raw_identity": "whatsapp-dm", "target": "memory", "content": "import: no key"},
        {"kind": "entry", "identity": "whatsapp-dm", "person": "00000000-0000-0000-0000-0000000000bb", "target": "memory",
         "content": "import: of a person"},
        {"kind": "entry", "identity": "import-b", "person": "00000000-0000-0000-0000-0000000000bb", "target": "memory",
         "content": "import: a theme has no persons"},
        {"kind": "entry", "identity": "import-b", "raw_identity": "agent:main:whatsapp:dm:15550100777", "target": "memory",
         "content": "import: stays in its theme"},
        {"kind": "entry", "identity": "import-bench", "target": "memory", "content": "import: a benchmark"}
    ]') $$,
    $$ VALUES ('added', 'whatsapp-dm', 'dm-bucket'), ('added', 'whatsapp-dm', 'dm-bucket'),
              ('added', 'external-group', 'group-bucket'), ('added', 'whatsapp-dm', 'nobody'), ('added', 'whatsapp-dm', 'nobody'),
              ('added', 'whatsapp-dm', 'person'), ('added', 'import-b', 'unchanged'), ('added', 'import-b', 'unchanged'),
              ('added', '_bench', 'bench-bucket') $$,
    'rows of chats become rows of a sink'
);
SELECT memvec_tests.act_as('hermes');
SELECT set_eq(
    $$ SELECT content FROM memvec.recall_memory('agent:main:whatsapp:dm:15550100777', 'import') $$,
    $$ VALUES ('import: of a raw key'), ('import: of a key kept beside') $$,
    'the contact finds what was theirs'
);
SELECT is_empty(
    $$ SELECT content FROM memvec.recall_memory('whatsapp-dm', 'import') $$,
    'what belongs to nobody is found by nobody'
);
SELECT set_eq(
    $$ SELECT content FROM memvec.recall_memory('import-b', 'import') $$,
    $$ VALUES ('import: a theme has no persons'), ('import: stays in its theme') $$,
    'a theme finds its own'
);
RESET SESSION AUTHORIZATION;
SELECT is_empty(
    $$ SELECT content FROM memvec.memory_entries WHERE agent_identity = 'import-b' AND person_key IS NOT NULL $$,
    'and has no persons'
);
SELECT is_empty(
    $$ SELECT m FROM memvec.memory_entries AS m WHERE m::text LIKE '%15550100%' $$,
    'no chat key is stored'
);

-- Benchmark rows where new ones are refused
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.set_setting('bench_mode', 'reject');
SELECT results_eq(
    $$ SELECT agent_identity FROM memvec.import_rows('[
        {"kind": "entry", "identity": "_bench", "target": "memory", "content": "import: bench 1"},
        {"kind": "entry", "identity": "skill-bench", "target": "memory", "content": "import: bench 2"}]') $$,
    $$ VALUES ('_bench'), ('_bench') $$,
    'benchmark rows never become rows of the default theme'
);
SELECT memvec.set_setting('bench_mode', 'bucket');

-- Vectors
SELECT results_eq(
    $$ SELECT outcome, embedded FROM memvec.import_rows(
           '[{"kind": "entry", "identity": "import-v", "target": "user", "content": "one"},
             {"kind": "entry", "identity": "import-v", "target": "user", "content": "two"},
             {"kind": "turn", "identity": "import-v", "session_id": "s", "role": "user", "content": "three"},
             {"kind": "entry", "identity": "import-v", "target": "user", "content": "four", "embed": false},
             {"kind": "entry", "identity": "import-v", "target": "user", "content": "five"}]',
           memvec.add_embedding_space('import-model', 8),
           ARRAY[memvec_tests.vec(1), NULL, memvec_tests.vec(3), memvec_tests.vec(4), '[0,0,0,0,0,0,0,0]']) $$,
    $$ VALUES ('added', true), ('added', false), ('added', true), ('added', false), ('added', false) $$,
    'vectors are stored where they can be'
);
SELECT results_eq(
    $$ SELECT outcome, embedded FROM memvec.import_rows(
           '[{"kind": "entry", "identity": "import-v", "target": "user", "content": "one"},
             {"kind": "entry", "identity": "import-v", "target": "user", "content": "two"}]',
           memvec.add_embedding_space('import-model', 8), ARRAY[memvec_tests.vec(2), memvec_tests.vec(2)]) $$,
    $$ VALUES ('duplicate', false), ('duplicate', true) $$,
    'a duplicate keeps its vector, or gets the one it lacked'
);
SELECT results_eq(
    $$ SELECT content FROM memvec.recall_memory('import-v', NULL, memvec_tests.vec(1),
              memvec.add_embedding_space('import-model', 8), p_limit => 1) $$,
    $$ VALUES ('one') $$,
    'and is found by it'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.import_rows('[{"kind": "entry", "identity": "import-v", "target": "user", "content": "six"}]',
              memvec.add_embedding_space('import-model', 8), ARRAY['[1,2]'::public.halfvec]) $$,
    'MV005', NULL, 'a vector of another width is refused'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.import_rows('[]', 99999, ARRAY[]::public.halfvec[]) $$, 'MV004', NULL, 'so is an unknown space'
);
SELECT throws_ok(
    $$ SELECT * FROM memvec.import_rows('[{}]', 1, ARRAY[]::public.halfvec[]) $$, 'MV001', NULL,
    'there are as many vectors as rows'
);
SELECT is_empty($$ SELECT * FROM memvec.import_rows('[]') $$, 'nothing is nothing');

-- The log: one row for an import of many calls, counted by each
SELECT is(memvec_tests.callers('memvec.begin_import'), '{tap_admin}', 'only administrators begin an import');
SELECT throws_ok($$ SELECT memvec.begin_import(' ') $$, 'MV001', NULL, 'that is from somewhere');
SELECT memvec.begin_import('wiki') AS import \gset
SELECT count(*) AS before FROM memvec.import_rows('[{"kind": "entry", "identity": "import-l", "target": "user", "content": "a"},
    {"kind": "turn", "identity": "import-l", "session_id": "s", "role": "user", "content": "a"}]', p_import => :import) \gset
SELECT count(*) AS again FROM memvec.import_rows('[{"kind": "entry", "identity": "import-l", "target": "user", "content": "a"},
    {"kind": "entry", "identity": "import-l", "target": "user", "content": "b"},
    {"kind": "agent", "identity": "import-l2"}]', memvec.add_embedding_space('import-model', 8),
    ARRAY[NULL, memvec_tests.vec(3), NULL], p_import => :import) \gset
SELECT throws_ok(
    format($$ SELECT * FROM memvec.import_rows('[{"kind": "agent", "identity": "x"}]', p_dry_run => true, p_import => %s) $$, :import),
    'MV001', NULL, 'a dry run is not counted in an import that is none'
);
RESET SESSION AUTHORIZATION;
SELECT throws_ok(
    format($$ SELECT * FROM memvec.import_rows('[{"kind": "agent", "identity": "x"}]', p_import => %s) $$, :import),
    'MV001', NULL, 'nor is anything in somebody else''s'
);
SELECT results_eq(
    format($$ SELECT operation, rows, dry_run, acted_by = 'tap_admin', parameters FROM memvec.maintenance_log WHERE id = %s $$, :import),
    $$ VALUES ('import', 4::bigint, false, true,
               '{"from": "wiki", "entries": 2, "turns": 1, "themes": 1, "vectors": 1}'::jsonb) $$,
    'one row says who imported what'
);
SELECT memvec_tests.act_as('tap_admin');
SELECT count(*) AS own FROM memvec.import_rows('[{"kind": "entry", "identity": "import-l", "target": "user", "content": "c"}]') \gset
SELECT count(*) AS none FROM memvec.import_rows('[{"kind": "entry", "identity": "import-l", "target": "user", "content": "c"}]') \gset
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    format($$ SELECT rows, parameters FROM memvec.maintenance_log WHERE operation = 'import' AND id > %s
              ORDER BY id $$, :import),
    $$ VALUES (1::bigint, '{"from": "psql", "entries": 1}'::jsonb) $$,
    'a call alone has a row of its own if it stored anything'
);
SELECT memvec_tests.act_as('tap_admin');

-- Turns, delegations, themes
PREPARE others AS
SELECT kind, outcome, agent_identity FROM memvec.import_rows('[
    {"kind": "turn", "identity": "import-t", "session_id": "s1", "parent_session_id": "s0", "role": "user", "content": "hello",
     "ts": "2025-03-04T05:06:07Z", "metadata": {"platform": "cli", "raw_identity": "x"}},
    {"kind": "turn", "identity": "import-t", "session_id": "s1", "role": "user", "content": "hello"},
    {"kind": "turn", "identity": "import-t", "session_id": "s1", "role": "narrator", "content": "hello"},
    {"kind": "edge", "identity": "import-t", "session_id": "s1", "child_identity": "Import-C", "child_session_id": "s2",
     "created_at": "2025-03-05Z", "attrs": {"result_chars": 3}},
    {"kind": "edge", "identity": "import-t", "session_id": "s1"},
    {"kind": "agent", "identity": "import-t", "first_seen": "2024-01-01Z", "last_seen": "2025-06-01Z", "attrs": {"a": 1}},
    {"kind": "agent", "identity": "agent:main:sms:dm:+15550100888", "attrs": {"phone": "+15550100888"}}]', p_dry_run => $1);
SELECT results_eq(
    'EXECUTE others(true)',
    $$ VALUES ('turn', 'added', 'import-t'), ('turn', 'duplicate', 'import-t'), ('turn', 'refused', NULL),
              ('edge', 'added', 'import-t'), ('edge', 'refused', NULL), ('agent', 'added', 'import-t'),
              ('agent', 'duplicate', 'whatsapp-dm') $$,
    'a dry run says what would be'
);
SELECT results_eq(
    'EXECUTE others(false)',
    $$ VALUES ('turn', 'added', 'import-t'), ('turn', 'duplicate', 'import-t'), ('turn', 'refused', NULL),
              ('edge', 'added', 'import-t'), ('edge', 'refused', NULL), ('agent', 'added', 'import-t'),
              ('agent', 'duplicate', 'whatsapp-dm') $$,
    'and stored nothing'
);
SELECT results_eq(
    'EXECUTE others(true)',
    $$ VALUES ('turn', 'duplicate', 'import-t'), ('turn', 'duplicate', 'import-t'), ('turn', 'refused', NULL),
              ('edge', 'duplicate', 'import-t'), ('edge', 'refused', NULL), ('agent', 'duplicate', 'import-t'),
              ('agent', 'duplicate', 'whatsapp-dm') $$,
    'now it is there'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT session_id, parent_session_id, role, content, ts, metadata FROM memvec.conversations
        WHERE agent_identity = 'import-t' $$,
    $$ VALUES ('s1', 's0', 'user', 'hello', '2025-03-04 05:06:07Z'::timestamptz, '{"platform": "cli"}'::jsonb) $$,
    'a turn keeps its session, the session it came from, and its time'
);
SELECT results_eq(
    $$ SELECT child_identity, parent_session_id, child_session_id, created_at, attrs FROM memvec.memory_agent_edges
        WHERE parent_identity = 'import-t' $$,
    $$ VALUES ('import-c', 's1', 's2', '2025-03-05Z'::timestamptz, '{"result_chars": 3}'::jsonb) $$,
    'a delegation its sessions and its time'
);
SELECT results_eq(
    $$ SELECT first_seen, last_seen, attrs FROM memvec.memory_agents WHERE agent_identity = 'import-t' $$,
    $$ VALUES ('2024-01-01Z'::timestamptz, '2025-06-01Z'::timestamptz, '{"a": 1}'::jsonb) $$,
    'a theme when it was seen'
);
SELECT is_empty(
    $$ SELECT agent_identity FROM memvec.memory_agents WHERE attrs::text LIKE '%15550100%' $$,
    'nothing is kept about the people of a sink'
);

SELECT * FROM finish();
ROLLBACK;
