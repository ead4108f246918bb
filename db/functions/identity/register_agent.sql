CREATE OR REPLACE FUNCTION memvec.register_agent(
    p_identity text,
    p_attrs jsonb DEFAULT '{}',
    p_governance jsonb DEFAULT NULL,
    OUT agent_identity text,
    OUT kind text,
    OUT first_seen timestamptz,
    OUT last_seen timestamptz
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
    SELECT * INTO v_who FROM memvec.acting_as(p_identity, p_governance);
    -- Attributes describe an agent; a sink is many people, about whom nothing is kept here.
    PERFORM memvec.touch_agent(
        v_who.agent_identity,
        v_who.kind,
        CASE WHEN memvec.is_sink(v_who.agent_identity) THEN '{}' ELSE memvec.as_object(p_attrs) END
    );
    SELECT a.agent_identity, a.kind, a.first_seen, a.last_seen
      INTO agent_identity, kind, first_seen, last_seen
      FROM memvec.memory_agents AS a
     WHERE a.agent_identity = v_who.agent_identity;
END;
$$;

COMMENT ON FUNCTION memvec.register_agent IS
'Registers the theme of a session key with attributes (merged into those it has; none are kept for sinks) and returns its registry row. Errors: MV002.';
REVOKE ALL ON FUNCTION memvec.register_agent FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.register_agent TO memvec_runtime, memvec_admin;
