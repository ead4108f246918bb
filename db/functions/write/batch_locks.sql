CREATE OR REPLACE FUNCTION memvec.batch_locks(p_ops jsonb)
RETURNS TABLE (agent_identity text, person_key uuid, target text)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY
        SELECT a.agent_identity, a.person_key, k.target
          FROM (SELECT DISTINCT
                       CASE jsonb_typeof(o.op -> 'identity') WHEN 'string' THEN o.op ->> 'identity' END AS identity,
                       CASE jsonb_typeof(o.op -> 'governance') WHEN 'object' THEN o.op -> 'governance' END AS governance,
                       CASE WHEN o.op ->> 'op' IN ('add_memory', 'replace_memory', 'remove_memory', 'sync_memories')
                            THEN o.op ->> 'target'
                       END AS target
                  FROM jsonb_array_elements(p_ops) AS o (op)) AS k
         CROSS JOIN LATERAL memvec.governed_identity(k.identity, k.governance) AS a
         WHERE memvec.may_act_as(a.agent_identity)
        UNION
        SELECT m.agent_identity, m.person_key, m.target
          FROM jsonb_array_elements(p_ops) AS o (op)
          JOIN memvec.entry_sources AS s
            ON s.source = CASE WHEN pg_input_is_valid(o.op ->> 'source', 'uuid') THEN (o.op ->> 'source')::uuid END
          JOIN memvec.memory_entries AS m ON m.id = s.entry_id
         WHERE o.op ->> 'op' = 'sync_memories'
         ORDER BY 1, 2 NULLS FIRST, 3 NULLS FIRST;
END;
$$;

COMMENT ON FUNCTION memvec.batch_locks IS
'Returns the (theme, person, target) that a batch may change, in the order in which everybody locks them; target is NULL where only the theme is locked. Besides what its operations act as, that is where entries of a synchronised home lie. Internal.';
REVOKE ALL ON FUNCTION memvec.batch_locks FROM public;
