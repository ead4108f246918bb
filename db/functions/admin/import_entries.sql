-- Besides put_entries because an import keeps its times, and most of a second run is there already: what is known is looked
-- up first, which holds, since nobody else changes these entries under the caller's locks.
CREATE OR REPLACE FUNCTION memvec.import_entries(p_rows memvec.import_row [], p_dry_run boolean)
RETURNS memvec.import_row []
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_rows memvec.import_row[] := p_rows;
    v_hashes bytea[];
    v_language regconfig;
    v_version integer;
BEGIN
    SELECT array_agg(memvec.content_hash(memvec.blankless(r.arguments ->> 'content')) ORDER BY r.place)
      INTO v_hashes
      FROM unnest(p_rows) WITH ORDINALITY AS r (
               ordinal, kind, agent_identity, person_key, reason, arguments, outcome, row_id, message, place
           );
    v_rows := memvec.find_imported(v_rows, v_hashes);
    IF p_dry_run OR NOT EXISTS (SELECT FROM unnest(v_rows) AS r WHERE r.outcome = 'added') THEN
        RETURN v_rows;
    END IF;

    SELECT memvec.setting('search_language')::regconfig, memvec.setting('search_version')::integer INTO v_language, v_version;
    INSERT INTO memvec.memory_entries
           (agent_identity, person_key, target, content, content_hash, search, search_version, embed, created_at, updated_at,
            metadata)
    SELECT n.agent_identity, n.person_key, n.target, n.content, n.content_hash,
           memvec.search_vector(n.content, v_language), v_version, n.embed, n.created_at,
           greatest(n.created_at, memvec.import_moment(n.updated_at, n.created_at)), n.metadata
      FROM (SELECT r.agent_identity, r.person_key, r.arguments ->> 'target' AS target,
                   memvec.blankless(r.arguments ->> 'content') AS content, r.content_hash,
                   coalesce((r.arguments ->> 'embed')::boolean, true) AS embed,
                   memvec.import_moment(r.arguments ->> 'created_at', now()) AS created_at,
                   r.arguments ->> 'updated_at' AS updated_at,
                   memvec.as_object(r.arguments -> 'metadata') - 'raw_identity' AS metadata
              FROM unnest(v_rows, v_hashes) AS r (
                       ordinal, kind, agent_identity, person_key, reason, arguments, outcome, row_id, message, content_hash
                   )
             WHERE r.outcome = 'added'
             ORDER BY r.ordinal
            OFFSET 0) AS n;
    RETURN memvec.find_imported(v_rows, v_hashes);
END;
$$;

COMMENT ON FUNCTION memvec.import_entries IS
'Stores the entries of an import that are not there yet and returns all with their outcome (added or duplicate) and row id; in a dry run nothing is stored and the id of what would be added is NULL. The caller holds lock_entries for them. Internal.';
REVOKE ALL ON FUNCTION memvec.import_entries FROM public;
