-- The whole of a client's start in one round trip. The first client that names a model registers the first space; a later
-- one with another model keeps working by words until an administrator adds that space.
CREATE OR REPLACE FUNCTION memvec.hello(
    p_identity text,
    p_model text DEFAULT NULL,
    p_dim integer DEFAULT NULL,
    p_query_prefix text DEFAULT '',
    p_document_prefix text DEFAULT '',
    p_min_similarity real DEFAULT NULL,
    p_governance jsonb DEFAULT NULL,
    OUT agent_identity text,
    OUT kind text,
    OUT schema_version integer,
    OUT space_id integer,
    OUT entries bigint,
    OUT turns bigint,
    OUT warnings text []
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
    SELECT * INTO v_who FROM memvec.acting_as(p_identity, p_governance);
    agent_identity := v_who.agent_identity;
    kind := v_who.kind;
    schema_version := memvec.schema_version();
    warnings := '{}';
    PERFORM memvec.touch_agent(v_who.agent_identity, v_who.kind, '{}');

    IF memvec.blankless(p_model) IS NOT NULL AND p_dim IS NOT NULL THEN
        space_id := memvec.find_space(p_model, p_dim, p_query_prefix, p_document_prefix);
        IF space_id IS NULL AND NOT EXISTS (SELECT FROM memvec.embedding_spaces) AND p_dim BETWEEN 1 AND 16000 THEN
            -- Of two first clients with different models only one may register its own: look again under the lock.
            PERFORM pg_advisory_xact_lock(hashtextextended('memvec spaces', 0));
            space_id := memvec.find_space(p_model, p_dim, p_query_prefix, p_document_prefix);
            IF space_id IS NULL AND NOT EXISTS (SELECT FROM memvec.embedding_spaces) THEN
                space_id := memvec.create_space(p_model, p_dim, p_query_prefix, p_document_prefix, p_min_similarity);
            END IF;
        END IF;
        IF space_id IS NULL THEN
            warnings := warnings || memvec.missing_space(p_model, p_dim, p_query_prefix, p_document_prefix);
        END IF;
    END IF;

    SELECT count(*) INTO entries
      FROM memvec.memory_entries AS m
     WHERE memvec.in_scope(m.agent_identity, m.person_key, v_who.agent_identity, v_who.person_key, false, NULL);
    SELECT coalesce(sum(c.rows), 0) INTO turns
      FROM memvec.theme_counts AS c
     WHERE c.kind = 'turn' AND c.agent_identity = v_who.agent_identity AND v_who.person_key IS NULL;
END;
$$;

COMMENT ON FUNCTION memvec.hello IS
'Returns what a client needs to begin: its theme and kind, the schema version, the embedding space of its model (NULL when it has none), the number of its entries, an estimate of its turns, and warnings for the operator. Registers the theme, and the space if it is the database''s first. Errors: MV002.';
REVOKE ALL ON FUNCTION memvec.hello FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.hello TO memvec_runtime, memvec_admin;
