-- The door of the hosts' outboxes: a batch in one round trip and one transaction, each operation exactly once. All locks are
-- taken first and in one order, so that two homes with the same themes cannot block each other. What only bad luck stops
-- (deadlock, timeout, lack of resources) stops the whole batch, to be sent again; what an operation itself is wrong about
-- is reported for that operation alone.
CREATE OR REPLACE FUNCTION memvec.apply_ops(p_ops jsonb)
RETURNS TABLE (
    op_id uuid,
    outcome text,
    id bigint,
    content_hash bytea,
    detail jsonb,
    error_code text,
    message text
)
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    v_ops memvec.batch_op[];
    v_locks memvec.entry_lock[];
    v_run memvec.batch_op[];
    v_done memvec.batch_op[] := '{}';
    v_fresh bigint;
    v_stored bigint;
BEGIN
    PERFORM memvec.assert_read_committed();
    IF p_ops IS NULL OR jsonb_typeof(p_ops) <> 'array' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = 'apply_ops needs an array of operations',
            HINT = 'For example: [{"op_id": "…uuid…", "op": "append_turn", "identity": "marketing", "session_id": "s", "role": "user", "content": "…"}]';
    END IF;

    SELECT array_agg(ROW(l.agent_identity, l.person_key, l.target)::memvec.entry_lock) INTO v_locks FROM memvec.batch_locks(p_ops) AS l;
    PERFORM memvec.lock_theme(t.agent_identity)
       FROM (SELECT DISTINCT l.agent_identity FROM unnest(v_locks) AS l ORDER BY 1) AS t;
    PERFORM memvec.lock_entries(l.agent_identity, l.person_key, l.target) FROM unnest(v_locks) AS l WHERE l.target IS NOT NULL;
    -- Looked up only now: while we waited for a lock, operations of ours may have been applied by somebody else, and a
    -- theme renamed.
    v_ops := memvec.resolve_ops(p_ops);
    IF EXISTS (SELECT o.agent_identity FROM unnest(v_ops) AS o WHERE o.agent_identity IS NOT NULL
               EXCEPT
               SELECT l.agent_identity FROM unnest(v_locks) AS l) THEN
        RAISE EXCEPTION USING
            ERRCODE = '40001',
            MESSAGE = 'a theme was renamed while the batch waited for it',
            HINT = 'Send the batch again.';
    END IF;

    FOR v_run IN SELECT r.run FROM memvec.operation_runs(v_ops) AS r (run) LOOP
        v_done := v_done || memvec.apply_run(v_run);
    END LOOP;

    INSERT INTO memvec.applied_ops (op_id, outcome, row_id, content_hash, detail)
    SELECT d.op_id, d.outcome, d.row_id, d.content_hash, d.detail FROM unnest(v_done) AS d WHERE d.error_code IS NULL
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS v_stored = ROW_COUNT;
    SELECT count(*) INTO v_fresh FROM unnest(v_done) AS d WHERE d.error_code IS NULL;
    IF v_stored < v_fresh THEN
        RAISE EXCEPTION USING
            ERRCODE = '40001',
            MESSAGE = 'another session applied some of these operations at the same time',
            HINT = 'Send the batch again; what is done already answers with its recorded outcome.';
    END IF;

    RETURN QUERY
        SELECT o.op_id,
               coalesce(o.outcome, d.outcome),
               coalesce(o.row_id, d.row_id),
               coalesce(o.content_hash, d.content_hash),
               coalesce(o.detail, d.detail),
               coalesce(o.error_code, d.error_code),
               coalesce(o.message, d.message)
          FROM unnest(v_ops) AS o
          LEFT JOIN unnest(v_done) AS d ON d.op_id = o.op_id AND o.outcome IS NULL
         ORDER BY o.ordinal;
END;
$$;

COMMENT ON FUNCTION memvec.apply_ops IS
'Applies a batch of operations in order, each exactly once by its op_id, and returns a row for each in the same order: op_id, outcome, row id, content hash, detail, and for a bad one outcome "error" with error_code and message, which does not stop the rest. p_ops: array of {"op_id": uuid, "op": name of a write function, "identity": raw key, "governance": {…}} and that function''s other arguments without p_ (vectors follow by store_embeddings). An operation that was applied before, or comes twice, answers with its recorded outcome. detail of sync_memories: added, retired, kept, and rows with id, content_hash (hex) and position in contents. Errors: MV001 not an array, MV006; 40001, 40P01, 55P03, 57014, MV008 (a theme is under maintenance) and classes 53 and 57P mean: nothing was applied, send the batch again.';
REVOKE ALL ON FUNCTION memvec.apply_ops FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.apply_ops TO memvec_runtime, memvec_admin;
