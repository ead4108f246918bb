-- New turns, one or a batch, in the same way as put_entries. A time that a client's calendar does not have (infinity, years
-- before 1 or after 9999) would break whoever reads the turn, so now is taken instead.
CREATE OR REPLACE FUNCTION memvec.put_turns(p_turns memvec.new_turn [])
RETURNS TABLE (ordinal integer, id bigint, outcome text, content_hash bytea)
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    v_contents text[];
    v_hashes bytea[];
    v_language regconfig;
    v_version integer;
    v_date_words text;
    v_new bigint[];
    v_found bigint;
BEGIN
    SELECT array_agg(c.content), array_agg(memvec.content_hash(c.content))
      INTO v_contents, v_hashes
      FROM (SELECT memvec.blankless(t.content) AS content FROM unnest(p_turns) AS t OFFSET 0) AS c;
    PERFORM memvec.checked_content(t.trimmed), memvec.checked_role(t.role)
       FROM unnest(p_turns, v_contents) AS t (
                ordinal, agent_identity, person_key, session_id, role, content, parent_session_id, ts, metadata, embed, trimmed
            )
      WHERE t.trimmed IS NULL OR t.role IS NULL OR t.role NOT IN ('user', 'assistant', 'system', 'tool');
    -- In one statement, so that the version is that of the language and of the date words.
    SELECT memvec.setting('search_language')::regconfig, memvec.setting('turn_date_words'), memvec.setting('search_version')::integer
      INTO v_language, v_date_words, v_version;
    WITH stored AS (
        INSERT INTO memvec.conversations AS c
               (agent_identity, person_key, session_id, parent_session_id, role, content, content_hash, search,
                search_version, embed, ts, metadata)
        SELECT t.agent_identity, t.person_key, coalesce(memvec.clean_session(t.session_id), 'default'),
               memvec.clean_session(t.parent_session_id), t.role, t.trimmed, t.content_hash,
               memvec.turn_vector(t.trimmed, t.dated, v_language, v_date_words), v_version, coalesce(t.embed, true),
               t.dated,
               memvec.as_object(t.metadata)
          FROM (SELECT u.*, CASE WHEN u.ts BETWEEN '0001-01-02Z' AND '9999-12-30Z' THEN u.ts ELSE now() END AS dated
                  FROM unnest(p_turns, v_contents, v_hashes) AS u (
                           ordinal, agent_identity, person_key, session_id, role, content, parent_session_id, ts, metadata,
                           embed, trimmed, content_hash
                       )) AS t
        ON CONFLICT (agent_identity, session_id, content_hash, role, person_key) DO NOTHING
        RETURNING c.id
    )
    SELECT array_agg(s.id ORDER BY s.id) INTO v_new FROM stored AS s;
    -- All new, as nearly always: ids were given in the order of the turns.
    IF cardinality(v_new) = cardinality(p_turns) THEN
        RETURN QUERY
            SELECT t.ordinal, t.id, 'added', memvec.vector_hash(t.content_hash, t.person_key)
              FROM unnest(p_turns, v_new, v_hashes) AS t (
                       ordinal, agent_identity, person_key, session_id, role, content, parent_session_id, ts, metadata, embed,
                       id, content_hash
                   );
        RETURN;
    END IF;

    RETURN QUERY
        SELECT t.ordinal, c.id,
               CASE WHEN c.id = ANY (v_new) AND row_number() OVER (PARTITION BY c.id ORDER BY t.ordinal) = 1
                    THEN 'added' ELSE 'duplicate'
               END,
               memvec.vector_hash(c.content_hash, c.person_key)
          FROM unnest(p_turns, v_hashes) AS t (
                   ordinal, agent_identity, person_key, session_id, role, content, parent_session_id, ts, metadata, embed,
                   content_hash
               )
          JOIN memvec.conversations AS c
            ON c.agent_identity = t.agent_identity
           AND c.content_hash = t.content_hash
           AND c.session_id = coalesce(memvec.clean_session(t.session_id), 'default')
           AND c.role = t.role
           AND c.person_key IS NOT DISTINCT FROM t.person_key
         ORDER BY t.ordinal;
    GET DIAGNOSTICS v_found = ROW_COUNT;
    IF v_found < cardinality(p_turns) THEN
        RAISE EXCEPTION USING
            ERRCODE = '40001',
            MESSAGE = 'a turn that was there already was deleted at the same moment',
            HINT = 'Try again.';
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.put_turns IS
'Stores turns once each and returns, for each in their order, its id, added or duplicate, and its content hash (vector_hash). Errors: MV001 blank content or unknown role (nothing is stored). Internal.';
REVOKE ALL ON FUNCTION memvec.put_turns FROM public;
