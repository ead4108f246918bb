CREATE OR REPLACE FUNCTION memvec.find_imported(p_rows memvec.import_row [], p_hashes bytea [])
RETURNS memvec.import_row []
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    RETURN (
        SELECT array_agg(
                   ROW(r.ordinal, r.kind, r.agent_identity, r.person_key, r.reason, r.arguments,
                       coalesce(
                           r.outcome,
                           CASE WHEN r.id IS NULL AND r.nth = 1 THEN 'added' ELSE 'duplicate' END
                       ),
                       r.id, NULL)::memvec.import_row
                   ORDER BY r.ordinal
               )
          FROM (SELECT g.*, m.id,
                       row_number() OVER (
                           PARTITION BY g.agent_identity, g.person_key, g.arguments ->> 'target', g.content_hash
                           ORDER BY g.ordinal
                       ) AS nth
                  FROM unnest(p_rows, p_hashes) AS g (
                           ordinal, kind, agent_identity, person_key, reason, arguments, outcome, row_id, message, content_hash
                       )
                  LEFT JOIN memvec.memory_entries AS m
                    ON m.agent_identity = g.agent_identity
                   AND m.content_hash = g.content_hash
                   AND m.target = g.arguments ->> 'target'
                   AND m.person_key IS NOT DISTINCT FROM g.person_key) AS r
    );
END;
$$;

COMMENT ON FUNCTION memvec.find_imported IS
'Returns entries of an import with the ids of those that are stored; one without an outcome is a duplicate if it is stored or comes twice, else to be added. Internal.';
REVOKE ALL ON FUNCTION memvec.find_imported FROM public;
