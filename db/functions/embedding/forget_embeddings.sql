CREATE OR REPLACE FUNCTION memvec.forget_embeddings(p_kind text, p_id bigint)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_space memvec.embedding_spaces;
BEGIN
    FOR v_space IN SELECT * FROM memvec.embedding_spaces LOOP
        EXECUTE format(
            'DELETE FROM memvec.%I WHERE id = $1',
            CASE WHEN p_kind = 'entry' THEN v_space.entry_table ELSE v_space.turn_table END
        ) USING p_id;
    END LOOP;
    DELETE FROM memvec.embedding_work AS w WHERE w.kind = p_kind AND w.row_id = p_id;
END;
$$;

COMMENT ON FUNCTION memvec.forget_embeddings IS
'Deletes the vectors of a row in every space, because its text is about to change. Internal.';
REVOKE ALL ON FUNCTION memvec.forget_embeddings FROM public;
