CREATE OR REPLACE FUNCTION memvec.health_vectors()
RETURNS SETOF memvec.finding
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c_late CONSTANT interval := '1 hour';
    v_space record;
    v_index record;
BEGIN
    IF NOT EXISTS (SELECT FROM memvec.embedding_spaces) THEN
        RETURN NEXT ROW('vectors', 'spaces', 'ok', 'there is no embedding space yet: recall is by words', NULL, '[]')::memvec.finding;
        RETURN;
    END IF;
    RETURN QUERY SELECT 'vectors', 'spaces', 'ok', string_agg(format('%s (%s)', s.model, s.dim), ', ' ORDER BY s.id), NULL::text,
           jsonb_agg(jsonb_build_object('id', s.id, 'model', s.model, 'dim', s.dim, 'query_prefix', s.query_prefix,
                                        'document_prefix', s.document_prefix) ORDER BY s.id)
      FROM memvec.embedding_spaces AS s;

    FOR v_space IN
        SELECT c.space_id, c.model, sum(c.rows) AS rows, sum(c.pending) AS pending, sum(c.failed) AS failed,
               min(c.oldest_pending) AS oldest
          FROM memvec.embedding_coverage() AS c
         GROUP BY c.space_id, c.model
         ORDER BY c.space_id
    LOOP
        RETURN QUERY SELECT 'vectors', format('pending of space %s', v_space.space_id),
            CASE WHEN v_space.failed > 0 OR v_space.oldest < now() - c_late THEN 'warning' ELSE 'ok' END,
            format('%s: %s of %s rows wait for a vector', v_space.model, v_space.pending, v_space.rows)
                || CASE WHEN v_space.failed > 0 THEN format(', %s of them failed', v_space.failed) ELSE '' END
                || CASE WHEN v_space.oldest < now() - c_late
                        THEN format(', the oldest since %s', to_char(v_space.oldest AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'))
                        ELSE '' END,
            CASE WHEN v_space.failed > 0 THEN 'hermes-pgsql backfill --retry' ELSE 'hermes-pgsql backfill' END, to_jsonb(v_space.pending);
    END LOOP;

    FOR v_index IN SELECT * FROM memvec.vector_indexes() LOOP
        RETURN QUERY SELECT 'vectors', format('index of %s', v_index.table_name),
            CASE v_index.state WHEN 'invalid' THEN 'failure' WHEN 'missing' THEN 'warning' ELSE 'ok' END,
            CASE v_index.state
                WHEN 'valid' THEN 'the HNSW index is valid'
                WHEN 'small' THEN 'small enough to be searched without an HNSW index'
                WHEN 'too wide' THEN 'wider than 4,000 dimensions: searched without an HNSW index'
                WHEN 'missing' THEN 'there is no HNSW index, and every row is compared'
                ELSE 'a build of the HNSW index failed and left one that answers nothing' END,
            'hermes-pgsql index --admin-dsn DSN', to_jsonb(v_index.state);
    END LOOP;
END;
$$;

COMMENT ON FUNCTION memvec.health_vectors IS
'Returns what memvec.health says of embedding spaces: models, rows that wait for a vector for more than an hour or failed, HNSW indexes. Internal.';
REVOKE ALL ON FUNCTION memvec.health_vectors FROM public;
