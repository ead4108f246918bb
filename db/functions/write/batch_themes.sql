CREATE OR REPLACE FUNCTION memvec.batch_themes(p_ops jsonb)
RETURNS text []
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN ARRAY(
        SELECT a.agent_identity
          FROM (SELECT DISTINCT
                       CASE jsonb_typeof(o.op -> 'identity') WHEN 'string' THEN o.op ->> 'identity' END AS identity,
                       CASE jsonb_typeof(o.op -> 'governance') WHEN 'object' THEN o.op -> 'governance' END AS governance
                  FROM jsonb_array_elements(p_ops) AS o (op)) AS k
         CROSS JOIN LATERAL memvec.governed_identity(k.identity, k.governance) AS a
         WHERE memvec.may_act_as(a.agent_identity)
        UNION
        SELECT m.agent_identity
          FROM jsonb_array_elements(p_ops) AS o (op)
          JOIN memvec.entry_sources AS s
            ON s.source = CASE WHEN pg_input_is_valid(o.op ->> 'source', 'uuid') THEN (o.op ->> 'source')::uuid END
          JOIN memvec.memory_entries AS m ON m.id = s.entry_id
         WHERE o.op ->> 'op' = 'sync_memories'
         ORDER BY 1
    );
END;
$$;

COMMENT ON FUNCTION memvec.batch_themes IS
'Returns the themes that a batch writes to, sorted: those its operations act as, and those where entries of a synchronised home lie. Internal.';
REVOKE ALL ON FUNCTION memvec.batch_themes FROM public;
