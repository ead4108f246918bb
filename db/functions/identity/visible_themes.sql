CREATE OR REPLACE FUNCTION memvec.visible_themes()
RETURNS text []
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- A role without a binding may act as default exactly when it may act as any.
    RETURN (
        SELECT CASE WHEN bool_or(r.read_all) THEN NULL
                    WHEN count(*) = 0 AND NOT memvec.may_act_as('default') THEN '{}'
                    ELSE array_agg(r.agent_identity)
               END
          FROM memvec.role_identities AS r
         WHERE r.role_name = session_user
    );
END;
$$;

COMMENT ON FUNCTION memvec.visible_themes IS
'Returns the themes that the login role may read or be told about: its own for a bound role, none where binding is required and missing; NULL = every theme. Internal.';
REVOKE ALL ON FUNCTION memvec.visible_themes FROM public;
