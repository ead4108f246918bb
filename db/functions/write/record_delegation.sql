CREATE OR REPLACE FUNCTION memvec.record_delegation(
    p_identity text,
    p_session_id text,
    p_child_session_id text,
    p_child_identity text DEFAULT NULL,
    p_attrs jsonb DEFAULT '{}',
    p_governance jsonb DEFAULT NULL,
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
    v_who record;
BEGIN
    SELECT * INTO v_who FROM memvec.writing_as(p_identity, p_governance);
    SELECT e.id, e.outcome
      INTO id, outcome
      FROM memvec.put_edge(
          v_who.agent_identity, v_who.person_key, p_session_id, p_child_session_id, p_child_identity, p_attrs
      ) AS e;
END;
$$;

COMMENT ON FUNCTION memvec.record_delegation IS
'Notes that a session of this theme delegated to another session (provenance only, no content is copied) and returns the edge''s id and outcome, added or duplicate. p_child_identity: raw key of the agent delegated to, when known. Errors: MV001 no child session, MV002, MV006, MV008 the theme is under maintenance.';
REVOKE ALL ON FUNCTION memvec.record_delegation FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.record_delegation TO memvec_runtime, memvec_admin;
