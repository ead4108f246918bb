CREATE OR REPLACE FUNCTION memvec.scope_counts(p_themes text [], p_persons uuid [], p_deep boolean)
RETURNS TABLE (table_name text, rows bigint)
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_table record;
    v_hashes bytea[];
BEGIN
    FOR v_table IN
        SELECT t.name
          FROM memvec.embedding_spaces AS s
         CROSS JOIN LATERAL (VALUES (s.entry_table), (s.turn_table)) AS t (name)
         ORDER BY s.id, t.name
    LOOP
        table_name := v_table.name;
        EXECUTE format('SELECT count(*) FROM memvec.%I WHERE person_key = ANY ($2) OR agent_identity = ANY ($1)', v_table.name)
           INTO rows USING p_themes, p_persons;
        RETURN NEXT;
    END LOOP;
    RETURN QUERY
        SELECT 'embedding_work',
               (SELECT count(*)
                  FROM memvec.embedding_work AS w
                  JOIN memvec.memory_entries AS m ON m.id = w.row_id
                 WHERE w.kind = 'entry' AND (m.person_key = ANY (p_persons) OR m.agent_identity = ANY (p_themes)))
               + (SELECT count(*)
                    FROM memvec.embedding_work AS w
                    JOIN memvec.conversations AS c ON c.id = w.row_id
                   WHERE w.kind = 'turn' AND (c.person_key = ANY (p_persons) OR c.agent_identity = ANY (p_themes)))
        UNION ALL
        SELECT 'entry_sources', count(*)
          FROM memvec.entry_sources AS s
          JOIN memvec.memory_entries AS m ON m.id = s.entry_id
         WHERE m.person_key = ANY (p_persons) OR m.agent_identity = ANY (p_themes)
        UNION ALL
        SELECT 'memory_entries', count(*)
          FROM memvec.memory_entries AS m WHERE m.person_key = ANY (p_persons) OR m.agent_identity = ANY (p_themes)
        UNION ALL
        SELECT 'conversations', count(*)
          FROM memvec.conversations AS c WHERE c.person_key = ANY (p_persons) OR c.agent_identity = ANY (p_themes);
    IF NOT p_deep THEN
        RETURN;
    END IF;

    SELECT array_agg(r.content_hash) INTO v_hashes
      FROM (SELECT memvec.vector_hash(m.content_hash, m.person_key) AS content_hash
              FROM memvec.memory_entries AS m WHERE m.person_key = ANY (p_persons) OR m.agent_identity = ANY (p_themes)
            UNION
            SELECT memvec.vector_hash(c.content_hash, c.person_key)
              FROM memvec.conversations AS c WHERE c.person_key = ANY (p_persons) OR c.agent_identity = ANY (p_themes)
            UNION
            SELECT memvec.vector_hash(memvec.content_hash(h.content), h.person_key)
              FROM memvec.memory_history AS h WHERE h.person_key = ANY (p_persons) OR h.agent_identity = ANY (p_themes)) AS r;
    RETURN QUERY
        SELECT 'applied_ops', memvec.forget_results(v_hashes, true)
        UNION ALL
        SELECT 'memory_history', count(*)
          FROM memvec.memory_history AS h WHERE h.person_key = ANY (p_persons) OR h.agent_identity = ANY (p_themes)
        UNION ALL
        SELECT 'memory_agent_edges', count(*) FROM memvec.scope_edges(p_themes, p_persons) AS e
        UNION ALL
        SELECT 'memory_agents', count(*) FROM memvec.memory_agents AS a WHERE a.agent_identity = ANY (p_themes)
        UNION ALL
        SELECT 'theme_counts', count(*) FROM memvec.theme_counts AS t WHERE t.agent_identity = ANY (p_themes)
        UNION ALL
        SELECT 'identity_aliases', count(*) FROM memvec.person_aliases(p_persons) AS a;
END;
$$;

COMMENT ON FUNCTION memvec.scope_counts IS
'Returns how many rows of each table belong to whole themes or to a person (by each of their keys), with p_deep also in history, edges, registry, counts, and in the results of applied operations. Internal.';
REVOKE ALL ON FUNCTION memvec.scope_counts FROM public;
