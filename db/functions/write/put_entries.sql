-- New entries, one or a batch. Texts that are there already stay untouched; the second statement looks everything up with a
-- fresh snapshot, because what stood in the way may have been committed a moment ago.
CREATE OR REPLACE FUNCTION memvec.put_entries(p_entries memvec.new_entry [])
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
    v_new bigint[];
    v_found bigint;
BEGIN
    SELECT array_agg(c.content), array_agg(memvec.content_hash(c.content))
      INTO v_contents, v_hashes
      FROM (SELECT memvec.blankless(e.content) AS content FROM unnest(p_entries) AS e OFFSET 0) AS c;
    PERFORM memvec.checked_content(e.trimmed), memvec.checked_target(e.target)
       FROM unnest(p_entries, v_contents) AS e (
                ordinal, agent_identity, person_key, target, content, metadata, source, embed, trimmed
            )
      WHERE e.trimmed IS NULL OR e.target IS NULL OR e.target NOT IN ('memory', 'user');
    SELECT memvec.setting('search_language')::regconfig, memvec.setting('search_version')::integer INTO v_language, v_version;
    WITH stored AS (
        INSERT INTO memvec.memory_entries AS m
               (agent_identity, person_key, target, content, content_hash, search, search_version, embed, metadata)
        SELECT e.agent_identity, e.person_key, e.target, e.trimmed, e.content_hash,
               memvec.search_vector(e.trimmed, v_language), v_version, coalesce(e.embed, true), memvec.as_object(e.metadata)
          FROM unnest(p_entries, v_contents, v_hashes) AS e (
                   ordinal, agent_identity, person_key, target, content, metadata, source, embed, trimmed, content_hash
               )
        ON CONFLICT (agent_identity, content_hash, target, person_key) DO NOTHING
        RETURNING m.id
    )
    SELECT array_agg(s.id ORDER BY s.id) INTO v_new FROM stored AS s;
    -- All new and from no file, as most often: ids were given in the order of the entries.
    IF cardinality(v_new) = cardinality(p_entries)
        AND NOT EXISTS (SELECT FROM unnest(p_entries) AS e WHERE e.source IS NOT NULL) THEN
        RETURN QUERY
            SELECT e.ordinal, e.id, 'added', memvec.vector_hash(e.content_hash, e.person_key)
              FROM unnest(p_entries, v_new, v_hashes) AS e (
                       ordinal, agent_identity, person_key, target, content, metadata, source, embed, id, content_hash
                   );
        RETURN;
    END IF;

    RETURN QUERY
        WITH found AS MATERIALIZED (
            SELECT e.ordinal, e.source, m.id, memvec.vector_hash(m.content_hash, m.person_key) AS content_hash
              FROM unnest(p_entries, v_hashes) AS e (
                       ordinal, agent_identity, person_key, target, content, metadata, source, embed, content_hash
                   )
              JOIN memvec.memory_entries AS m
                ON m.agent_identity = e.agent_identity
               AND m.content_hash = e.content_hash
               AND m.target = e.target
               AND m.person_key IS NOT DISTINCT FROM e.person_key
        ), held AS (
            INSERT INTO memvec.entry_sources (entry_id, source)
            SELECT DISTINCT f.id, f.source FROM found AS f WHERE f.source IS NOT NULL
            ON CONFLICT (entry_id, source) DO UPDATE SET guessed = false WHERE entry_sources.guessed
        )
        SELECT f.ordinal, f.id,
               CASE WHEN f.id = ANY (v_new) AND row_number() OVER (PARTITION BY f.id ORDER BY f.ordinal) = 1
                    THEN 'added' ELSE 'duplicate'
               END,
               f.content_hash
          FROM found AS f
         ORDER BY f.ordinal;
    GET DIAGNOSTICS v_found = ROW_COUNT;
    IF v_found < cardinality(p_entries) THEN
        RAISE EXCEPTION USING
            ERRCODE = '40001',
            MESSAGE = 'an entry that was there already was deleted at the same moment',
            HINT = 'Try again.';
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.put_entries IS
'Stores entries once each and returns, for each in their order, its id, added or duplicate, and its content hash (vector_hash). The caller holds lock_entries for them. Errors: MV001 blank content or unknown target (nothing is stored). Internal.';
REVOKE ALL ON FUNCTION memvec.put_entries FROM public;
