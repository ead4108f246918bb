-- The vectors of a space that pass a filter, as the text of a query over $1 to $10 in the order of the filter's fields; both
-- ways of searching wrap it. The tables' names are the only thing written into it, and it says no more than the filter asks:
-- it is planned for every question.
CREATE OR REPLACE FUNCTION memvec.vector_candidates(
    p_kind text,
    p_space memvec.embedding_spaces,
    p_filter memvec.recall_filter
)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_query text := 'FROM memvec.%I AS e WHERE memvec.in_scope(e.agent_identity, e.person_key, $2, $3, $4, $5)';
BEGIN
    IF p_kind = 'entry' THEN
        v_query := format(v_query, p_space.entry_table);
        IF p_filter.target IS NOT NULL THEN
            v_query := v_query || ' AND e.target = $6';
        END IF;
        IF p_filter.since IS NOT NULL OR p_filter.until IS NOT NULL THEN
            v_query := v_query || ' AND EXISTS (SELECT FROM memvec.memory_entries AS m
                                                 WHERE m.id = e.id
                                                   AND m.updated_at >= coalesce($9, ''-infinity'')
                                                   AND m.updated_at < coalesce($10, ''infinity''))';
        END IF;
        RETURN v_query;
    END IF;
    v_query := format(v_query, p_space.turn_table);
    IF p_filter.session_id IS NOT NULL THEN
        v_query := v_query || ' AND e.session_id = $7';
    END IF;
    IF p_filter.exclude_session IS NOT NULL THEN
        v_query := v_query || ' AND e.session_id <> $8';
    END IF;
    IF p_filter.since IS NOT NULL THEN
        v_query := v_query || ' AND e.ts >= $9';
    END IF;
    IF p_filter.until IS NOT NULL THEN
        v_query := v_query || ' AND e.ts < $10';
    END IF;
    RETURN v_query;
END;
$$;

COMMENT ON FUNCTION memvec.vector_candidates IS
'Returns the FROM and WHERE of a query for the entries or turns e with a vector that pass a recall_filter. Its parameters: $1 the question''s vector; $2 own, $3 person_key, $4 others, $5 themes, $6 target, $7 session_id, $8 exclude_session, $9 since, $10 until of the filter. Internal.';
REVOKE ALL ON FUNCTION memvec.vector_candidates FROM public;
