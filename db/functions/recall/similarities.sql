CREATE OR REPLACE FUNCTION memvec.similarities(p_kind text, p_space integer, p_embedding public.halfvec, p_ids bigint [])
RETURNS TABLE (id bigint, similarity real)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_space memvec.embedding_spaces;
BEGIN
    IF p_embedding IS NULL OR public.l2_norm(p_embedding) = 0 THEN
        RETURN;
    END IF;
    v_space := memvec.checked_space(p_space, p_embedding);
    RETURN QUERY EXECUTE format(
        'SELECT e.id, (1 - (e.embedding OPERATOR(public.<=>) $1))::real FROM memvec.%I AS e WHERE e.id = ANY ($2)',
        CASE WHEN p_kind = 'entry' THEN v_space.entry_table ELSE v_space.turn_table END
    ) USING p_embedding, p_ids;
END;
$$;

COMMENT ON FUNCTION memvec.similarities IS
'Returns the cosine similarity to a vector of those rows among p_ids that have a vector in the space. The caller has checked that they may be seen. Errors: MV004, MV005. Internal.';
REVOKE ALL ON FUNCTION memvec.similarities FROM public;
