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
AS $$
#variable_conflict use_column
DECLARE
    v_ops memvec.pending_op[];
    v_op memvec.pending_op;
    v_known memvec.applied_ops[];
    v_known_ids uuid[];
    v_fresh memvec.applied_ops[] := '{}';
    v_fresh_ids uuid[] := '{}';
    v_done memvec.applied_ops;
    v_result record;
    v_state text;
    v_text text;
    v_hint text;
    v_stored bigint;
BEGIN
    PERFORM memvec.assert_read_committed();
    IF p_ops IS NULL OR jsonb_typeof(p_ops) <> 'array' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = 'apply_ops needs an array of operations',
            HINT = 'For example: [{"op_id": "…uuid…", "op": "append_turn", "identity": "marketing", "session_id": "s", "role": "user", "content": "…"}]';
    END IF;

    v_ops := memvec.resolve_ops(p_ops);
    PERFORM memvec.lock_theme(t.agent_identity)
       FROM (SELECT DISTINCT o.agent_identity FROM unnest(v_ops) AS o WHERE o.agent_identity IS NOT NULL ORDER BY 1) AS t;
    PERFORM memvec.lock_entries(l.agent_identity, l.person_key, l.target)
       FROM memvec.entry_locks(v_ops) AS l;
    IF v_ops IS DISTINCT FROM memvec.resolve_ops(p_ops) THEN
        RAISE EXCEPTION USING
            ERRCODE = '40001',
            MESSAGE = 'a theme was renamed while the batch waited for it',
            HINT = 'Send the batch again.';
    END IF;

    SELECT array_agg(a), array_agg(a.op_id)
      INTO v_known, v_known_ids
      FROM memvec.applied_ops AS a
     WHERE a.op_id = ANY (ARRAY(SELECT o.op_id FROM unnest(v_ops) AS o WHERE o.op_id IS NOT NULL));

    FOREACH v_op IN ARRAY v_ops LOOP
        op_id := v_op.op_id;
        outcome := 'error';
        id := NULL;
        content_hash := NULL;
        detail := NULL;
        error_code := v_op.error_code;
        message := v_op.message;
        IF error_code IS NOT NULL THEN
            RETURN NEXT;
            CONTINUE;
        END IF;

        v_done := coalesce(v_known[array_position(v_known_ids, v_op.op_id)], v_fresh[array_position(v_fresh_ids, v_op.op_id)]);
        IF v_done.op_id IS NULL THEN
            BEGIN
                SELECT * INTO v_result FROM memvec.apply_op(v_op);
                v_done := ROW(v_op.op_id, v_result.outcome, v_result.id, v_result.content_hash, v_result.detail, now());
            EXCEPTION WHEN OTHERS THEN
                GET STACKED DIAGNOSTICS v_state = RETURNED_SQLSTATE, v_text = MESSAGE_TEXT, v_hint = PG_EXCEPTION_HINT;
                IF v_state IN ('40001', '40P01', '55P03', '57014') OR v_state LIKE '53%' OR v_state LIKE '57P%' THEN
                    RAISE;
                END IF;
                error_code := v_state;
                message := concat_ws(' ', v_text, '(' || nullif(v_hint, '') || ')');
            END;
            IF error_code IS NOT NULL THEN
                RETURN NEXT;
                CONTINUE;
            END IF;
            v_fresh := v_fresh || v_done;
            v_fresh_ids := v_fresh_ids || v_op.op_id;
        END IF;
        outcome := v_done.outcome;
        id := v_done.row_id;
        content_hash := v_done.content_hash;
        detail := v_done.detail;
        RETURN NEXT;
    END LOOP;

    INSERT INTO memvec.applied_ops SELECT f.* FROM unnest(v_fresh) AS f ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS v_stored = ROW_COUNT;
    IF v_stored < cardinality(v_fresh) THEN
        RAISE EXCEPTION USING
            ERRCODE = '40001',
            MESSAGE = 'another session applied some of these operations at the same time',
            HINT = 'Send the batch again; what is done already answers with its recorded outcome.';
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.apply_ops IS
'Applies a batch of operations in order, each exactly once by its op_id, and returns a row for each in the same order: op_id, outcome, row id, content hash, detail, and for a bad one outcome "error" with error_code and message, which does not stop the rest. p_ops: array of {"op_id": uuid, "op": name of a write function, "identity": raw key, "governance": {…}} and that function''s other arguments without p_ (vectors follow by store_embeddings). An operation that was applied before answers with its recorded outcome. detail of sync_memories: added, retired, kept, and rows with id, content_hash (hex) and position in contents. Errors: MV001 not an array, MV006; 40001, 40P01, 55P03, 57014 and class 53 mean: nothing was applied, send the batch again.';
REVOKE ALL ON FUNCTION memvec.apply_ops FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.apply_ops TO memvec_runtime, memvec_admin;
