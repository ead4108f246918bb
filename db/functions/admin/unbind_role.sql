CREATE OR REPLACE FUNCTION memvec.unbind_role(p_role text, p_identity text DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_theme text := (memvec.canonical_identity(p_identity)).agent_identity;
    v_unbound bigint;
BEGIN
    DELETE FROM memvec.role_identities AS r
     WHERE r.role_name = p_role
       AND (p_identity IS NULL OR r.agent_identity = v_theme);
    GET DIAGNOSTICS v_unbound = ROW_COUNT;
    INSERT INTO memvec.maintenance_log (operation, table_name, rows, parameters)
    VALUES ('unbind_role', 'role_identities', v_unbound, jsonb_build_object('role', p_role, 'theme', v_theme));
    RETURN v_unbound;
END;
$$;

COMMENT ON FUNCTION memvec.unbind_role IS
'Loosens a login role from a theme, or from all with p_identity NULL, and returns how many bindings are gone. A role without any binding may act as every theme, unless setting require_binding is on.';
REVOKE ALL ON FUNCTION memvec.unbind_role FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.unbind_role TO memvec_admin;
