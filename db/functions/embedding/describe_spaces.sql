CREATE OR REPLACE FUNCTION memvec.describe_spaces()
RETURNS TABLE (
    space_id integer,
    model text,
    dim integer,
    query_prefix text,
    document_prefix text,
    min_similarity real,
    created_at timestamptz,
    kind text,
    bytes bigint,
    index_state text
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_everything boolean := memvec.visible_themes() IS NULL;
BEGIN
    RETURN QUERY
        SELECT s.id, s.model, s.dim, s.query_prefix, s.document_prefix, s.min_similarity, s.created_at, t.kind,
               CASE WHEN v_everything THEN pg_total_relation_size(format('memvec.%I', t.name)::regclass) END,
               CASE WHEN NOT v_everything THEN NULL
                    WHEN i.indisvalid THEN 'valid'
                    WHEN NOT i.indisvalid THEN 'invalid'
                    WHEN s.dim > 4000 THEN 'too wide'
                    ELSE 'none' END
          FROM memvec.embedding_spaces AS s
         CROSS JOIN LATERAL (VALUES ('entry', s.entry_table), ('turn', s.turn_table)) AS t (kind, name)
          LEFT JOIN pg_index AS i ON i.indexrelid = to_regclass(format('memvec.%I', t.name || '_hnsw'))
         ORDER BY s.id, t.kind;
END;
$$;

COMMENT ON FUNCTION memvec.describe_spaces IS
'Returns the embedding spaces, a row for each kind (entry, turn): model, width, task prefixes, floor, when it was added, the size of its table with indexes in bytes, and the state of its HNSW index: valid, invalid (a build that failed), none, or too wide (over 4,000 dimensions). Size and index are NULL for a login that may not read every theme.';
REVOKE ALL ON FUNCTION memvec.describe_spaces FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.describe_spaces TO memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
