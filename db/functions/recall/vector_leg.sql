-- Compare every row where few pass the filter, ask the index where many do. The index may stop before it has found all it
-- was asked for; a short answer is therefore computed again exactly, so that no row is missed because of the way chosen.
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
    v_near integer;
    v_ids bigint[];
    v_distances double precision[];
BEGIN
    IF public.l2_norm(p_embedding) = 0 THEN
        RETURN;
    END IF;
    -- One person's rows, or one session's, are few and have an index of their own.
    IF p_filter.person_key IS NULL AND p_filter.session_id IS NULL
        AND memvec.estimate_rows(p_kind, p_filter, v_exact_rows) > v_exact_rows THEN
        v_near := least(p_depth, greatest(memvec.setting('hnsw_candidates')::integer, p_wanted));
        SELECT array_agg(v.id), array_agg(v.distance)
          INTO v_ids, v_distances
          FROM memvec.vector_indexed(p_kind, v_space, p_embedding, p_filter, v_near) AS v;
    END IF;
    IF v_near IS NULL OR coalesce(cardinality(v_ids), 0) < v_near THEN
        SELECT array_agg(v.id), array_agg(v.distance)
          INTO v_ids, v_distances
          FROM memvec.vector_exact(p_kind, v_space, p_embedding, p_filter, p_depth) AS v;
    END IF;
    RETURN QUERY
        SELECT r.id, r.position::integer, r.distance
          FROM unnest(v_ids, v_distances) WITH ORDINALITY AS r (id, distance, position);
END;
$$;

COMMENT ON FUNCTION memvec.vector_leg IS
'Returns the rows of a filter nearest to a vector in its space: row id, rank from 1, cosine distance. Up to setting exact_rows rows in the filter all are compared; above, the HNSW index gives setting hnsw_candidates rows, or p_wanted if that is more. Errors: MV004, MV005. Internal.';
REVOKE ALL ON FUNCTION memvec.vector_leg FROM public;
