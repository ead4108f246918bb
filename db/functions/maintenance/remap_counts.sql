CREATE OR REPLACE FUNCTION memvec.remap_counts(
    p_old text, p_new text, p_entries memvec.twin [], p_turns memvec.twin [], p_alias text
)
RETURNS memvec.change []
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_changes memvec.change[] := '{}';
    v_table record;
    v_rows bigint;
    v_merged bigint;
BEGIN
    FOR v_table IN
        SELECT t.name, t.twins
          FROM memvec.embedding_spaces AS s
         CROSS JOIN LATERAL (VALUES (s.entry_table, p_entries), (s.turn_table, p_turns)) AS t (name, twins)
         ORDER BY s.id, t.name
    LOOP
        EXECUTE format('SELECT count(*) FROM memvec.%I WHERE agent_identity = $1', v_table.name) INTO v_rows USING p_old;
        EXECUTE format(
            'SELECT count(*)
               FROM unnest($1) AS t
               JOIN memvec.%1$I AS d ON d.id = t.dropped
               JOIN memvec.%1$I AS k ON k.id = t.kept',
            v_table.name
        ) INTO v_merged USING v_table.twins;
        v_changes := v_changes || ARRAY[ROW(v_table.name, 'moved', v_rows - v_merged, 0),
                                        ROW(v_table.name, 'merged', v_merged, 0)]::memvec.change[];
    END LOOP;
    SELECT count(*) INTO v_rows FROM memvec.memory_entries AS m WHERE m.agent_identity = p_old;
    v_merged := coalesce(cardinality(p_entries), 0);
    v_changes := v_changes || ARRAY[ROW('memory_entries', 'moved', v_rows - v_merged, 0),
                                    ROW('memory_entries', 'merged', v_merged, 0)]::memvec.change[];
    SELECT count(*) INTO v_rows FROM memvec.conversations AS c WHERE c.agent_identity = p_old;
    v_merged := coalesce(cardinality(p_turns), 0);
    v_changes := v_changes || ARRAY[ROW('conversations', 'moved', v_rows - v_merged, 0),
                                    ROW('conversations', 'merged', v_merged, 0)]::memvec.change[];
    RETURN v_changes || ARRAY(
        SELECT ROW(c.table_name, c.action, c.rows, 0)::memvec.change
          FROM (SELECT 1 AS position, 'memory_history' AS table_name, 'moved' AS action, count(*) AS rows
                  FROM memvec.memory_history AS h WHERE h.agent_identity = p_old
                UNION ALL
                SELECT 2, 'memory_agent_edges', 'moved', count(*)
                  FROM memvec.memory_agent_edges AS e WHERE p_old IN (e.parent_identity, e.child_identity)
                UNION ALL
                SELECT 3, 'memory_agents', 'moved', count(*) FROM memvec.memory_agents AS a WHERE a.agent_identity = p_old
                UNION ALL
                SELECT 4, 'role_identities', 'moved', count(*) FROM memvec.role_identities AS r WHERE r.agent_identity = p_old
                UNION ALL
                SELECT 5, 'identity_aliases', 'added', 1 WHERE p_alias IS NOT NULL) AS c
         ORDER BY c.position
    );
END;
$$;

COMMENT ON FUNCTION memvec.remap_counts IS
'Returns what remap does to each table: rows that move, and rows that are merged into one that is there. Internal.';
REVOKE ALL ON FUNCTION memvec.remap_counts FROM public;
