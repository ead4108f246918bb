-- The vectors of a space that pass a filter, as the text of a query over $1 to $10 in the order of the filter's fields; both
-- ways of searching wrap it. The tables' names are the only thing written into it.
CREATE OR REPLACE FUNCTION memvec.vector_candidates(p_kind text, p_space memvec.embedding_spaces)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF p_kind = 'entry' THEN
        RETURN format(
            'SELECT e.id, e.embedding OPERATOR(public.<=>) $1 AS distance
               FROM memvec.%I AS e
              WHERE memvec.in_scope(e.agent_identity, e.person_key, $2, $3, $4, $5)
                AND ($6 IS NULL OR e.target = $6)
                AND ($9 IS NULL AND $10 IS NULL
                     OR EXISTS (SELECT FROM memvec.memory_entries AS m
                                 WHERE m.id = e.id
                                   AND ($9 IS NULL OR m.updated_at >= $9) AND ($10 IS NULL OR m.updated_at < $10)))',
            p_space.entry_table
        );
    END IF;
    RETURN format(
        'SELECT e.id, e.embedding OPERATOR(public.<=>) $1 AS distance
           FROM memvec.%I AS e
          WHERE memvec.in_scope(e.agent_identity, e.person_key, $2, $3, $4, $5)
            AND ($7 IS NULL OR e.session_id = $7)
            AND ($8 IS NULL OR e.session_id <> $8)
            AND ($9 IS NULL OR e.ts >= $9)
            AND ($10 IS NULL OR e.ts < $10)',
        p_space.turn_table
    );
END;
$$;

COMMENT ON FUNCTION memvec.vector_candidates IS
'Returns the query for the entries or turns with a vector that pass a recall_filter: row id and cosine distance. Its parameters: $1 the question''s vector; $2 own, $3 person_key, $4 others, $5 themes, $6 target, $7 session_id, $8 exclude_session, $9 since, $10 until of the filter. Internal.';
REVOKE ALL ON FUNCTION memvec.vector_candidates FROM public;
