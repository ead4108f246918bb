CREATE OR REPLACE FUNCTION memvec.entry_twins(p_old text, p_new text, p_person uuid)
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
          FROM memvec.memory_entries AS o
          JOIN memvec.memory_entries AS n
            ON n.agent_identity = p_new AND n.content_hash = o.content_hash AND n.target = o.target
           AND n.person_key IS NOT DISTINCT FROM coalesce(p_person, o.person_key)
         WHERE o.agent_identity = p_old
    );
END;
$$;

COMMENT ON FUNCTION memvec.entry_twins IS
'Returns the entries of a theme that another theme holds already (for the person to whom they would go). Internal.';
REVOKE ALL ON FUNCTION memvec.entry_twins FROM public;
