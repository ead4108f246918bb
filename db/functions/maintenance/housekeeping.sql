-- The small upkeep that recall and retention need, cheap enough to be called by every host now and then: whoever comes while
-- another is at it, or while maintenance changes the same records, goes away at once.
CREATE OR REPLACE FUNCTION memvec.housekeeping()
RETURNS TABLE (task text, rows bigint)
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_rows bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(memvec.housekeeping_lock()) THEN
        RETURN;
    END IF;

    DELETE FROM memvec.applied_ops AS a
     WHERE a.op_id IN (
         SELECT o.op_id FROM memvec.applied_ops AS o
          WHERE o.applied_at < now() - make_interval(days => memvec.setting('applied_ops_days')::integer)
          LIMIT 10000
     );
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    RETURN QUERY VALUES ('applied operations forgotten', v_rows);

    DELETE FROM memvec.memory_history AS h
     WHERE h.id IN (
         SELECT o.id FROM memvec.memory_history AS o
          WHERE o.acted_at < now() - make_interval(days => memvec.setting('history_days')::integer)
          ORDER BY o.acted_at
          LIMIT 10000
     );
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    RETURN QUERY VALUES ('history rows forgotten', v_rows);

    DELETE FROM memvec.embedding_work AS w
     WHERE w.leased_until < now()
       AND (w.attempts = 0
            OR w.kind = 'entry' AND NOT EXISTS (SELECT FROM memvec.memory_entries AS m WHERE m.id = w.row_id)
            OR w.kind = 'turn' AND NOT EXISTS (SELECT FROM memvec.conversations AS c WHERE c.id = w.row_id));
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    RETURN QUERY VALUES ('embedding leases ended', v_rows);

    -- Who greeted in the moment in which their theme was renamed registered the old name again.
    DELETE FROM memvec.memory_agents AS a
     WHERE EXISTS (SELECT FROM memvec.identity_aliases AS i WHERE i.alias = a.agent_identity AND i.agent_identity <> i.alias)
       AND NOT EXISTS (SELECT FROM memvec.identity_aliases AS i WHERE i.agent_identity = a.agent_identity);

    RETURN QUERY VALUES ('themes counted', memvec.count_themes());
    RETURN QUERY VALUES ('common words counted', memvec.count_terms());
    RETURN QUERY VALUES ('floors measured', memvec.measure_floors());
END;
$$;

COMMENT ON FUNCTION memvec.housekeeping IS
'Renews the estimates that recall plans by (theme_counts, term_statistics), measures the floor of spaces that have none, forgets applied operations and history past their time, frees expired embedding leases, and returns what it did. Bounded in work; returns no row when another session is at it or maintenance is under way.';
REVOKE ALL ON FUNCTION memvec.housekeeping FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.housekeeping TO memvec_runtime, memvec_admin;
