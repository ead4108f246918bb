-- HNSW filters after it has walked the graph, so it walks on (iterative scan) until enough rows pass. Relaxed order finds
-- more than strict order, in almost the right order; "+ 0" keeps the planner from believing the order is right already.
CREATE OR REPLACE FUNCTION memvec.vector_indexed(
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
SET hnsw.iterative_scan = 'relaxed_order'
SET hnsw.ef_search = 100
SET hnsw.max_scan_tuples = 100000
AS $$
BEGIN
    IF p_kind = 'entry' THEN
        RETURN QUERY EXECUTE format(
            $indexed$
            WITH near AS MATERIALIZED (
                SELECT e.id, e.embedding OPERATOR(public.<=>) $1 AS distance
                  FROM memvec.%1$I AS e
                 WHERE memvec.in_scope(e.agent_identity, e.person_key, $2, $3, $4, $5)
                   AND ($6 IS NULL OR e.target = $6)
                   AND ($7 IS NULL AND $8 IS NULL
                        OR EXISTS (SELECT FROM memvec.memory_entries AS m
                                    WHERE m.id = e.id
                                      AND ($7 IS NULL OR m.updated_at >= $7) AND ($8 IS NULL OR m.updated_at < $8)))
                 ORDER BY e.embedding OPERATOR(public.<=>) $1
                 LIMIT $9
            )
            SELECT n.id, n.distance FROM near AS n ORDER BY n.distance + 0, n.id DESC
            $indexed$,
            p_space.entry_table
        ) USING p_embedding, p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes,
                p_filter.target, p_filter.since, p_filter.until, p_depth;
    ELSE
        RETURN QUERY EXECUTE format(
            $indexed$
            WITH near AS MATERIALIZED (
                SELECT e.id, e.embedding OPERATOR(public.<=>) $1 AS distance
                  FROM memvec.%1$I AS e
                 WHERE memvec.in_scope(e.agent_identity, e.person_key, $2, $3, $4, $5)
                   AND ($6 IS NULL OR e.session_id = $6)
                   AND ($7 IS NULL OR e.session_id <> $7)
                   AND ($8 IS NULL OR e.ts >= $8)
                   AND ($9 IS NULL OR e.ts < $9)
                 ORDER BY e.embedding OPERATOR(public.<=>) $1
                 LIMIT $10
            )
            SELECT n.id, n.distance FROM near AS n ORDER BY n.distance + 0, n.id DESC
            $indexed$,
            p_space.turn_table
        ) USING p_embedding, p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes,
                p_filter.session_id, p_filter.exclude_session, p_filter.since, p_filter.until, p_depth;
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.vector_indexed IS
'Returns up to p_depth rows of a filter near a vector with their exact cosine distance, nearest first, found through the space''s HNSW index (iterative scan, relaxed order). Where there is no index the same statement compares every row. Internal.';
REVOKE ALL ON FUNCTION memvec.vector_indexed FROM public;
