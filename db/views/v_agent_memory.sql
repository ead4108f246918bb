CREATE VIEW memvec.v_agent_memory WITH (security_barrier = true) AS
WITH entries AS (
    SELECT agent_identity, count(*) AS rows FROM memvec.memory_entries GROUP BY agent_identity
),

turns AS (
    SELECT agent_identity, count(*) AS rows FROM memvec.conversations GROUP BY agent_identity
)

SELECT
    agent_identity AS identity,
    coalesce(agents.kind, 'theme') AS kind,
    coalesce(entries.rows, 0) AS memory_rows,
    coalesce(turns.rows, 0) AS conversation_rows,
    agents.first_seen,
    agents.last_seen
FROM memvec.memory_agents AS agents
FULL JOIN entries USING (agent_identity)
FULL JOIN turns USING (agent_identity);

COMMENT ON VIEW memvec.v_agent_memory IS 'The themes with their kind, how many notes and turns each holds, and when it was first and last seen.';
REVOKE ALL ON memvec.v_agent_memory FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT SELECT ON memvec.v_agent_memory TO memvec_admin;
