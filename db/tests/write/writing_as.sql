-- Above READ COMMITTED a writer would decide on an old snapshot: every function that writes refuses it. A transaction has
-- one level, so this is a file of its own.
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ;
SELECT plan(16);

SELECT is(memvec_tests.callers('memvec.writing_as'), '{}', 'internal');
SELECT is(memvec_tests.callers('memvec.assert_read_committed'), '{}', 'internal');
SELECT is(memvec_tests.callers('memvec.lock_theme'), '{}', 'internal');
SELECT is(memvec_tests.callers('memvec.lock_entries'), '{}', 'internal');

SELECT memvec_tests.act_as('hermes');
SELECT throws_ok(
    format('SELECT * FROM memvec.%s', t.call), 'MV006',
    'writes need isolation level READ COMMITTED, this transaction is REPEATABLE READ',
    split_part(t.call, '(', 1) || ' refuses REPEATABLE READ'
)
FROM (VALUES
    ($$add_memory('writing_as', 'memory', 'x')$$),
    ($$replace_memory('writing_as', 'memory', 'x', 'y')$$),
    ($$remove_memory('writing_as', 'memory', 'x')$$),
    ($$sync_memories('writing_as', gen_random_uuid(), 'memory', '{}')$$),
    ($$append_turn('writing_as', 's', 'user', 'x')$$),
    ($$record_delegation('writing_as', 's', 't')$$),
    ($$apply_ops('[]')$$),
    ($$store_embeddings(1, '{}', '{}', '{}', '{}')$$)
) AS t (call);
SELECT lives_ok(
    format('SELECT * FROM memvec.%s', t.call), split_part(t.call, '(', 1) || ' only reads, or needs no snapshot of its own'
)
FROM (VALUES
    ($$recall_memory('writing_as', 'x')$$),
    ($$recall_conversation('writing_as', 'x')$$),
    ($$prefetch('writing_as', 'x')$$),
    ($$hello('writing_as')$$)
) AS t (call);

SELECT * FROM finish();
ROLLBACK;

-- Nothing of it is about the lesser levels
BEGIN TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
SELECT memvec_tests.act_as('hermes');
SELECT memvec.add_memory('writing_as', 'memory', 'x');
ROLLBACK;
