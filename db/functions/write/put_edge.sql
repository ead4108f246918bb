CREATE OR REPLACE FUNCTION memvec.put_edge(
    p_agent_identity text,
    p_person_key uuid,
    p_session_id text,
    p_child_session_id text,
    p_child_identity text,
    p_attrs jsonb,
    OUT id bigint,
    OUT outcome text
)
RETURNS record
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_session text := coalesce(memvec.clean_session(p_session_id), 'default');
    v_child_session text := memvec.clean_session(p_child_session_id);
    v_child text;
BEGIN
    IF v_child_session IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = 'a delegation needs the session it went to',
            HINT = 'Give p_child_session_id.';
    END IF;
    IF memvec.blankless(p_child_identity) IS NOT NULL THEN
        v_child := (memvec.canonical_identity(p_child_identity)).agent_identity;
    END IF;
    outcome := 'added';
    INSERT INTO memvec.memory_agent_edges AS e
           (parent_identity, parent_person, child_identity, parent_session_id, child_session_id, attrs)
    VALUES (p_agent_identity, p_person_key, v_child, v_session, v_child_session, memvec.as_object(p_attrs))
    ON CONFLICT (parent_identity, parent_person, parent_session_id, child_session_id) DO NOTHING
    RETURNING e.id INTO id;
    IF id IS NULL THEN
        outcome := 'duplicate';
        SELECT e.id INTO STRICT id
          FROM memvec.memory_agent_edges AS e
         WHERE e.parent_identity = p_agent_identity
           AND e.parent_person IS NOT DISTINCT FROM p_person_key
           AND e.parent_session_id = v_session
           AND e.child_session_id = v_child_session;
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.put_edge IS
'Stores once that a session delegated to another, and returns the edge; see record_delegation. Errors: MV001 no child session. Internal.';
REVOKE ALL ON FUNCTION memvec.put_edge FROM public;
