CREATE OR REPLACE FUNCTION memvec.may_act_as(p_agent_identity text)
RETURNS boolean
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM memvec.role_identities AS r WHERE r.role_name = session_user) THEN
        RETURN EXISTS (
            SELECT FROM memvec.role_identities AS r
             WHERE r.role_name = session_user AND r.agent_identity = p_agent_identity
        );
    END IF;
    -- Bindings go by name, which a dump carries to another server. A role that was bound under a name that is gone by now was
    -- renamed: it must not be free to act as everybody for that.
    IF EXISTS (
        SELECT FROM memvec.role_identities AS r
          JOIN pg_roles AS s ON s.oid = r.role_oid
         WHERE s.rolname = session_user
           AND NOT EXISTS (SELECT FROM pg_roles AS n WHERE n.rolname = r.role_name)
    ) THEN
        RETURN false;
    END IF;
    RETURN memvec.setting('require_binding') <> 'true' OR pg_has_role(session_user, 'memvec_admin', 'MEMBER');
END;
$$;

COMMENT ON FUNCTION memvec.may_act_as IS
'Returns whether the login role may act as a theme: a bound role only as its themes, an unbound one as any unless require_binding is on, one that was renamed since it was bound as none until it is bound again. Decided on session_user, which neither SET ROLE nor a definer function changes. Internal.';
REVOKE ALL ON FUNCTION memvec.may_act_as FROM public;
