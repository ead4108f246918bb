CREATE OR REPLACE FUNCTION memvec.apply_op(
    p_op memvec.pending_op,
    OUT outcome text,
    OUT id bigint,
    OUT content_hash bytea,
    OUT detail jsonb
)
RETURNS record
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_a jsonb := p_op.arguments;
BEGIN
    CASE p_op.op
        WHEN 'append_turn' THEN
            SELECT r.outcome, r.id, r.content_hash INTO outcome, id, content_hash
              FROM memvec.put_turn(
                  p_op.agent_identity, p_op.person_key, v_a ->> 'session_id', v_a ->> 'role', v_a ->> 'content',
                  v_a ->> 'parent_session_id', (v_a ->> 'ts')::timestamptz, v_a -> 'metadata', (v_a ->> 'embed')::boolean
              ) AS r;
        WHEN 'add_memory' THEN
            SELECT r.outcome, r.id, r.content_hash INTO outcome, id, content_hash
              FROM memvec.put_entry(
                  p_op.agent_identity, p_op.person_key, v_a ->> 'target', v_a ->> 'content', v_a -> 'metadata',
                  (v_a ->> 'source')::uuid, (v_a ->> 'embed')::boolean
              ) AS r;
        WHEN 'replace_memory' THEN
            SELECT r.outcome, r.id, r.content_hash, jsonb_build_object('matches', r.matches)
              INTO outcome, id, content_hash, detail
              FROM memvec.swap_entry(
                  p_op.agent_identity, p_op.person_key, v_a ->> 'target', v_a ->> 'old_text', v_a ->> 'content',
                  v_a ->> 'previous_content', v_a -> 'metadata', (v_a ->> 'source')::uuid, (v_a ->> 'embed')::boolean
              ) AS r;
        WHEN 'remove_memory' THEN
            SELECT r.outcome, r.id, jsonb_build_object('matches', r.matches) INTO outcome, id, detail
              FROM memvec.drop_entry(
                  p_op.agent_identity, p_op.person_key, v_a ->> 'target', v_a ->> 'old_text', v_a ->> 'previous_content',
                  (v_a ->> 'source')::uuid
              ) AS r;
        WHEN 'sync_memories' THEN
            SELECT 'synced', jsonb_build_object('added', r.added, 'retired', r.retired, 'kept', r.kept, 'rows', r.rows)
              INTO outcome, detail
              FROM memvec.sync_file(
                  p_op.agent_identity, (v_a ->> 'source')::uuid, memvec.checked_target(v_a ->> 'target'),
                  CASE jsonb_typeof(v_a -> 'contents')
                      WHEN 'array' THEN ARRAY(SELECT c.value FROM jsonb_array_elements_text(v_a -> 'contents') AS c)
                  END
              ) AS r;
        WHEN 'record_delegation' THEN
            SELECT r.outcome, r.id INTO outcome, id
              FROM memvec.put_edge(
                  p_op.agent_identity, p_op.person_key, v_a ->> 'session_id', v_a ->> 'child_session_id',
                  v_a ->> 'child_identity', v_a -> 'attrs'
              ) AS r;
        WHEN 'register_agent' THEN
            PERFORM memvec.register_agent(p_op.identity, v_a -> 'attrs', p_op.governance);
            outcome := 'registered';
        ELSE
            RAISE EXCEPTION USING
                ERRCODE = 'MV001',
                MESSAGE = format('operation "%s" is unknown', left(p_op.op, 40)),
                HINT = 'Use add_memory, replace_memory, remove_memory, sync_memories, append_turn, record_delegation or register_agent.';
    END CASE;
END;
$$;

COMMENT ON FUNCTION memvec.apply_op IS
'Applies one operation of a batch and returns its outcome, row, content hash and details; see apply_ops, which holds the locks. Errors: those of the function the operation names. Internal.';
REVOKE ALL ON FUNCTION memvec.apply_op FROM public;
