CREATE OR REPLACE FUNCTION memvec.entry_locks(p_ops memvec.batch_op [])
RETURNS TABLE (agent_identity text, person_key uuid, target text)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY
        SELECT o.agent_identity, o.person_key, o.arguments ->> 'target'
          FROM unnest(p_ops) AS o
         WHERE o.agent_identity IS NOT NULL
           AND o.op IN ('add_memory', 'replace_memory', 'remove_memory', 'sync_memories')
        UNION
        SELECT m.agent_identity, m.person_key, m.target
          FROM unnest(p_ops) AS o
          JOIN memvec.entry_sources AS s
            ON s.source = CASE WHEN pg_input_is_valid(o.arguments ->> 'source', 'uuid')
                               THEN (o.arguments ->> 'source')::uuid
                          END
          JOIN memvec.memory_entries AS m ON m.id = s.entry_id
         WHERE o.op = 'sync_memories'
         ORDER BY 1, 2 NULLS FIRST, 3;
END;
$$;

COMMENT ON FUNCTION memvec.entry_locks IS
'Returns the (theme, person, target) whose entries a batch may change, in the order in which everybody locks them. Internal.';
REVOKE ALL ON FUNCTION memvec.entry_locks FROM public;
