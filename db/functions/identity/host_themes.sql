-- A theme that the fleet has renamed is still the one that the host's list means.
CREATE OR REPLACE FUNCTION memvec.host_themes(p_governance jsonb)
RETURNS text []
LANGUAGE plpgsql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_themes text[] := memvec.theme_list(ARRAY(SELECT jsonb_array_elements_text(p_governance -> 'allowed_themes')));
BEGIN
    IF v_themes IS NULL THEN
        RETURN NULL;
    END IF;
    RETURN v_themes || ARRAY(
        SELECT memvec.bounded_name(memvec.clean_key(a.agent_identity))
          FROM memvec.identity_aliases AS a
         WHERE memvec.bounded_name(a.alias) = ANY (v_themes)
    );
END;
$$;

COMMENT ON FUNCTION memvec.host_themes IS
'Returns the themes of a host''s allowed_themes (an array), with the new names of those that were renamed; NULL when the list is empty, which allows all. Internal.';
REVOKE ALL ON FUNCTION memvec.host_themes FROM public;
