-- Whoever reads embedding_spaces keeps drop_embedding_space out until the end of the transaction. A statement that had to wait for a
-- drop looks with a snapshot of before and still sees the row; only the catalogue, which is always of now, says that the space's
-- tables are gone.
CREATE OR REPLACE FUNCTION memvec.checked_space(p_space integer, p_embedding public.halfvec)
RETURNS memvec.embedding_spaces
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_space memvec.embedding_spaces;
BEGIN
    SELECT * INTO v_space FROM memvec.embedding_spaces AS s WHERE s.id = p_space;
    IF NOT FOUND OR to_regclass(format('memvec.%I', v_space.entry_table)) IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV004',
            MESSAGE = format('embedding space %s is unknown', coalesce(p_space::text, 'NULL')),
            HINT = 'memvec.hello returns the space of a model; an administrator adds one with memvec.add_embedding_space.';
    END IF;
    IF p_embedding IS NOT NULL AND public.vector_dims(p_embedding) <> v_space.dim THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV005',
            MESSAGE = format('a vector of %s dimensions does not fit space %s: model %s has %s',
                             public.vector_dims(p_embedding), p_space, v_space.model, v_space.dim),
            HINT = 'Check which model the embedding endpoint serves, and embed_dim.';
    END IF;
    RETURN v_space;
END;
$$;

COMMENT ON FUNCTION memvec.checked_space IS
'Returns an embedding space after checking that it exists and that a vector (NULL for none) has its width. Errors: MV004, MV005. Internal.';
REVOKE ALL ON FUNCTION memvec.checked_space FROM public;
