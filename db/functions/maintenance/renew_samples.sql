CREATE OR REPLACE FUNCTION memvec.renew_samples()
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_table name;
BEGIN
    FOR v_table IN
        SELECT t.name
          FROM unnest('{memory_entries,conversations,memory_history,memory_agent_edges,memory_agents,applied_ops,identity_aliases,term_statistics,theme_counts}'::name[]) AS t (name)
        UNION ALL
        SELECT t.name
          FROM memvec.embedding_spaces AS s
         CROSS JOIN LATERAL (VALUES (s.entry_table), (s.turn_table)) AS t (name)
    LOOP
        EXECUTE format('ANALYZE (SKIP_LOCKED) memvec.%I', v_table);
    END LOOP;
END;
$$;

COMMENT ON FUNCTION memvec.renew_samples IS
'Renews the planner''s statistics of the tables that hold memory, so that they keep no sample of what was erased; a table under VACUUM or an index build is left for autovacuum. Internal.';
REVOKE ALL ON FUNCTION memvec.renew_samples FROM public;
