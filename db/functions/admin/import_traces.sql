CREATE OR REPLACE FUNCTION memvec.import_traces(p_rows memvec.import_row [])
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO memvec.entry_sources (entry_id, source)
    SELECT DISTINCT r.row_id, s.source::uuid
      FROM unnest(p_rows) AS r
     CROSS JOIN LATERAL jsonb_array_elements_text(r.arguments -> 'sources') AS s (source)
     WHERE r.kind = 'entry' AND r.arguments ? 'sources'
    ON CONFLICT DO NOTHING;
    INSERT INTO memvec.memory_agents (agent_identity, kind, sink, first_seen, last_seen)
    SELECT t.agent_identity, memvec.classify_key(t.agent_identity), memvec.is_sink(t.agent_identity), min(t.moment), max(t.moment)
      FROM (SELECT r.agent_identity,
                   memvec.import_moment(coalesce(r.arguments ->> 'created_at', r.arguments ->> 'ts'), now()) AS moment
              FROM unnest(p_rows) AS r
             WHERE r.outcome = 'added' AND r.kind IN ('entry', 'turn')) AS t
     GROUP BY t.agent_identity
     ORDER BY 1
    ON CONFLICT DO NOTHING;
END;
$$;

COMMENT ON FUNCTION memvec.import_traces IS
'Notes which homes'' files hold imported entries, and registers the themes of imported rows that are not registered yet. Internal.';
REVOKE ALL ON FUNCTION memvec.import_traces FROM public;
