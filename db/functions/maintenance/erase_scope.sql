-- The one way in which rows of a person or of whole themes are deleted. Edges go before the turns by which they are found; what is
-- not a row of the memory itself (registry, counts, aliases) goes with the last of them.
CREATE OR REPLACE FUNCTION memvec.erase_scope(
    p_operation text,
    p_themes text [],
    p_persons uuid [],
    p_deep boolean,
    p_dry_run boolean,
    p_limit integer,
    p_parameters jsonb
)
RETURNS SETOF memvec.change
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_left bigint := memvec.checked_limit(p_limit);
    v_before jsonb;
    v_after jsonb;
    v_edges bigint[] := '{}';
    v_history bigint[] := '{}';
    v_entries bigint[];
    v_turns bigint[];
    v_all bigint := 0;
    v_last boolean;
    v_rows jsonb := '{}';
    v_changes memvec.change[];
BEGIN
    IF NOT p_dry_run THEN
        PERFORM memvec.hold_themes(
            p_themes || CASE WHEN p_persons IS NOT NULL THEN '{whatsapp-dm,external-group}'::text[] ELSE '{}' END,
            p_alone => p_deep
        );
    END IF;
    SELECT jsonb_object_agg(c.table_name, c.rows) INTO v_before FROM memvec.scope_counts(p_themes, p_persons, p_deep) AS c;

    IF p_deep THEN
        SELECT coalesce(array_agg(e.id), '{}') INTO v_edges
          FROM (SELECT s.id FROM memvec.scope_edges(p_themes, p_persons) AS s LIMIT v_left) AS e;
        v_left := v_left - cardinality(v_edges);
        SELECT coalesce(array_agg(r.id), '{}') INTO v_history
          FROM (SELECT h.id FROM memvec.memory_history AS h
                 WHERE h.person_key = ANY (p_persons) OR h.agent_identity = ANY (p_themes)
                 ORDER BY h.id LIMIT v_left) AS r;
        v_left := v_left - cardinality(v_history);
        v_all := (v_before ->> 'memory_agent_edges')::bigint + (v_before ->> 'memory_history')::bigint;
    END IF;
    SELECT coalesce(array_agg(r.id), '{}') INTO v_entries
      FROM (SELECT m.id FROM memvec.memory_entries AS m
             WHERE m.person_key = ANY (p_persons) OR m.agent_identity = ANY (p_themes)
             ORDER BY m.id LIMIT v_left) AS r;
    v_left := v_left - cardinality(v_entries);
    SELECT coalesce(array_agg(r.id), '{}') INTO v_turns
      FROM (SELECT c.id FROM memvec.conversations AS c
             WHERE c.person_key = ANY (p_persons) OR c.agent_identity = ANY (p_themes)
             ORDER BY c.id LIMIT v_left) AS r;
    v_all := v_all + (v_before ->> 'memory_entries')::bigint + (v_before ->> 'conversations')::bigint;
    v_last := cardinality(v_edges) + cardinality(v_history) + cardinality(v_entries) + cardinality(v_turns) = v_all;

    IF p_deep THEN
        v_rows := v_rows || jsonb_build_object(
            'memory_agent_edges', cardinality(v_edges),
            'memory_history', cardinality(v_history),
            -- Before the history goes, by whose texts they are found.
            'applied_ops', memvec.forget_results(
                ARRAY(SELECT DISTINCT memvec.vector_hash(memvec.content_hash(h.content), h.person_key)
                        FROM memvec.memory_history AS h WHERE h.id = ANY (v_history)
                       EXCEPT SELECT memvec.vector_hash(m.content_hash, m.person_key)
                        FROM memvec.memory_entries AS m WHERE m.id = ANY (v_entries)),
                p_dry_run
            )
        );
        IF NOT p_dry_run THEN
            DELETE FROM memvec.memory_agent_edges AS e WHERE e.id = ANY (v_edges);
            DELETE FROM memvec.memory_history AS h WHERE h.id = ANY (v_history);
        END IF;
    END IF;
    SELECT v_rows || jsonb_object_agg(f.table_name, f.rows + coalesce((v_rows ->> f.table_name)::bigint, 0))
      INTO v_rows
      FROM memvec.forget_rows(v_entries, v_turns, p_deep, p_dry_run) AS f;
    IF v_last AND p_deep THEN
        v_rows := v_rows || jsonb_build_object(
            'memory_agents', v_before -> 'memory_agents', 'theme_counts', v_before -> 'theme_counts',
            'identity_aliases', v_before -> 'identity_aliases'
        );
        IF NOT p_dry_run THEN
            PERFORM memvec.forget_themes(p_themes, p_persons);
        END IF;
    END IF;

    IF NOT p_dry_run THEN
        SELECT jsonb_object_agg(c.table_name, c.rows) INTO v_after FROM memvec.scope_counts(p_themes, p_persons, p_deep) AS c;
    END IF;
    SELECT array_agg(
               ROW(b.key, CASE b.key WHEN 'applied_ops' THEN 'emptied' ELSE 'deleted' END,
                   coalesce((v_rows ->> b.key)::bigint, 0),
                   coalesce((v_after ->> b.key)::bigint, b.value::bigint - coalesce((v_rows ->> b.key)::bigint, 0))
               )::memvec.change
               ORDER BY b.key
           )
      INTO v_changes
      FROM jsonb_each_text(v_before) AS b;
    PERFORM memvec.note_changes(p_operation, p_dry_run, p_parameters || jsonb_build_object('limit', p_limit), v_changes);
    RETURN QUERY SELECT c.* FROM unnest(v_changes) AS c;
END;
$$;

COMMENT ON FUNCTION memvec.erase_scope IS
'Deletes rows of whole themes or of a person, at most p_limit edges, history rows, entries and turns together, and returns for each table how many rows went (with what hangs on them) and, counted again, how many are left. p_deep: also history, edges, registry, counts, the person''s aliases and the results in applied_ops. A dry run only counts. Errors: MV001, MV008. Internal.';
REVOKE ALL ON FUNCTION memvec.erase_scope FROM public;
