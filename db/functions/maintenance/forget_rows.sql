-- Entries and turns with everything that hangs on them. What is deleted is counted by the same condition just before, under the
-- rows' locks, so that a dry run tells exactly what the real one does.
CREATE OR REPLACE FUNCTION memvec.forget_rows(p_entries bigint [], p_turns bigint [], p_traces boolean, p_dry_run boolean)
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
    IF NOT p_dry_run THEN
        PERFORM memvec.hold_rows(p_entries, p_turns);
    END IF;

    FOR v_table IN
        SELECT t.name, t.ids
          FROM memvec.embedding_spaces AS s
         CROSS JOIN LATERAL (VALUES (s.entry_table, p_entries), (s.turn_table, p_turns)) AS t (name, ids)
         WHERE cardinality(t.ids) > 0
         ORDER BY s.id, t.name
    LOOP
        table_name := v_table.name;
        EXECUTE format('SELECT count(*) FROM memvec.%I WHERE id = ANY ($1)', v_table.name) INTO rows USING v_table.ids;
        IF rows > 0 AND NOT p_dry_run THEN
            EXECUTE format('DELETE FROM memvec.%I WHERE id = ANY ($1)', v_table.name) USING v_table.ids;
        END IF;
        RETURN NEXT;
    END LOOP;

    table_name := 'embedding_work';
    SELECT count(*) INTO rows
      FROM memvec.embedding_work AS w
     WHERE w.kind = 'entry' AND w.row_id = ANY (p_entries) OR w.kind = 'turn' AND w.row_id = ANY (p_turns);
    IF rows > 0 AND NOT p_dry_run THEN
        DELETE FROM memvec.embedding_work AS w
         WHERE w.kind = 'entry' AND w.row_id = ANY (p_entries) OR w.kind = 'turn' AND w.row_id = ANY (p_turns);
    END IF;
    RETURN NEXT;

    IF p_traces THEN
        SELECT array_agg(r.content_hash) INTO v_hashes
          FROM (SELECT memvec.vector_hash(m.content_hash, m.person_key) AS content_hash
                  FROM memvec.memory_entries AS m WHERE m.id = ANY (p_entries)
                UNION
                SELECT memvec.vector_hash(c.content_hash, c.person_key)
                  FROM memvec.conversations AS c WHERE c.id = ANY (p_turns)) AS r;
        RETURN QUERY SELECT 'applied_ops', memvec.forget_results(v_hashes, p_dry_run);
    END IF;

    table_name := 'entry_sources';
    SELECT count(*) INTO rows FROM memvec.entry_sources AS s WHERE s.entry_id = ANY (p_entries);
    RETURN NEXT;

    table_name := 'memory_entries';
    SELECT count(*) INTO rows FROM memvec.memory_entries AS m WHERE m.id = ANY (p_entries);
    IF NOT p_dry_run THEN
        DELETE FROM memvec.memory_entries AS m WHERE m.id = ANY (p_entries);
    END IF;
    RETURN NEXT;

    table_name := 'conversations';
    SELECT count(*) INTO rows FROM memvec.conversations AS c WHERE c.id = ANY (p_turns);
    IF NOT p_dry_run THEN
        DELETE FROM memvec.conversations AS c WHERE c.id = ANY (p_turns);
    END IF;
    RETURN NEXT;
END;
$$;

COMMENT ON FUNCTION memvec.forget_rows IS
'Deletes entries and turns with their vectors in every space, their embedding work and sources, and returns the rows of each table; a dry run only counts. p_traces: the results of their operations in applied_ops as well (see forget_results). Internal.';
REVOKE ALL ON FUNCTION memvec.forget_rows FROM public;
