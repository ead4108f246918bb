CREATE OR REPLACE FUNCTION memvec.drop_embedding_space(p_space integer)
RETURNS boolean
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_space memvec.embedding_spaces;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('memvec spaces', 0));
    SELECT * INTO v_space FROM memvec.embedding_spaces AS s WHERE s.id = p_space;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    EXECUTE format('DROP TABLE memvec.%I, memvec.%I', v_space.entry_table, v_space.turn_table);
    DELETE FROM memvec.embedding_spaces AS s WHERE s.id = p_space;
    INSERT INTO memvec.maintenance_log (operation, table_name, parameters)
    VALUES ('drop_embedding_space', 'embedding_spaces',
            jsonb_build_object('space', p_space, 'model', v_space.model, 'dim', v_space.dim));
    RETURN true;
END;
$$;

COMMENT ON FUNCTION memvec.drop_embedding_space IS
'Drops a space with all its vectors and returns whether it existed. Texts stay and are found by words, or by another space.';
REVOKE ALL ON FUNCTION memvec.drop_embedding_space FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.drop_embedding_space TO memvec_admin;
