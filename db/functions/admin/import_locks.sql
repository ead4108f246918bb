CREATE OR REPLACE FUNCTION memvec.import_locks(p_rows jsonb)
RETURNS TABLE (agent_identity text, person_key uuid, target text)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY
        SELECT DISTINCT i.agent_identity, i.person_key, k.target
          FROM (SELECT DISTINCT r.row ->> 'identity' AS identity, r.row ->> 'raw_identity' AS raw_identity,
                       CASE WHEN pg_input_is_valid(r.row ->> 'person', 'uuid') THEN (r.row ->> 'person')::uuid END AS person,
                       CASE WHEN r.row ->> 'kind' = 'entry' THEN r.row ->> 'target' END AS target
                  FROM jsonb_array_elements(p_rows) AS r (row)
                 WHERE jsonb_typeof(r.row -> 'identity') = 'string') AS k
         CROSS JOIN LATERAL memvec.import_identity(k.identity, k.raw_identity, k.person) AS i
         ORDER BY 1, 2 NULLS FIRST, 3 NULLS FIRST;
END;
$$;

COMMENT ON FUNCTION memvec.import_locks IS
'Returns the (theme, person, target) that an import may change, in the order in which everybody locks them; target is NULL where only the theme is locked. Internal.';
REVOKE ALL ON FUNCTION memvec.import_locks FROM public;
