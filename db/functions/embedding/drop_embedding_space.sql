-- Dropping a table that refers to the rows locks the rows' tables too, against everybody. They are locked in the order in which
-- recalls take them, and waited for only briefly: all who recall would wait behind, and where a writer came in another
-- order this function gives way, before the server looks for a deadlock (deadlock_timeout) and may choose the writer.
-- Everybody who touches the tables of a space reads embedding_spaces first, so that nobody works with one that is gone.
CREATE OR REPLACE FUNCTION memvec.drop_embedding_space(p_space integer)
RETURNS boolean
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms'
AS $$
DECLARE
    v_space memvec.embedding_spaces;
    v_vectors bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('memvec spaces', 0));
    SELECT * INTO v_space FROM memvec.embedding_spaces AS s WHERE s.id = p_space;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    EXECUTE format(
        'SELECT (SELECT count(*) FROM memvec.%I) + (SELECT count(*) FROM memvec.%I)', v_space.entry_table, v_space.turn_table
    ) INTO v_vectors;
    LOCK TABLE memvec.memory_entries, memvec.conversations, memvec.embedding_spaces IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('DROP TABLE memvec.%I, memvec.%I', v_space.entry_table, v_space.turn_table);
    DELETE FROM memvec.embedding_spaces AS s WHERE s.id = p_space;
    INSERT INTO memvec.maintenance_log (operation, table_name, rows, parameters)
    VALUES ('drop_embedding_space', 'embedding_spaces', v_vectors,
            jsonb_build_object('space', p_space, 'model', v_space.model, 'dim', v_space.dim));
    RETURN true;
END;
$$;

COMMENT ON FUNCTION memvec.drop_embedding_space IS
'Drops a space with all its vectors and returns whether it existed. Texts stay and are found by words, or by another space. Waits half a second at most for whoever reads or writes: SQLSTATE 55P03 says to try again.';
REVOKE ALL ON FUNCTION memvec.drop_embedding_space FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.drop_embedding_space TO memvec_admin;
