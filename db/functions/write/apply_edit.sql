CREATE OR REPLACE FUNCTION memvec.apply_edit(p_op memvec.batch_op)
RETURNS memvec.batch_op
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_op memvec.batch_op := p_op;
    v_a jsonb := p_op.arguments;
BEGIN
    CASE p_op.op
        WHEN 'replace_memory' THEN
            SELECT r.outcome, r.id, memvec.vector_hash(r.content_hash, p_op.person_key), jsonb_build_object('matches', r.matches)
              INTO v_op.outcome, v_op.row_id, v_op.content_hash, v_op.detail
              FROM memvec.swap_entry(
                  p_op.agent_identity, p_op.person_key, v_a ->> 'target', v_a ->> 'old_text', v_a ->> 'content',
                  v_a ->> 'previous_content', v_a -> 'metadata', (v_a ->> 'source')::uuid, (v_a ->> 'embed')::boolean
              ) AS r;
        WHEN 'remove_memory' THEN
            SELECT r.outcome, r.id, jsonb_build_object('matches', r.matches)
              INTO v_op.outcome, v_op.row_id, v_op.detail
              FROM memvec.drop_entry(
                  p_op.agent_identity, p_op.person_key, v_a ->> 'target', v_a ->> 'old_text', v_a ->> 'previous_content',
                  (v_a ->> 'source')::uuid
              ) AS r;
        WHEN 'sync_memories' THEN
            SELECT 'synced', jsonb_build_object('added', r.added, 'retired', r.retired, 'kept', r.kept, 'rows', r.rows)
              INTO v_op.outcome, v_op.detail
              FROM memvec.sync_file(
                  p_op.agent_identity, (v_a ->> 'source')::uuid, memvec.checked_target(v_a ->> 'target'),
                  CASE jsonb_typeof(v_a -> 'contents')
                      WHEN 'array' THEN ARRAY(SELECT c.value FROM jsonb_array_elements_text(v_a -> 'contents') AS c)
                  END
              ) AS r;
        WHEN 'record_delegation' THEN
            SELECT r.outcome, r.id
              INTO v_op.outcome, v_op.row_id
              FROM memvec.put_edge(
                  p_op.agent_identity, p_op.person_key, v_a ->> 'session_id', v_a ->> 'child_session_id',
                  v_a ->> 'child_identity', v_a -> 'attrs'
              ) AS r;
        WHEN 'register_agent' THEN
            PERFORM memvec.register_agent(p_op.identity, v_a -> 'attrs', p_op.governance);
            v_op.outcome := 'registered';
        ELSE
            RAISE EXCEPTION USING
                ERRCODE = 'MV001',
                MESSAGE = format('operation "%s" is unknown', left(p_op.op, 40)),
                HINT = 'Use add_memory, replace_memory, remove_memory, sync_memories, append_turn, record_delegation or register_agent.';
    END CASE;
    RETURN v_op;
END;
$$;

COMMENT ON FUNCTION memvec.apply_edit IS
'Applies one operation other than append_turn and add_memory and returns it with its outcome. Errors: those of the function it names, MV001 unknown operation. Internal.';
REVOKE ALL ON FUNCTION memvec.apply_edit FROM public;
