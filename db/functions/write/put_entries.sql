-- New entries, one or a batch. Texts that are there already stay untouched; the second statement looks everything up with a
-- fresh snapshot, because what stood in the way may have been committed a moment ago.
CREATE OR REPLACE FUNCTION memvec.put_entries(p_entries memvec.new_entry [])
RETURNS TABLE (ordinal integer, id bigint, outcome text, content_hash bytea)
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_language regconfig;
    v_version integer;
    v_new bigint[];
    v_found bigint;
BEGIN
    PERFORM memvec.checked_content(e.content), memvec.checked_target(e.target) FROM unnest(p_entries) AS e;
    SELECT memvec.setting('search_language')::regconfig, memvec.setting('search_version')::integer INTO v_language, v_version;
    WITH stored AS (
        INSERT INTO memvec.memory_entries AS m
               (agent_identity, person_key, target, content, content_hash, search, search_version, embed, metadata)
        SELECT e.agent_identity, e.person_key, e.target, memvec.blankless(e.content),
               memvec.content_hash(memvec.blankless(e.content)), memvec.search_vector(e.content, v_language), v_version,
               coalesce(e.embed, true), memvec.as_object(e.metadata)
          FROM unnest(p_entries) AS e
         ORDER BY e.ordinal
        ON CONFLICT (agent_identity, content_hash, target, person_key) DO NOTHING
        RETURNING m.id
    )
    SELECT array_agg(s.id) INTO v_new FROM stored AS s;

    RETURN QUERY
        WITH found AS MATERIALIZED (
            SELECT e.ordinal, e.source, m.id, m.content_hash
              FROM unnest(p_entries) AS e
              JOIN memvec.memory_entries AS m
                ON m.agent_identity = e.agent_identity
               AND m.content_hash = memvec.content_hash(memvec.blankless(e.content))
               AND m.target = e.target
               AND m.person_key IS NOT DISTINCT FROM e.person_key
        ), held AS (
            INSERT INTO memvec.entry_sources (entry_id, source)
            SELECT f.id, f.source FROM found AS f WHERE f.source IS NOT NULL
            ON CONFLICT DO NOTHING
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
            MESSAGE = 'a entry that was there already was deleted at the same moment',
            HINT = 'Try again.';
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.put_entries IS
'Stores entries once each and returns, for each in their order, its id, added or duplicate, and its content hash. The caller holds lock_entries for them. Errors: MV001 blank content or unknown target (nothing is stored). Internal.';
REVOKE ALL ON FUNCTION memvec.put_entries FROM public;
