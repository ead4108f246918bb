-- Everybody who touches the tables of a space reads embedding_spaces first. Locking that table keeps a writer from working with
-- a space that is gone a moment later; the lock is waited for only briefly, because all who recall would wait behind it.
CREATE OR REPLACE FUNCTION memvec.drop_embedding_space(p_space integer)
RETURNS boolean
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
DECLARE
    v_space memvec.embedding_spaces;
    v_vectors bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('memvec spaces', 0));
    LOCK TABLE memvec.embedding_spaces IN ACCESS EXCLUSIVE MODE;
    SELECT * INTO v_space FROM memvec.embedding_spaces AS s WHERE s.id = p_space;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    EXECUTE format(
        'SELECT (SELECT count(*) FROM memvec.%I) + (SELECT count(*) FROM memvec.%I)', v_space.entry_table, v_space.turn_table
    ) INTO v_vectors;
    EXECUTE format('DROP TABLE memvec.%I, memvec.%I', v_space.entry_table, v_space.turn_table);
    DELETE FROM memvec.embedding_spaces AS s WHERE s.id = p_space;
    INSERT INTO memvec.maintenance_log (operation, table_name, rows, parameters)
    VALUES ('drop_embedding_space', 'embedding_spaces', v_vectors,
            jsonb_build_object('space', p_space, 'model', v_space.model, 'dim', v_space.dim));
    RETURN true;
END;
$$;

COMMENT ON FUNCTION memvec.drop_embedding_space IS
'Drops a space with all its vectors and returns whether it existed. Texts stay and are found by words, or by another space. Waits a second at most for those who use it: SQLSTATE 55P03 says to try again.';
REVOKE ALL ON FUNCTION memvec.drop_embedding_space FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.drop_embedding_space TO memvec_admin;
