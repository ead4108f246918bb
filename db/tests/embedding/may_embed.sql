BEGIN;
SELECT plan(4);

SELECT is(memvec_tests.callers('memvec.may_embed'), '{}', 'internal');

CREATE FUNCTION pg_temp.may(p_lease interval, p_attempts int, p_failed interval, p_before timestamptz = NULL, p_hash bytea = '\x01') RETURNS boolean
LANGUAGE sql
AS $$
    SELECT memvec.may_embed(
        ROW(1, 'entry', 1, '\x01', now() + p_lease, p_attempts, now() - p_failed, NULL)::memvec.embedding_work, p_hash, p_before, 5)
$$;
SELECT is(
    ARRAY[pg_temp.may('1 s', 0, NULL), pg_temp.may('0', 0, NULL), pg_temp.may('1 s', 9, '0', p_hash => '\x02')],
    '{f,t,t}', 'a lease counts until it is over, and for the same text only'
);
SELECT is(
    ARRAY[pg_temp.may('0', 4, '1 day'), pg_temp.may('0', 5, '1 day'), pg_temp.may('0', 5, '1 day', now())],
    '{t,f,f}', 'a row that failed too often is given up'
);
SELECT is(
    ARRAY[pg_temp.may('0', 1, '1 s'), pg_temp.may('0', 1, '1 s', now()), pg_temp.may('0', 1, '1 s', now() - interval '1 s')],
    '{f,t,f}', 'a run does not wait for the pause and does not come twice'
);

SELECT * FROM finish();
ROLLBACK;
