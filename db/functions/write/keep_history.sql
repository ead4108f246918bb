CREATE OR REPLACE FUNCTION memvec.keep_history(p_id bigint, p_action text)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO memvec.memory_history
           (entry_id, agent_identity, person_key, target, content, created_at, updated_at, metadata, embed, action)
    SELECT m.id, m.agent_identity, m.person_key, m.target, m.content, m.created_at, m.updated_at, m.metadata, m.embed, p_action
      FROM memvec.memory_entries AS m
     WHERE m.id = p_id;
END;
$$;

COMMENT ON FUNCTION memvec.keep_history IS
'Writes an entry as it is now to the history, with the login role and the action. Internal.';
REVOKE ALL ON FUNCTION memvec.keep_history FROM public;
