CREATE OR REPLACE FUNCTION memvec.append_turn(
    p_identity text,
    p_session_id text,
    p_role text,
    p_content text,
    p_parent_session_id text DEFAULT NULL,
    p_ts timestamptz DEFAULT NULL,
    p_metadata jsonb DEFAULT '{}',
    p_embedding public.halfvec DEFAULT NULL,
    p_space integer DEFAULT NULL,
    p_embed boolean DEFAULT true,
    p_governance jsonb DEFAULT NULL,
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
DECLARE
    v_who record;
BEGIN
    SELECT * INTO v_who FROM memvec.writing_as(p_identity, p_governance);
    SELECT p.id, p.outcome, p.content_hash
      INTO STRICT id, outcome, content_hash
      FROM memvec.put_turns(
          ARRAY[ROW(1, v_who.agent_identity, v_who.person_key, p_session_id, p_role, p_content, p_parent_session_id, p_ts,
                    p_metadata, p_embed)::memvec.new_turn]
      ) AS p;
    PERFORM memvec.put_embedding(p_space, 'turn', id, p_embedding);
END;
$$;

COMMENT ON FUNCTION memvec.append_turn IS
'Stores a chat turn and returns its id, outcome and content hash. The same words by the same role in one session are one row (duplicate), so a replay changes nothing. p_role: user, assistant, system or tool. p_parent_session_id: the session that delegated to this one. p_session_id: at most 200 characters count as they are, a longer one is cut with a hash. p_ts: when it was said, now if NULL or outside the years 1 to 9999. p_embedding: its vector in space p_space. p_embed false: never to be embedded. Errors: MV001 blank content or unknown role, MV002, MV004, MV005, MV006, MV008 the theme is under maintenance.';
REVOKE ALL ON FUNCTION memvec.append_turn FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.append_turn TO memvec_runtime, memvec_admin;
