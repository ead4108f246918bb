CREATE OR REPLACE FUNCTION memvec.swap_entry(
    p_agent_identity text,
    p_person_key uuid,
    p_target text,
    p_old_text text,
    p_content text,
    p_previous_content text,
    p_metadata jsonb,
    p_source uuid,
    p_embed boolean,
    OUT id bigint,
    OUT outcome text,
    OUT matches integer,
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
    v_target text := memvec.checked_target(p_target);
    v_found bigint[];
    v_stale bigint;
    v_put record;
BEGIN
    v_found := memvec.find_entries(p_agent_identity, p_person_key, v_target, p_old_text, p_previous_content);
    matches := cardinality(v_found);
    content_hash := memvec.content_hash(v_content);

    IF matches <> 1 THEN
        SELECT * INTO v_put
          FROM memvec.put_entry(
              ROW(1, p_agent_identity, p_person_key, v_target, v_content, p_metadata, p_source, p_embed)::memvec.new_entry
          );
        id := v_put.id;
        outcome := CASE WHEN matches = 0 THEN v_put.outcome ELSE 'ambiguous' END;
        RETURN;
    END IF;

    v_stale := v_found[1];
    -- Another home still holds the old text in its file: it keeps that text, this home goes on with the new one.
    IF content_hash <> (SELECT m.content_hash FROM memvec.memory_entries AS m WHERE m.id = v_stale)
        AND memvec.release_entry(v_stale, p_source) THEN
        SELECT * INTO v_put
          FROM memvec.put_entry(
              ROW(1, p_agent_identity, p_person_key, v_target, v_content, p_metadata, p_source, p_embed)::memvec.new_entry
          );
        id := v_put.id;
        outcome := 'released';
        RETURN;
    END IF;
    SELECT m.id INTO id
      FROM memvec.memory_entries AS m
     WHERE m.agent_identity = p_agent_identity
       AND m.person_key IS NOT DISTINCT FROM p_person_key
       AND m.target = v_target
       AND m.content_hash = swap_entry.content_hash;

    IF id IS NOT NULL AND id <> v_stale THEN
        INSERT INTO memvec.entry_sources (entry_id, source)
        SELECT swap_entry.id, s.source FROM memvec.entry_sources AS s WHERE s.entry_id = v_stale
        ON CONFLICT DO NOTHING;
        PERFORM memvec.retire_entry(v_stale, 'replace');
        outcome := 'merged';
    ELSE
        IF id IS NULL THEN
            PERFORM memvec.keep_history(v_stale, 'replace');
        END IF;
        UPDATE memvec.memory_entries AS m
           SET content = v_content,
               content_hash = swap_entry.content_hash,
               search = memvec.search_vector(v_content),
               search_version = memvec.setting('search_version')::integer,
               embed = CASE WHEN m.content_hash = swap_entry.content_hash THEN m.embed ELSE coalesce(p_embed, true) END,
               updated_at = now(),
               metadata = m.metadata || memvec.as_object(p_metadata)
         WHERE m.id = v_stale;
        -- Only now: until the row is locked, another session may still store a vector of the old text.
        IF id IS NULL THEN
            PERFORM memvec.forget_embeddings('entry', v_stale);
        END IF;
        id := v_stale;
        outcome := 'replaced';
    END IF;
    IF p_source IS NOT NULL THEN
        INSERT INTO memvec.entry_sources (entry_id, source) VALUES (swap_entry.id, p_source)
        ON CONFLICT (entry_id, source) DO UPDATE SET guessed = false WHERE entry_sources.guessed;
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.swap_entry IS
'Replaces one entry and returns its id and what happened; see replace_memory. The caller holds lock_entries. Internal.';
REVOKE ALL ON FUNCTION memvec.swap_entry FROM public;
