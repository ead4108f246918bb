BEGIN;
SELECT plan(4);

SELECT is(memvec_tests.callers('memvec.vector_hash'), '{}', 'internal');
SELECT is(memvec.vector_hash('\x01', NULL), '\x01'::bytea, 'of an ordinary row the content hash itself');
SELECT is(length(memvec.vector_hash('\x01', gen_random_uuid())), 32, 'of a person''s row another hash');
SELECT isnt(
    memvec.vector_hash('\x01', '00000000-0000-0000-0000-000000000001'), memvec.vector_hash('\x01', '00000000-0000-0000-0000-000000000002'),
    'which differs from person to person'
);

SELECT * FROM finish();
ROLLBACK;
