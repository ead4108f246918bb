-- Every model has its own idea of "unrelated": for one it is cosine 0.1, for another 0.75. A space whose client does not know
-- its floor gets it measured, once there is enough to measure: the cosine that only one of a hundred pairs of its own texts,
-- taken at random, exceeds.
CREATE OR REPLACE FUNCTION memvec.measure_floors()
RETURNS bigint
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c_least CONSTANT integer := 100;
    c_sample CONSTANT integer := 200;
    v_space memvec.embedding_spaces;
    v_floor real;
    v_measured bigint := 0;
BEGIN
    FOR v_space IN SELECT * FROM memvec.embedding_spaces AS s WHERE s.min_similarity IS NULL ORDER BY s.id LOOP
        -- One statement: a variable that holds vectors would be shown to the caller by debug_print_plan.
        EXECUTE format(
            'WITH sample AS MATERIALIZED (
                 SELECT r.embedding, row_number() OVER () AS ordinal
                   FROM ((SELECT e.embedding FROM memvec.%I AS e ORDER BY random() LIMIT $1)
                         UNION ALL
                         (SELECT t.embedding FROM memvec.%I AS t ORDER BY random() LIMIT $1)) AS r
             )
             SELECT percentile_cont(0.99) WITHIN GROUP (ORDER BY 1 - (a.embedding OPERATOR(public.<=>) b.embedding))
               FROM sample AS a
               JOIN sample AS b ON a.ordinal < b.ordinal
              WHERE (SELECT count(*) FROM sample) >= $2',
            v_space.entry_table, v_space.turn_table
        ) INTO v_floor USING c_sample / 2, c_least;
        CONTINUE WHEN v_floor IS NULL;
        UPDATE memvec.embedding_spaces AS s SET min_similarity = v_floor WHERE s.id = v_space.id;
        v_measured := v_measured + 1;
    END LOOP;
    RETURN v_measured;
END;
$$;

COMMENT ON FUNCTION memvec.measure_floors IS
'Measures min_similarity of the spaces that have none and hold some 100 vectors: the 99th percentile of the cosine similarity of random pairs. Returns how many were measured. Internal.';
REVOKE ALL ON FUNCTION memvec.measure_floors FROM public;
