-- Which entry does an edit mean? What is known exactly decides before what is guessed: the previous content, then the old
-- text as a whole entry, then the old text as a literal part. Patterns are compared with position(), so % _ and \ are
-- ordinary characters. An exact previous content that is not here means the entry is gone: nothing is guessed then.
CREATE OR REPLACE FUNCTION memvec.find_entries(
    p_agent_identity text,
    p_person_key uuid,
    p_target text,
    p_old_text text,
    p_previous_content text
)
RETURNS bigint []
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_previous text := memvec.blankless(p_previous_content);
    v_old text := memvec.blankless(p_old_text);
    v_composed text := memvec.composed(v_old);
    v_ids bigint[];
BEGIN
    IF v_previous IS NULL AND v_old IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = 'a blank pattern matches nothing',
            HINT = 'Give the text of the entry, or a part of it.';
    END IF;

    SELECT array_agg(m.id) INTO v_ids
      FROM memvec.memory_entries AS m
     WHERE m.agent_identity = p_agent_identity
       AND (p_person_key IS NULL AND m.person_key IS NULL OR m.person_key = p_person_key)
       AND m.target = p_target
       AND m.content_hash = memvec.content_hash(coalesce(v_previous, v_old));
    IF v_ids IS NOT NULL OR v_previous IS NOT NULL THEN
        RETURN coalesce(v_ids, '{}');
    END IF;

    -- The whole entry in another Unicode form decides before parts of others.
    SELECT coalesce(
               array_agg(m.id ORDER BY m.id) FILTER (WHERE v_composed = memvec.composed(m.content)),
               array_agg(m.id ORDER BY m.id)
           )
      INTO v_ids
      FROM memvec.memory_entries AS m
     WHERE m.agent_identity = p_agent_identity
       AND (p_person_key IS NULL AND m.person_key IS NULL OR m.person_key = p_person_key)
       AND m.target = p_target
       AND position(v_composed IN memvec.composed(m.content)) > 0;
    RETURN coalesce(v_ids, '{}');
END;
$$;

COMMENT ON FUNCTION memvec.find_entries IS
'Returns the ids of the entries that an edit means: the one equal to the previous content; without one given, the one equal to the old text, else all that hold it literally (case-sensitive, NFC). Errors: MV001 both blank. Internal.';
REVOKE ALL ON FUNCTION memvec.find_entries FROM public;
