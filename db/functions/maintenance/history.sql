CREATE OR REPLACE FUNCTION memvec.history(
    p_identity text DEFAULT NULL,
    p_target text DEFAULT NULL,
    p_action text DEFAULT NULL,
    p_since timestamptz DEFAULT NULL,
    p_until timestamptz DEFAULT NULL,
    p_limit integer DEFAULT 100,
    p_before bigint DEFAULT NULL
)
RETURNS TABLE (
    id bigint,
    entry_id bigint,
    agent_identity text,
    target text,
    action text,
    content text,
    acted_at timestamptz,
    acted_by text,
    created_at timestamptz,
    updated_at timestamptz,
    metadata jsonb,
    restored_at timestamptz,
    restored_by text
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_who record;
    v_all_persons boolean := memvec.is_sink(memvec.clean_key(p_identity));
BEGIN
    IF p_action IS NOT NULL AND p_action NOT IN ('replace', 'remove', 'reconcile') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('no action is called "%s"', left(p_action, 40)),
            HINT = 'Use replace, remove or reconcile.';
    END IF;
    SELECT * INTO v_who FROM memvec.canonical_identity(p_identity);
    IF p_identity IS NOT NULL THEN
        PERFORM memvec.assert_known(ARRAY[v_who.agent_identity, memvec.clean_key(p_identity)]);
    END IF;
    RETURN QUERY
        SELECT h.id, h.entry_id, h.agent_identity, h.target, h.action, h.content, h.acted_at, h.acted_by::text,
               h.created_at, h.updated_at, h.metadata, h.restored_at, h.restored_by::text
          FROM memvec.memory_history AS h
         WHERE (p_identity IS NULL
                OR h.agent_identity = v_who.agent_identity
                   AND (v_all_persons OR h.person_key IS NOT DISTINCT FROM v_who.person_key))
           AND (p_target IS NULL OR h.target = memvec.checked_target(p_target))
           AND (p_action IS NULL OR h.action = p_action)
           AND (p_since IS NULL OR h.acted_at >= p_since)
           AND (p_until IS NULL OR h.acted_at < p_until)
           AND (p_before IS NULL OR h.id < p_before)
         ORDER BY h.id DESC
         LIMIT greatest(1, least(coalesce(p_limit, 100), 1000));
END;
$$;

COMMENT ON FUNCTION memvec.history IS
'Returns what was taken away from the notes, the latest first: the note as it was, action (replace: a new text took its place; remove; reconcile: it was no longer in its home''s file), when and by which login role, and when and by whom it was restored. p_identity: a theme; the key of a chat for one person''s notes; the name of a sink for those of everybody in it. p_since, p_until: bounds on when it was taken away. p_limit: 1 to 1000; p_before: go on below this id. memvec.restore brings a note back, for setting history_days. Errors: MV001 unknown theme, target or action.';
REVOKE ALL ON FUNCTION memvec.history FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.history TO memvec_admin;
