BEGIN;
SELECT plan(33);
SELECT memvec_tests.alone();

SELECT is(
    pg_get_function_arguments('memvec.claim_pending'::regproc),
    'p_space integer, p_limit integer DEFAULT 64, p_after_kind text DEFAULT NULL::text, p_after_id bigint DEFAULT NULL::bigint, '
    'p_failed_before timestamp with time zone DEFAULT NULL::timestamp with time zone, p_given_up boolean DEFAULT false, '
    'p_lease_seconds integer DEFAULT NULL::integer',
    'takes a space, a limit, a position and which failed rows'
);
SELECT is(
    pg_get_function_result('memvec.claim_pending'::regproc),
    'TABLE(kind text, id bigint, content text, content_hash bytea, attempts integer)', 'returns rows with their text'
);
SELECT volatility_is('memvec', 'claim_pending', 'volatile', 'is volatile');
SELECT is_definer('memvec', 'claim_pending', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.claim_pending'), '{tap_admin,tap_embedder}', 'only embedder and admin may call it');

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('claim_pending', 8) AS space \gset
SELECT memvec.add_embedding_space('claim_pending other', 8) AS other \gset
RESET SESSION AUTHORIZATION;
SELECT set_config('claim.space', :'space', true), set_config('claim.other', :'other', true);
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    $$ SELECT * FROM memvec.claim_pending(current_setting('claim.space')::int) $$, '42501', NULL,
    'the runtime login may not read every theme''s text this way'
);
DO $$
BEGIN
    FOR i IN 1..3 LOOP
        PERFORM memvec.add_memory('claim_pending-' || i, 'memory', 'note ' || i);
        PERFORM memvec.append_turn('claim_pending', 's', 'user', 'turn ' || i);
    END LOOP;
    PERFORM memvec.add_memory('agent:main:telegram:dm:claim', 'memory', 'private');
    PERFORM memvec.add_memory('claim_pending', 'memory', 'never embed this', p_embed => false);
    PERFORM memvec.add_memory('claim_pending', 'memory', 'done', p_embedding => memvec_tests.vec(1), p_space => current_setting('claim.space')::int);
END
$$;
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_embedder');

CREATE FUNCTION pg_temp.claim(p_limit int = 64, p_space text = 'claim.space') RETURNS text
LANGUAGE sql
AS $$ SELECT string_agg(content, ', ' ORDER BY kind, id) FROM memvec.claim_pending(current_setting(p_space)::int, p_limit) $$;

SELECT is(pg_temp.claim(2), 'note 1, note 2', 'the oldest first, no more than p_limit');
SELECT is(pg_temp.claim(), 'note 3, private, turn 1, turn 2, turn 3', 'another worker gets the rest, of every theme');
SELECT is(pg_temp.claim(), NULL, 'what is claimed is not handed out again');
SELECT is(
    pg_temp.claim(p_space => 'claim.other'), 'note 1, note 2, note 3, private, done, turn 1, turn 2, turn 3',
    'another space has work of its own; what must not be embedded is never handed out'
);
SELECT throws_ok($$ SELECT * FROM memvec.claim_pending(0) $$, 'MV004', NULL, 'an unknown space is refused');

RESET SESSION AUTHORIZATION;
UPDATE memvec.embedding_work SET leased_until = now() - interval '1 s' WHERE space_id = :space;
SELECT memvec_tests.act_as('tap_embedder');
SELECT is(
    (SELECT array_agg(content) FROM memvec.claim_pending(:space, 1)), '{"note 1"}', 'a lease that ended gives the row back'
);
SELECT results_eq(
    format($$ SELECT c.wanted, (SELECT count(*) FROM memvec.claim_pending(%s, c.wanted))
              FROM (VALUES (0, 1), (-5, 2), (NULL, 3)) AS c (wanted, place) ORDER BY c.place $$, :space),
    $$ VALUES (0, 1::bigint), (-5, 1), (NULL, 4) $$, 'a limit is clamped to 1 to 1000'
);

-- Failures

RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT DISTINCT leased_until FROM memvec.embedding_work WHERE space_id = :space), now() + interval '300 s',
    'a lease lasts lease_seconds'
);
UPDATE memvec.embedding_work SET leased_until = now() - interval '1 s' WHERE space_id = :space;
UPDATE memvec.embedding_work SET attempts = 4, last_error = 'refused' WHERE space_id = :space AND kind = 'entry';
SELECT memvec_tests.act_as('tap_embedder');
SELECT results_eq(
    format('SELECT content, attempts FROM memvec.claim_pending(%s, 1)', :space), $$ VALUES ('note 1', 4) $$,
    'a row comes with its failures so far'
);
RESET SESSION AUTHORIZATION;
UPDATE memvec.embedding_work SET leased_until = now() - interval '1 s', attempts = 5 WHERE space_id = :space AND kind = 'entry';
SELECT memvec_tests.act_as('tap_embedder');
SELECT is(pg_temp.claim(), 'turn 1, turn 2, turn 3', 'one that failed embed_max_attempts times is left alone');

-- New words are a new chance.
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
SELECT memvec.replace_memory('claim_pending-1', 'memory', 'note 1', 'note 1, other words');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_embedder');
SELECT results_eq(
    format('SELECT content, attempts FROM memvec.claim_pending(%s)', :space), $$ VALUES ('note 1, other words', 0) $$,
    'a changed text is handed out again, its failures forgotten'
);

-- What was claimed and stored is done.
CREATE TEMP TABLE claimed AS SELECT * FROM memvec.claim_pending(:other);
SELECT is((SELECT count(*) FROM claimed), 1::bigint, 'the other space wants the new text as well');
SELECT is(
    (SELECT s.stored FROM (SELECT array_agg(kind) AS kinds, array_agg(id) AS ids, array_agg(content_hash) AS hashes FROM claimed) AS c,
         LATERAL memvec.store_embeddings(:other, c.kinds, c.ids, c.hashes, ARRAY[memvec_tests.vec(1)]) AS s),
    1, 'its vector is stored'
);
RESET SESSION AUTHORIZATION;
UPDATE memvec.embedding_work SET leased_until = now() - interval '1 s' WHERE space_id = :other;
SELECT is(
    (SELECT count(*) FROM claimed AS c JOIN memvec.embedding_work AS w ON w.kind = c.kind AND w.row_id = c.id AND w.space_id = :other),
    0::bigint, 'its lease is gone'
);
SELECT memvec_tests.act_as('tap_embedder');
SELECT is(
    pg_temp.claim(p_space => 'claim.other'), 'note 2, note 3, private, done, turn 1, turn 2, turn 3', 'and it is not handed out again'
);

-- A run over all rows, position by position
RESET SESSION AUTHORIZATION;
DELETE FROM memvec.embedding_work WHERE space_id = :other;
SELECT memvec_tests.act_as('tap_embedder');
CREATE FUNCTION pg_temp.run(p_after_kind text, p_after text, p_limit int = 2) RETURNS text
LANGUAGE sql
AS $$
    SELECT string_agg(content, ', ' ORDER BY kind, id)
      FROM memvec.claim_pending(current_setting('claim.other')::int, p_limit, p_after_kind, current_setting('claim.' || p_after)::bigint)
$$;
RESET SESSION AUTHORIZATION;
SELECT set_config('claim.note3', (SELECT id::text FROM memvec.memory_entries WHERE content = 'note 3'), true),
       set_config('claim.done', (SELECT id::text FROM memvec.memory_entries WHERE content = 'done'), true),
       set_config('claim.turn1', (SELECT id::text FROM memvec.conversations WHERE content = 'turn 1' AND agent_identity = 'claim_pending'), true);
SELECT memvec_tests.act_as('tap_embedder');
SELECT is(pg_temp.run('entry', 'note3'), 'private, done', 'rows behind a position');
SELECT is(pg_temp.run('entry', 'done', 1), 'turn 1', 'behind the last entry the turns begin');
SELECT is(pg_temp.run('turn', 'turn1', 9), 'turn 2, turn 3', 'behind a turn there are no entries');
SELECT is(pg_temp.claim(9, 'claim.other'), 'note 2, note 3', 'what appeared or was left before the position is found from the start');
SELECT is(
    (SELECT memvec.release_pending(:other, '{entry,entry}', ARRAY[current_setting('claim.note3')::bigint, -1])), 1::bigint, 'one is given back'
);
SELECT is((SELECT content FROM memvec.claim_pending(:other, p_lease_seconds => 7)), 'note 3', 'and handed out again');
RESET SESSION AUTHORIZATION;
SELECT is(
    (SELECT leased_until - now() FROM memvec.embedding_work WHERE space_id = :other AND row_id = current_setting('claim.note3')::bigint AND kind = 'entry'),
    interval '7 s', 'for as long as was asked'
);

-- Failed rows, once a run
SELECT memvec_tests.act_as('tap_embedder');
SELECT memvec.report_embedding_failure(:other, '{entry}', ARRAY[current_setting('claim.note3')::bigint], '{HTTP 500}');
SELECT is(pg_temp.claim(9, 'claim.other'), NULL, 'a failed row pauses');
SELECT is_empty(
    $$ SELECT FROM memvec.claim_pending(current_setting('claim.other')::int, p_failed_before => now()) $$, 'in the run in which it failed it does not come again'
);
SELECT results_eq(
    $$ SELECT content, attempts FROM memvec.claim_pending(current_setting('claim.other')::int, p_failed_before => now() + interval '1 ms') $$,
    $$ VALUES ('note 3', 1) $$, 'in the next run it does, whatever its pause'
);
SELECT memvec.report_embedding_failure(:other, '{entry}', ARRAY[current_setting('claim.note3')::bigint], '{HTTP 400}', '{true}');
SELECT is_empty(
    $$ SELECT FROM memvec.claim_pending(current_setting('claim.other')::int, p_failed_before => now() + interval '1 ms') $$, 'a row that was given up does not'
);
SELECT results_eq(
    $$ SELECT content FROM memvec.claim_pending(current_setting('claim.other')::int, p_failed_before => now() + interval '1 ms', p_given_up => true) $$,
    $$ VALUES ('note 3') $$, 'unless that is asked for'
);

SELECT * FROM finish();
ROLLBACK;
