-- The note comes back as one of its own, from no home's file: with the sources it had, the next look at a file that does not hold
-- it would take it away again. Whatever took its place stays.
CREATE OR REPLACE FUNCTION memvec.restore(
    p_id bigint,
    OUT id bigint,
    OUT outcome text,
    OUT agent_identity text,
    OUT target text
)
RETURNS record
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_row memvec.memory_history;
    v_locked text;
BEGIN
    PERFORM memvec.assert_read_committed();
    -- Read again under the lock: while we waited for the theme it may have been renamed, or the person erased.
    LOOP
        SELECT * INTO v_row FROM memvec.memory_history AS h WHERE h.id = p_id;
        EXIT WHEN NOT FOUND OR v_row.agent_identity = v_locked;
        PERFORM memvec.lock_theme(v_row.agent_identity);
        v_locked := v_row.agent_identity;
    END LOOP;
    IF v_locked IS NOT NULL THEN
        PERFORM memvec.lock_entries(v_row.agent_identity, v_row.person_key, v_row.target);
    END IF;
    SELECT * INTO v_row FROM memvec.memory_history AS h WHERE h.id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('the history has no row %s', coalesce(p_id::text, 'NULL')),
            HINT = 'memvec.history lists what can be restored; older rows go after setting history_days.';
    END IF;
    agent_identity := v_row.agent_identity;
    target := v_row.target;

    SELECT m.id INTO id
      FROM memvec.memory_entries AS m
     WHERE m.agent_identity = v_row.agent_identity
       AND m.person_key IS NOT DISTINCT FROM v_row.person_key
       AND m.target = v_row.target
       AND m.content_hash = memvec.content_hash(v_row.content);
    IF FOUND THEN
        outcome := 'present';
        RETURN;
    ELSIF v_row.restored_at IS NOT NULL THEN
        outcome := 'restored before';
        RETURN;
    END IF;

    INSERT INTO memvec.memory_entries AS m
           (agent_identity, person_key, target, content, content_hash, search, search_version, embed, created_at, updated_at, metadata)
    VALUES (v_row.agent_identity, v_row.person_key, v_row.target, v_row.content, memvec.content_hash(v_row.content),
            memvec.search_vector(v_row.content), memvec.setting('search_version')::integer, v_row.embed, v_row.created_at,
            v_row.updated_at, v_row.metadata)
    RETURNING m.id INTO id;
    UPDATE memvec.memory_history AS h SET restored_at = now(), restored_by = session_user WHERE h.id = p_id;
    outcome := 'restored';
    INSERT INTO memvec.maintenance_log (operation, table_name, rows, parameters)
    VALUES ('restore', 'memory_entries', 1,
            jsonb_build_object('history', p_id, 'entry', id, 'theme', v_row.agent_identity, 'action', v_row.action));
END;
$$;

COMMENT ON FUNCTION memvec.restore IS
'Brings back the note of a history row, with its metadata and dates, and returns the note''s id, outcome, theme and target: restored; present (the theme holds that text already, nothing is done); restored before (it was brought back and went again: that has a history row of its own). The note has a new id, belongs to no home''s file and has no vector until it is embedded. Errors: MV001 no such history row, MV006.';
REVOKE ALL ON FUNCTION memvec.restore FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.restore TO memvec_admin;
