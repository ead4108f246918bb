BEGIN;
SELECT plan(6);
SELECT memvec_tests.alone();

SELECT is(memvec_tests.callers('memvec.measure_floors'), '{}', 'no login may call it');

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('floorless', 16) AS space \gset
SELECT memvec.add_embedding_space('floored', 16, p_min_similarity => 0.42) AS floored \gset
RESET SESSION AUTHORIZATION;
SELECT set_config('floors.space', :'space', true), set_config('floors.floored', :'floored', true);

CREATE FUNCTION pg_temp.measured(p_space text) RETURNS real
LANGUAGE sql
RETURN (SELECT s.min_similarity FROM memvec.embedding_spaces AS s WHERE s.id = current_setting(p_space)::int);
CREATE FUNCTION pg_temp.fill(p_from int, p_to int) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    FOR i IN p_from..p_to LOOP
        PERFORM memvec.add_memory('floors', 'memory', 'floor text ' || i, p_embedding => memvec_tests.vec(i, 16), p_space => current_setting('floors.space')::int);
    END LOOP;
END
$$;

SELECT pg_temp.fill(1, 60);
SELECT memvec.measure_floors();
SELECT is(pg_temp.measured('floors.space'), NULL, 'sixty vectors say too little');
SELECT pg_temp.fill(61, 160);
SELECT ok(memvec.measure_floors() >= 1, 'with enough vectors the floor is measured');
SELECT ok(
    (SELECT avg((r.similarity >= pg_temp.measured('floors.space'))::int) BETWEEN 0.003 AND 0.03
     FROM (SELECT 1 - (a.embedding OPERATOR(public.<=>) b.embedding) AS similarity
           FROM (SELECT g AS n, memvec_tests.vec(g, 16) AS embedding FROM generate_series(1, 160) AS g) AS a
           JOIN (SELECT g AS n, memvec_tests.vec(g, 16) AS embedding FROM generate_series(1, 160) AS g) AS b ON a.n < b.n) AS r),
    'about one pair in a hundred exceeds it'
);
SELECT is(pg_temp.measured('floors.floored'), 0.42::real, 'a floor that was given stays');
SELECT is(memvec.measure_floors(), 0::bigint, 'and a measured one is not measured again');

SELECT * FROM finish();
ROLLBACK;
