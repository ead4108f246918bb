-- The first condition is the widest of all, for the index on ts.
CREATE OR REPLACE FUNCTION memvec.expired_turns(p_days integer)
RETURNS TABLE (id bigint, agent_identity text)
LANGUAGE sql
STABLE
BEGIN ATOMIC
    SELECT c.id, c.agent_identity
      FROM memvec.conversations AS c
      LEFT JOIN memvec.memory_agents AS a ON a.agent_identity = c.agent_identity
     WHERE c.ts < now() - make_interval(
               days => least(nullif(p_days, 0), (SELECT min(m.ttl_days) FROM memvec.memory_agents AS m WHERE m.ttl_days > 0))
           )
       AND c.ts < now() - make_interval(days => nullif(coalesce(a.ttl_days, p_days), 0));
END;

COMMENT ON FUNCTION memvec.expired_turns IS
'Returns the turns that are older than their theme''s ttl_days, or than p_days where a theme has none (NULL: kept). A theme with ttl_days 0 keeps all. Internal.';
REVOKE ALL ON FUNCTION memvec.expired_turns FROM public;
