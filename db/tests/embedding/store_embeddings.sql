BEGIN;
SELECT plan(29);
SELECT memvec_tests.alone();

SELECT is(
    pg_get_function_arguments('memvec.store_embeddings'::regproc),
    'p_space integer, p_kinds text[], p_ids bigint[], p_hashes bytea[], p_embeddings halfvec[], '
    'OUT stored integer, OUT changed integer, OUT gone integer, OUT invalid integer',
    'takes four arrays, returns four counts'
);
SELECT is(pg_get_function_result('memvec.store_embeddings'::regproc), 'record', 'in one row');
SELECT volatility_is('memvec', 'store_embeddings', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'store_embeddings', 'runs as its owner');
SELECT is(
    memvec_tests.callers('memvec.store_embeddings'), '{hermes,tap_admin,tap_embedder}', 'runtime, embedder and admin may call it'
);

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('store_embeddings', 8) AS space \gset
SELECT memvec.add_embedding_space('store_embeddings other', 8) AS other \gset
RESET SESSION AUTHORIZATION;
SELECT set_config('store.space', :'space', true), set_config('store.other', :'other', true);
SELECT memvec_tests.act_as('tap_reader');
SELECT throws_ok($$ SELECT memvec.store_embeddings(1, '{}', '{}', '{}', '{}') $$, '42501', NULL, 'a reader is refused');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');

CREATE TEMP TABLE written AS
SELECT 'entry' AS kind, n, a.id, a.content_hash
FROM generate_series(1, 5) AS n, LATERAL memvec.add_memory('store_embeddings', 'memory', 'note ' || n) AS a;
INSERT INTO written
SELECT 'turn', n, a.id, a.content_hash
FROM generate_series(1, 2) AS n, LATERAL memvec.append_turn('store_embeddings', 's', 'user', 'turn ' || n) AS a;
INSERT INTO written
SELECT 'entry', 6, a.id, a.content_hash FROM memvec.add_memory('store_embeddings', 'memory', 'never embed this', p_embed => false) AS a;
INSERT INTO written
SELECT 'entry', 7, a.id, a.content_hash FROM memvec.add_memory('agent:main:telegram:dm:store', 'memory', 'private') AS a;

CREATE FUNCTION pg_temp.store(p_kind text, p_n int, p_vector public.halfvec, p_hash bytea = NULL, p_space text = 'store.space') RETURNS int[]
LANGUAGE sql
AS $$
    SELECT ARRAY[s.stored, s.changed, s.gone, s.invalid]
    FROM written AS w, LATERAL memvec.store_embeddings(
        current_setting(p_space)::int, ARRAY[p_kind], ARRAY[w.id], ARRAY[coalesce(p_hash, w.content_hash)], ARRAY[p_vector]) AS s
    WHERE w.kind = p_kind AND w.n = p_n
$$;
CREATE FUNCTION pg_temp.score(p_n int, p_space text = 'store.space') RETURNS numeric
LANGUAGE sql
AS $$
    SELECT round(r.score::numeric, 2)
    FROM memvec.recall_memory('store_embeddings', 'note', memvec_tests.vec(p_n), current_setting(p_space)::int) AS r
    WHERE r.content = 'note ' || p_n
$$;

SELECT results_eq(
    $$ SELECT s.* FROM (SELECT array_agg(kind) AS kinds, array_agg(id) AS ids, array_agg(content_hash) AS hashes,
                               array_agg(memvec_tests.vec(n)) AS vectors FROM written WHERE n <= 2) AS w,
            LATERAL memvec.store_embeddings(current_setting('store.space')::int, w.kinds, w.ids, w.hashes, w.vectors) AS s $$,
    $$ VALUES (4, 0, 0, 0) $$, 'entries and turns in one call'
);
SELECT is(pg_temp.score(1), 1.00, 'a stored vector is recalled');
SELECT is(pg_temp.score(1, 'store.other'), NULL, 'in its own space only');
SELECT is(
    (SELECT round(score::numeric, 2) FROM memvec.recall_conversation('store_embeddings', NULL, memvec_tests.vec(2), current_setting('store.space')::int, p_limit => 1)),
    1.00, 'a turn''s too'
);
SELECT is(pg_temp.store('entry', 1, memvec_tests.vec(1)), '{1,0,0,0}', 'once more is no error');
SELECT is(pg_temp.store('entry', 1, memvec_tests.vec(1), p_space => 'store.other'), '{1,0,0,0}', 'a row may have vectors in several spaces');
SELECT is(pg_temp.store('entry', 3, memvec_tests.vec(3), '\x00'), '{0,1,0,0}', 'a vector of another text is not stored');
SELECT is(pg_temp.store('entry', 6, memvec_tests.vec(6)), '{0,0,1,0}', 'a row that must not be embedded neither');
SELECT is(pg_temp.store('entry', 4, '[0,0,0,0,0,0,0,0]'), '{0,0,0,1}', 'nor a vector of length zero');
SELECT is(pg_temp.store('entry', 4, NULL), '{0,0,0,1}', 'nor none');
SELECT results_eq(
    $$ SELECT s.* FROM memvec.store_embeddings(current_setting('store.space')::int, '{entry,turn,note}', '{-1,-1,-1}',
                                               ARRAY['\x00', '\x00', '\x00']::bytea[], array_fill(memvec_tests.vec(1), ARRAY[3])) AS s $$,
    $$ VALUES (0, 0, 3, 0) $$, 'rows that do not exist, and kinds, are counted as gone'
);
SELECT results_eq(
    $$ SELECT s.* FROM memvec.store_embeddings(current_setting('store.space')::int, '{}', '{}', '{}', '{}') AS s $$,
    $$ VALUES (0, 0, 0, 0) $$, 'nothing to store is no error'
);
SELECT throws_ok(
    $$ SELECT pg_temp.store('entry', 5, memvec_tests.vec(5, 9)) $$, 'MV005', NULL, 'another width is refused'
);
SELECT throws_ok(
    $$ SELECT memvec.store_embeddings(0, '{}', '{}', '{}', '{}') $$, 'MV004', NULL, 'an unknown space too'
);

-- A text that changes while its vector is computed
SELECT memvec.replace_memory('store_embeddings', 'memory', 'note 5', 'note 5, changed');
SELECT ok(
    pg_temp.store('entry', 5, memvec_tests.vec(5)) IN ('{0,1,0,0}', '{0,0,1,0}'), 'an older vector does not land on a newer text'
);

-- What the answer tells about rows of others

SELECT is(pg_temp.store('entry', 7, memvec_tests.vec(7)), '{1,0,0,0}', 'a person''s row takes the hash that its writer was given');
SELECT is(
    pg_temp.store('entry', 7, memvec_tests.vec(7), sha256('private')), '{0,1,0,0}', 'and does not confirm a guess of its text'
);
RESET SESSION AUTHORIZATION;
WITH nobody AS (
    INSERT INTO memvec.memory_entries (agent_identity, target, content, content_hash, search, search_version)
    VALUES ('whatsapp-dm', 'memory', 'imported', sha256('imported'), '', 1)
    RETURNING id, content_hash
)
INSERT INTO written SELECT 'entry', 8, n.id, n.content_hash FROM nobody AS n;
SELECT memvec_tests.act_as('hermes');
SELECT is(pg_temp.store('entry', 8, memvec_tests.vec(8)), '{0,0,1,0}', 'a sink''s row of nobody is nobody''s to fill');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.bind_role('tap_bound', 'store_embeddings bound', true);
RESET SESSION AUTHORIZATION;
GRANT SELECT ON written TO PUBLIC;
SELECT memvec_tests.act_as('tap_bound');
SELECT is(pg_temp.store('entry', 1, memvec_tests.vec(1)), '{0,0,1,0}', 'a bound role learns nothing of another theme, knowing the text');
SELECT is(pg_temp.store('entry', 1, memvec_tests.vec(1), '\x00'), '{0,0,1,0}', 'or not knowing it');
SELECT is(
    (SELECT ARRAY[s.stored, s.changed, s.gone, s.invalid]
     FROM memvec.add_memory('store_embeddings bound', 'memory', 'mine') AS a,
         LATERAL memvec.store_embeddings(:space, '{entry}', ARRAY[a.id], ARRAY[a.content_hash], ARRAY[memvec_tests.vec(1)]) AS s),
    '{1,0,0,0}', 'its own theme''s rows it may fill'
);
RESET SESSION AUTHORIZATION;

-- Claimed rows whose vector is no vector

SELECT memvec_tests.act_as('tap_embedder');
CREATE TEMP TABLE claimed AS SELECT * FROM memvec.claim_pending(:other, 1000) WHERE content IN ('note 4', 'private');
SELECT results_eq(
    $$ SELECT s.* FROM (SELECT array_agg(kind ORDER BY content) AS kinds, array_agg(id ORDER BY content) AS ids,
                               array_agg(content_hash ORDER BY content) AS hashes FROM claimed) AS c,
            LATERAL memvec.store_embeddings(current_setting('store.other')::int, c.kinds, c.ids, c.hashes,
                                            ARRAY['[0,0,0,0,0,0,0,0]', memvec_tests.vec(7)]) AS s $$,
    $$ VALUES (1, 0, 0, 1) $$, 'an embedder stores for everybody what it claimed'
);
RESET SESSION AUTHORIZATION;
SELECT results_eq(
    $$ SELECT attempts, failed_at = now() FROM memvec.embedding_work
        WHERE space_id = current_setting('store.other')::int AND row_id IN (SELECT id FROM claimed) $$,
    $$ VALUES (1, true) $$, 'a zero vector is a failure: the row is not handed out again at once'
);

SELECT * FROM finish();
ROLLBACK;
