CREATE OR REPLACE FUNCTION memvec.acting_as(
    p_identity text,
    p_governance jsonb DEFAULT NULL,
    OUT agent_identity text,
    OUT person_key uuid,
    OUT kind text
)
RETURNS record
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    SELECT g.agent_identity, g.person_key, g.kind
      INTO agent_identity, person_key, kind
      FROM memvec.governed_identity(p_identity, p_governance) AS g;
    IF NOT memvec.may_act_as(agent_identity) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV002',
            MESSAGE = format('login role %I may not act as theme "%s"', session_user, agent_identity),
            HINT = format('An administrator can allow it: SELECT memvec.bind_role(%L, %L);', session_user, agent_identity);
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.acting_as IS
'Returns the theme and person that the caller acts as with a raw session key. Errors: MV002 the login role is bound to other themes, or binding is required. Internal.';
REVOKE ALL ON FUNCTION memvec.acting_as FROM public;
