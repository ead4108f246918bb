CREATE OR REPLACE FUNCTION memvec.add_embedding_space(
    p_model text,
    p_dim integer,
    p_query_prefix text DEFAULT '',
    p_document_prefix text DEFAULT '',
    p_min_similarity real DEFAULT NULL
)
RETURNS integer
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms'  -- writers wait behind it
AS $$
DECLARE
    v_id integer;
BEGIN
    IF memvec.blankless(p_model) IS NULL OR p_dim IS NULL OR p_dim NOT BETWEEN 1 AND 16000 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('an embedding space needs a model and a width from 1 to 16000, not "%s" and %s', p_model, p_dim),
            HINT = 'For example: SELECT memvec.add_embedding_space(''nomic-embed-text'', 768);';
    END IF;
    -- No host is configured with such a name, so its vectors would never be used; and lists would be hard to read.
    IF length(p_model) > 300 OR p_model ~ '^[[:space:]]|[[:cntrl:]]|[[:space:]]$' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('the name of a model begins and ends with no blank, holds no control character and at most 300'
                             ' characters, not "%s"', left(p_model, 100)),
            HINT = 'Write it as embed_model has it in the configuration of the hosts.';
    END IF;
    v_id := memvec.create_space(p_model, p_dim, p_query_prefix, p_document_prefix, p_min_similarity);
    INSERT INTO memvec.maintenance_log (operation, table_name, parameters)
    VALUES ('add_embedding_space', 'embedding_spaces', jsonb_build_object('space', v_id, 'model', p_model, 'dim', p_dim));
    IF p_dim > 4000 THEN
        RAISE WARNING 'vectors of % dimensions cannot have an HNSW index (limit 4000): recall compares every row', p_dim;
    END IF;
    RETURN v_id;
END;
$$;

COMMENT ON FUNCTION memvec.add_embedding_space IS
'Adds the space of a model, its width and its task prefixes, and returns its id; the same again returns the same id. p_min_similarity: cosine below which two texts are unrelated for this model, the floor of prefetch. Widths above 4000 work without a vector index. Waits half a second at most for those who write: SQLSTATE 55P03 says to try again. Errors: MV001.';
REVOKE ALL ON FUNCTION memvec.add_embedding_space FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.add_embedding_space TO memvec_admin;
