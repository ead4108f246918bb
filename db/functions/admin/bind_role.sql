CREATE OR REPLACE FUNCTION memvec.bind_role(p_role text, p_identity text, p_read_all boolean DEFAULT false)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_bound record;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = p_role) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('there is no role "%s"', p_role),
            HINT = format('CREATE ROLE %I LOGIN IN ROLE memvec_runtime;', coalesce(memvec.blankless(p_role), 'hermes'));
    END IF;
    IF memvec.clean_key(p_identity) IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = 'a role is bound to a named theme, not to a blank one',
            HINT = format('For example: SELECT memvec.bind_role(%L, ''marketing'');', p_role);
    END IF;
    SELECT * INTO v_bound FROM memvec.canonical_identity(p_identity);
    IF v_bound.reason IN ('not-in-allowlist', 'bench-reject') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('"%s" is not an allowed theme, its key would act as "%s"', left(p_identity, 80), v_bound.agent_identity),
            HINT = 'Allow it first, with memvec.set_setting: see the settings allowed_themes and bench_mode.';
    END IF;
    INSERT INTO memvec.role_identities AS r (role_name, role_oid, agent_identity, read_all)
    SELECT g.rolname, g.oid, v_bound.agent_identity, coalesce(p_read_all, false) FROM pg_roles AS g WHERE g.rolname = p_role
    ON CONFLICT (role_name, agent_identity) DO UPDATE SET role_oid = excluded.role_oid, read_all = excluded.read_all;
    INSERT INTO memvec.maintenance_log (operation, table_name, rows, parameters)
    VALUES ('bind_role', 'role_identities', 1,
            jsonb_build_object('role', p_role, 'theme', v_bound.agent_identity, 'read_all', coalesce(p_read_all, false)));
END;
$$;

COMMENT ON FUNCTION memvec.bind_role IS
'Ties a login role to a theme (call it again for more themes). From then on the role acts only as its themes, and scope all and named scopes are limited to them, unless p_read_all. A binding goes by the role''s name: a role that is renamed afterwards acts as no theme until it is bound again under its new name. Errors: MV001 unknown role, or a theme that is blank or not allowed.';
REVOKE ALL ON FUNCTION memvec.bind_role FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.bind_role TO memvec_admin;
