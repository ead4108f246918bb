CREATE OR REPLACE FUNCTION memvec.retire_entry(p_id bigint, p_action text)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM memvec.keep_history(p_id, p_action);
    DELETE FROM memvec.memory_entries AS m WHERE m.id = p_id;
END;
$$;

COMMENT ON FUNCTION memvec.retire_entry IS
'Deletes an entry after writing it to the history with the action replace, remove or reconcile. Internal.';
REVOKE ALL ON FUNCTION memvec.retire_entry FROM public;
