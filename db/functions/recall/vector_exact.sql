-- "+ 0" keeps the planner from taking the HNSW index for the order, which would find almost all.
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
        'SELECT e.id, (e.embedding OPERATOR(public.<=>) $1) + 0 %s ORDER BY 2, 1 DESC LIMIT $11',
        memvec.vector_candidates(p_kind, p_space, p_filter)
    ) USING p_embedding, p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes, p_filter.target,
            p_filter.session_id, p_filter.exclude_session, p_filter.since, p_filter.until, p_depth;
END;
$$;

COMMENT ON FUNCTION memvec.vector_exact IS
'Returns the p_depth rows of a filter nearest to a vector with their cosine distance, by comparing every row of the filter. Internal.';
REVOKE ALL ON FUNCTION memvec.vector_exact FROM public;
