CREATE OR REPLACE FUNCTION memvec.put_entry(
    p_agent_identity text,
    p_person_key uuid,
    p_target text,
    p_content text,
    p_metadata jsonb,
    p_source uuid,
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
    v_id bigint;
BEGIN
    content_hash := memvec.content_hash(v_content);
    outcome := 'added';
    INSERT INTO memvec.memory_entries AS m
           (agent_identity, person_key, target, content, content_hash, search, search_version, embed, metadata)
    VALUES (p_agent_identity, p_person_key, memvec.checked_target(p_target), v_content, content_hash,
            memvec.search_vector(v_content), memvec.setting('search_version')::integer,
            coalesce(p_embed, true), memvec.as_object(p_metadata))
    ON CONFLICT (agent_identity, person_key, target, content_hash) DO NOTHING
    RETURNING m.id INTO v_id;
    IF v_id IS NULL THEN
        outcome := 'duplicate';
        SELECT m.id INTO STRICT v_id
          FROM memvec.memory_entries AS m
         WHERE m.agent_identity = p_agent_identity
           AND m.person_key IS NOT DISTINCT FROM p_person_key
           AND m.target = p_target
           AND m.content_hash = put_entry.content_hash;
    END IF;
    IF p_source IS NOT NULL THEN
        INSERT INTO memvec.entry_sources (entry_id, source) VALUES (v_id, p_source) ON CONFLICT DO NOTHING;
    END IF;
    id := v_id;
END;
$$;

COMMENT ON FUNCTION memvec.put_entry IS
'Stores an entry once and returns its id, added or duplicate, and its content hash. The caller holds lock_entries. Errors: MV001 blank content or unknown target. Internal.';
REVOKE ALL ON FUNCTION memvec.put_entry FROM public;
