CREATE OR REPLACE FUNCTION memvec.renew_samples()
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_table name;
    v_empty boolean;
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
        -- Where it finds no row, ANALYZE leaves the old samples.
        EXECUTE format('SELECT NOT EXISTS (SELECT FROM memvec.%I)', v_table) INTO v_empty;
        IF v_empty AND to_regproc('pg_catalog.pg_clear_attribute_stats') IS NOT NULL THEN
            EXECUTE
                'SELECT pg_clear_attribute_stats(''memvec'', c.relname, a.attname, false)
                   FROM pg_class AS c
                   JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                  WHERE c.oid = $1 OR c.oid IN (SELECT i.indexrelid FROM pg_index AS i WHERE i.indrelid = $1)'
                USING format('memvec.%I', v_table)::regclass;
        END IF;
    END LOOP;
END;
$$;

COMMENT ON FUNCTION memvec.renew_samples IS
'Renews the planner''s statistics of the tables that hold memory, so that they keep no sample of what was erased; a table under VACUUM or an index build is left for autovacuum. Before PostgreSQL 18 a table that is empty now keeps its samples until it is analysed with rows in it. Internal.';
REVOKE ALL ON FUNCTION memvec.renew_samples FROM public;
