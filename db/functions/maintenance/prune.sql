-- Old turns go in the order in which they came. Only the themes of this batch are held, and only for as long as it takes.
CREATE OR REPLACE FUNCTION memvec.prune(
    p_days integer DEFAULT NULL, p_dry_run boolean DEFAULT true, p_limit integer DEFAULT NULL
)
RETURNS TABLE (table_name text, action text, rows bigint, remaining bigint)
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
DECLARE
    v_limit bigint := memvec.checked_limit(p_limit);
    v_dry_run boolean := coalesce(p_dry_run, true);
    v_themes text[];
    v_ids bigint[];
    v_total bigint;
    v_changes memvec.change[];
BEGIN
    PERFORM memvec.assert_read_committed();
    IF p_days NOT BETWEEN 1 AND 36500 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('turns cannot be pruned after %s days', p_days),
            HINT = 'Give 1 to 36500 days, or NULL for those themes only that have their own (memvec.set_ttl).';
    END IF;
    SELECT array_agg(r.id), array_agg(DISTINCT r.agent_identity)
      INTO v_ids, v_themes
      FROM (SELECT e.id, e.agent_identity FROM memvec.expired_turns(p_days) AS e ORDER BY e.id LIMIT v_limit) AS r;
    IF NOT v_dry_run THEN
        PERFORM memvec.hold_themes(v_themes);
    END IF;
    -- Counted under the lock; what expires in these moments waits for the next call.
    SELECT count(*), array_agg(e.id) FILTER (WHERE e.id = ANY (v_ids)) INTO v_total, v_ids FROM memvec.expired_turns(p_days) AS e;
    SELECT array_agg(
               ROW(f.table_name, 'deleted', f.rows, CASE f.table_name WHEN 'conversations' THEN v_total - f.rows END)::memvec.change
           )
      INTO v_changes
      FROM memvec.forget_rows('{}', coalesce(v_ids, '{}'), false, v_dry_run) AS f
     WHERE f.table_name NOT IN ('entry_sources', 'memory_entries');
    PERFORM memvec.note_changes('prune', v_dry_run, jsonb_build_object('days', p_days, 'limit', p_limit), v_changes);
    RETURN QUERY SELECT c.table_name, c.action, c.rows, c.remaining FROM unnest(v_changes) AS c ORDER BY 1;
END;
$$;

COMMENT ON FUNCTION memvec.prune IS
'Deletes old chat turns with their vectors: those older than p_days, or than their theme''s own ttl_days (memvec.set_ttl), which goes before. NULL: only themes that have their own. Entries are never pruned. Returns for each table how many rows went, and for conversations how many old turns remain. p_limit: how many turns at most in this call. A dry run, the default, only counts. Errors: MV001 days or limit out of range; MV006; MV008 a writer held a theme too long.';
REVOKE ALL ON FUNCTION memvec.prune FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.prune TO memvec_admin;
