-- Compare every row where few pass the filter, ask the index where many do. The index is walked past the rows of other themes,
-- so a theme that is a small part of all must be the larger for that to pay: of N rows in all, n in the filter, it visits
-- candidates * N / n rows, each at the price of hnsw_visit_rows comparisons. The larger the graph, the more of it must be seen to
-- meet the nearest rows: at least a thousandth of N, or from a million on, where that would take too long, the square root. The
-- index may also stop before it has found all it was asked for; a short answer is computed again exactly, so that no row is missed
-- because of the way chosen. Rows at the same distance share a rank: the fusion knows their age and puts the younger first.
CREATE OR REPLACE FUNCTION memvec.vector_leg(
    p_kind text,
    p_space integer,
    p_embedding public.halfvec,
    p_filter memvec.recall_filter,
    p_depth integer,
    p_wanted integer
)
RETURNS TABLE (id bigint, rank integer, distance double precision)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
ROWS 200
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_space memvec.embedding_spaces := memvec.checked_space(p_space, p_embedding);
    v_exact_rows bigint := memvec.setting('exact_rows')::bigint;
    v_neighbours double precision := memvec.setting('turn_neighbours')::double precision;
    v_rows bigint;
    v_total bigint;
    v_walk integer;
    v_ids bigint[];
    v_distances double precision[];
BEGIN
    IF public.l2_norm(p_embedding) = 0 THEN
        RETURN;
    END IF;
    -- One person's rows, or one session's, are few and have an index of their own.
    IF (p_filter.person_key IS NULL OR p_filter.others) AND p_filter.session_id IS NULL THEN
        v_rows := memvec.estimate_rows(p_kind, p_filter, v_exact_rows);
        -- Few rows in a time would be sought through the whole index, and then be compared all the same.
        IF v_rows > v_exact_rows THEN
            v_rows := ceil(v_rows * memvec.dated_share(p_kind, p_filter.since, p_filter.until));
        END IF;
        IF v_rows > v_exact_rows THEN
            SELECT greatest(sum(c.rows), v_rows) INTO v_total FROM memvec.theme_counts AS c WHERE c.kind = p_kind;
            v_walk := greatest(memvec.setting('hnsw_candidates')::integer, p_wanted, ceil(v_rows / greatest(1000, sqrt(v_total)))::integer);
            IF v_rows::numeric * v_rows <= v_walk::numeric * v_total * memvec.setting('hnsw_visit_rows')::integer THEN
                v_walk := NULL;
            END IF;
        END IF;
    END IF;
    IF v_walk IS NOT NULL THEN
        SELECT array_agg(v.id), array_agg(v.distance)
          INTO v_ids, v_distances
          FROM memvec.vector_indexed(p_kind, v_space, p_embedding, p_filter, v_walk, p_depth) AS v;
    END IF;
    IF v_walk IS NULL OR coalesce(cardinality(v_ids), 0) < least(v_walk, p_depth) THEN
        SELECT array_agg(v.id), array_agg(v.distance)
          INTO v_ids, v_distances
          FROM memvec.vector_exact(p_kind, v_space, p_embedding, p_filter, p_depth) AS v;
    END IF;
    IF p_kind = 'turn' AND v_neighbours > 0 THEN
        -- Nearness is counted from the farthest of the leg, since models differ in what they call unrelated.
        RETURN QUERY
            WITH found AS MATERIALIZED (
                SELECT f.id, f.distance, max(f.distance) OVER () - f.distance AS nearness
                  FROM unnest(v_ids, v_distances) AS f (id, distance)
            ), lifted AS (
                SELECT l.*
                  FROM (SELECT array_agg(f.id) AS ids, array_agg(f.nearness) AS scores FROM found AS f) AS f,
                       memvec.lifted_turns(f.ids, f.scores, v_neighbours) AS l
            )
            SELECT f.id, (rank() OVER (ORDER BY l.score DESC))::integer, f.distance
              FROM lifted AS l
              JOIN found AS f ON f.id = l.id
             ORDER BY 2, f.id DESC;
        RETURN;
    END IF;
    RETURN QUERY
        SELECT r.id, (rank() OVER (ORDER BY r.distance))::integer, r.distance
          FROM unnest(v_ids, v_distances) AS r (id, distance);
END;
$$;

COMMENT ON FUNCTION memvec.vector_leg IS
'Returns the rows of a filter nearest to a vector in its space: row id, rank from 1 (the same for equal distances), cosine distance. A turn''s rank counts its neighbours'' nearness (lifted_turns), its distance does not. Up to setting exact_rows rows in the filter, or while that is cheaper, all are compared; above, the HNSW index is walked for setting hnsw_candidates rows, for p_wanted or for a thousandth of them (of more than a million in all: for their part of the square root of all), whichever is most. Errors: MV004, MV005. Internal.';
REVOKE ALL ON FUNCTION memvec.vector_leg FROM public;
