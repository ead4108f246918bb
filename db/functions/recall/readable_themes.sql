-- What "all" comes down to for this login and host: every ordinary theme (NULL), or those that its bindings, the fleet's
-- allow-list and the host's own leave.
CREATE OR REPLACE FUNCTION memvec.readable_themes(p_governance jsonb)
RETURNS text []
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_bound text[] := memvec.visible_themes();
    v_fleet text[];
    v_host text[];
BEGIN
    SELECT memvec.theme_list(string_to_array(s.value, ',')) || '{default}'::text[]
      INTO v_fleet
      FROM memvec.settings AS s
     WHERE s.name = 'allowed_themes' AND memvec.theme_list(string_to_array(s.value, ',')) IS NOT NULL;
    IF jsonb_typeof(p_governance -> 'allowed_themes') = 'array' THEN
        v_host := memvec.host_themes(p_governance);
        v_host := v_host || CASE WHEN v_host IS NOT NULL THEN '{default}'::text[] END;
    END IF;
    IF v_bound IS NULL AND v_fleet IS NULL AND v_host IS NULL THEN
        RETURN NULL;
    END IF;
    RETURN ARRAY(
        SELECT t.theme
          FROM unnest(coalesce(v_bound, v_fleet, v_host)) AS t (theme)
         WHERE (v_fleet IS NULL OR t.theme = ANY (v_fleet)) AND (v_host IS NULL OR t.theme = ANY (v_host))
    );
END;
$$;

COMMENT ON FUNCTION memvec.readable_themes IS
'Returns the ordinary themes that scope all may read besides the caller''s own rows: NULL for every one, else the intersection of the login role''s bindings, setting allowed_themes and the host''s allowed_themes (default is always in the lists). Internal.';
REVOKE ALL ON FUNCTION memvec.readable_themes FROM public;
