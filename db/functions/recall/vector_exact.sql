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
    IF p_kind = 'entry' THEN
        RETURN QUERY EXECUTE format(
            $exact$
            WITH filtered AS MATERIALIZED (
                SELECT e.id, e.embedding OPERATOR(public.<=>) $1 AS distance
                  FROM memvec.%1$I AS e
                 WHERE memvec.in_scope(e.agent_identity, e.person_key, $2, $3, $4, $5)
                   AND ($6 IS NULL OR e.target = $6)
                   AND ($7 IS NULL AND $8 IS NULL
                        OR EXISTS (SELECT FROM memvec.memory_entries AS m
                                    WHERE m.id = e.id
                                      AND ($7 IS NULL OR m.updated_at >= $7) AND ($8 IS NULL OR m.updated_at < $8)))
            )
            SELECT f.id, f.distance FROM filtered AS f ORDER BY f.distance, f.id DESC LIMIT $9
            $exact$,
            p_space.entry_table
        ) USING p_embedding, p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes,
                p_filter.target, p_filter.since, p_filter.until, p_depth;
    ELSE
        RETURN QUERY EXECUTE format(
            $exact$
            WITH filtered AS MATERIALIZED (
                SELECT e.id, e.embedding OPERATOR(public.<=>) $1 AS distance
                  FROM memvec.%1$I AS e
                 WHERE memvec.in_scope(e.agent_identity, e.person_key, $2, $3, $4, $5)
                   AND ($6 IS NULL OR e.session_id = $6)
                   AND ($7 IS NULL OR e.session_id <> $7)
                   AND ($8 IS NULL OR e.ts >= $8)
                   AND ($9 IS NULL OR e.ts < $9)
            )
            SELECT f.id, f.distance FROM filtered AS f ORDER BY f.distance, f.id DESC LIMIT $10
            $exact$,
            p_space.turn_table
        ) USING p_embedding, p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes,
                p_filter.session_id, p_filter.exclude_session, p_filter.since, p_filter.until, p_depth;
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.vector_exact IS
'Returns the p_depth rows of a filter nearest to a vector with their cosine distance, by comparing every row of the filter. Internal.';
REVOKE ALL ON FUNCTION memvec.vector_exact FROM public;
