CREATE OR REPLACE FUNCTION memvec.vector_exact(
    p_kind text,
    p_space memvec.embedding_spaces,
    p_embedding public.halfvec,
    p_filter memvec.recall_filter,
    p_depth integer
)
RETURNS TABLE (id bigint, distance double precision)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
ROWS 200
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'WITH filtered AS MATERIALIZED (%s)
         SELECT f.id, f.distance FROM filtered AS f ORDER BY f.distance, f.id DESC LIMIT $11',
        memvec.vector_candidates(p_kind, p_space)
    ) USING p_embedding, p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes, p_filter.target,
            p_filter.session_id, p_filter.exclude_session, p_filter.since, p_filter.until, p_depth;
END;
$$;

COMMENT ON FUNCTION memvec.vector_exact IS
'Returns the p_depth rows of a filter nearest to a vector with their cosine distance, by comparing every row of the filter. Internal.';
REVOKE ALL ON FUNCTION memvec.vector_exact FROM public;
