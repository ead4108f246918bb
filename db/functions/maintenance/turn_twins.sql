CREATE OR REPLACE FUNCTION memvec.turn_twins(p_old text, p_new text, p_person uuid)
RETURNS memvec.twin []
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
BEGIN
    RETURN (
        SELECT array_agg(ROW(o.id, n.id)::memvec.twin ORDER BY n.id)
          FROM memvec.conversations AS o
          JOIN memvec.conversations AS n
            ON n.agent_identity = p_new AND n.session_id = o.session_id AND n.content_hash = o.content_hash AND n.role = o.role
           AND n.person_key IS NOT DISTINCT FROM coalesce(p_person, o.person_key)
         WHERE o.agent_identity = p_old
    );
END;
$$;

COMMENT ON FUNCTION memvec.turn_twins IS
'Returns the turns of a theme that another theme holds already (for the person to whom they would go). Internal.';
REVOKE ALL ON FUNCTION memvec.turn_twins FROM public;
