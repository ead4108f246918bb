-- HNSW filters after it has walked the graph, so it walks on (iterative scan) until enough rows pass. Relaxed order finds
-- more than strict order, in almost the right order; "+ 0" keeps the planner from believing the order is right already.
CREATE OR REPLACE FUNCTION memvec.vector_indexed(
    p_kind text,
    p_space memvec.embedding_spaces,
    p_embedding public.halfvec,
    p_filter memvec.recall_filter,
    p_walk integer,
    p_depth integer
)
RETURNS TABLE (id bigint, distance double precision)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
ROWS 200
SET search_path = pg_catalog, pg_temp
SET jit = off
SET hnsw.iterative_scan = 'relaxed_order'
SET hnsw.ef_search = 100
SET hnsw.max_scan_tuples = 100000
AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'WITH near AS MATERIALIZED (
             SELECT e.id, e.embedding OPERATOR(public.<=>) $1 AS distance %s ORDER BY 2 LIMIT $11
         )
         SELECT n.id, n.distance FROM near AS n ORDER BY n.distance + 0, n.id DESC LIMIT $12',
        memvec.vector_candidates(p_kind, p_space, p_filter)
    ) USING p_embedding, p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes, p_filter.target,
            p_filter.session_id, p_filter.exclude_session, p_filter.since, p_filter.until, p_walk, p_depth;
END;
$$;

COMMENT ON FUNCTION memvec.vector_indexed IS
'Returns the p_depth nearest to a vector, nearest first with their exact cosine distance, of the first p_walk rows of a filter that the space''s HNSW index leads to (iterative scan, relaxed order). Where there is no index the same statement compares every row. Internal.';
REVOKE ALL ON FUNCTION memvec.vector_indexed FROM public;
