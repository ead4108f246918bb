-- A vector of length zero has no direction: cosine distance to it is NaN and an index would lose the row. Such a vector is
-- not stored, and the row stays to be found by its words.
CREATE OR REPLACE FUNCTION memvec.put_embedding(p_space integer, p_kind text, p_id bigint, p_embedding public.halfvec)
RETURNS boolean
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_space memvec.embedding_spaces;
    v_stored bigint;
BEGIN
    IF p_embedding IS NULL THEN
        RETURN false;
    END IF;
    v_space := memvec.checked_space(p_space, p_embedding);
    IF public.l2_norm(p_embedding) = 0 THEN
        RETURN false;
    END IF;
    IF p_kind = 'entry' THEN
        EXECUTE format(
            'INSERT INTO memvec.%I (id, agent_identity, person_key, target, embedding)
             SELECT m.id, m.agent_identity, m.person_key, m.target, $2 FROM memvec.memory_entries AS m WHERE m.id = $1 AND m.embed
             ON CONFLICT (id) DO NOTHING',
            v_space.entry_table
        ) USING p_id, p_embedding;
    ELSE
        EXECUTE format(
            'INSERT INTO memvec.%I (id, agent_identity, person_key, session_id, ts, embedding)
             SELECT c.id, c.agent_identity, c.person_key, c.session_id, c.ts, $2
               FROM memvec.conversations AS c
              WHERE c.id = $1 AND c.embed
             ON CONFLICT (id) DO NOTHING',
            v_space.turn_table
        ) USING p_id, p_embedding;
    END IF;
    GET DIAGNOSTICS v_stored = ROW_COUNT;
    RETURN v_stored > 0;
END;
$$;

COMMENT ON FUNCTION memvec.put_embedding IS
'Stores the vector of an entry or turn in a space unless it has one, and returns whether it was stored. NULL and zero vectors, and rows never to be embedded, are passed over. Errors: MV004, MV005. Internal.';
REVOKE ALL ON FUNCTION memvec.put_embedding FROM public;
