CREATE OR REPLACE FUNCTION memvec.put_turn(
    p_agent_identity text,
    p_person_key uuid,
    p_session_id text,
    p_role text,
    p_content text,
    p_parent_session_id text,
    p_ts timestamptz,
    p_metadata jsonb,
    p_embed boolean,
    OUT id bigint,
    OUT outcome text,
    OUT content_hash bytea
)
RETURNS record
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_content text := memvec.checked_content(p_content);
    v_session text := coalesce(memvec.blankless(p_session_id), 'default');
    v_id bigint;
BEGIN
    IF p_role IS NULL OR p_role NOT IN ('user', 'assistant', 'system', 'tool') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('role "%s" is unknown', left(p_role, 40)),
            HINT = 'Use user, assistant, system or tool.';
    END IF;
    content_hash := memvec.content_hash(v_content);
    outcome := 'added';
    INSERT INTO memvec.conversations AS c
           (agent_identity, person_key, session_id, parent_session_id, role, content, content_hash, search, search_version,
            embed, ts, metadata)
    VALUES (p_agent_identity, p_person_key, v_session, memvec.blankless(p_parent_session_id), p_role, v_content,
            content_hash, memvec.search_vector(v_content), memvec.setting('search_version')::integer,
            coalesce(p_embed, true), coalesce(p_ts, now()), memvec.as_object(p_metadata))
    ON CONFLICT (agent_identity, person_key, session_id, role, content_hash) DO NOTHING
    RETURNING c.id INTO v_id;
    IF v_id IS NULL THEN
        outcome := 'duplicate';
        SELECT c.id INTO STRICT v_id
          FROM memvec.conversations AS c
         WHERE c.agent_identity = p_agent_identity
           AND c.person_key IS NOT DISTINCT FROM p_person_key
           AND c.session_id = v_session
           AND c.role = p_role
           AND c.content_hash = put_turn.content_hash;
    END IF;
    id := v_id;
END;
$$;

COMMENT ON FUNCTION memvec.put_turn IS
'Stores a turn once and returns its id, added or duplicate, and its content hash. Errors: MV001 blank content or unknown role. Internal.';
REVOKE ALL ON FUNCTION memvec.put_turn FROM public;
