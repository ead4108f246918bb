CREATE OR REPLACE FUNCTION memvec.scope_edges(p_themes text [], p_persons uuid [])
RETURNS TABLE (id bigint)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY
        SELECT e.id
          FROM memvec.memory_agent_edges AS e
         WHERE e.parent_person = ANY (p_persons)
            OR e.parent_identity = ANY (p_themes)
            OR e.child_identity = ANY (p_themes)
            OR EXISTS (SELECT FROM memvec.conversations AS c
                        WHERE c.person_key = ANY (p_persons) AND c.agent_identity = e.child_identity AND c.session_id = e.child_session_id)
         ORDER BY e.id;
END;
$$;

COMMENT ON FUNCTION memvec.scope_edges IS
'Returns the edges of whole themes, or those from and to a person''s sessions. Internal.';
REVOKE ALL ON FUNCTION memvec.scope_edges FROM public;
