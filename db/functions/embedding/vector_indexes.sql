-- HNSW indexes are not made by a migration: a small table is faster without one, and a large one must be indexed
-- CONCURRENTLY, which no function can do. So this says what to run; psql does it with \gexec.
CREATE OR REPLACE FUNCTION memvec.vector_indexes()
RETURNS TABLE (
    space_id integer,
    kind text,
    table_name text,
    index_name text,
    rows bigint,
    state text,
    command text
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_small bigint := memvec.setting('exact_rows')::bigint;
    v_options text := format('m = %s, ef_construction = %s', memvec.setting('hnsw_m'), memvec.setting('hnsw_ef_construction'));
    v_table record;
    v_valid boolean;
BEGIN
    FOR v_table IN
        SELECT s.id, s.dim, t.kind, t.name
          FROM memvec.embedding_spaces AS s
         CROSS JOIN LATERAL (VALUES ('entry', s.entry_table), ('turn', s.turn_table)) AS t (kind, name)
         ORDER BY s.id, t.kind
    LOOP
        space_id := v_table.id;
        kind := v_table.kind;
        table_name := v_table.name;
        index_name := v_table.name || '_hnsw';
        EXECUTE format('SELECT count(*) FROM memvec.%I', v_table.name) INTO rows;
        v_valid := (SELECT i.indisvalid FROM pg_index AS i
                     WHERE i.indexrelid = to_regclass(format('memvec.%I', index_name)));
        command := NULL;
        IF v_valid THEN
            state := 'valid';
        ELSIF NOT v_valid THEN
            state := 'invalid';
            command := format('DROP INDEX CONCURRENTLY memvec.%I', index_name);
        ELSIF v_table.dim > 4000 THEN
            state := 'too wide';
        ELSE
            state := CASE WHEN rows > v_small THEN 'missing' ELSE 'small' END;
            command := format(
                'CREATE INDEX CONCURRENTLY %I ON memvec.%I USING hnsw (embedding public.halfvec_cosine_ops) WITH (%s)',
                index_name, v_table.name, v_options
            );
        END IF;
        RETURN NEXT;
    END LOOP;
END;
$$;

COMMENT ON FUNCTION memvec.vector_indexes IS
'Returns, for each table of vectors, its rows, its HNSW index and the index''s state, with the command that mends it: valid; missing (more than setting exact_rows rows, command makes it); small (no index needed yet); invalid (a build that failed, command drops it); too wide (over 4,000 dimensions, compared row by row). Run the commands as an owner or superuser, outside a transaction.';
REVOKE ALL ON FUNCTION memvec.vector_indexes FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.vector_indexes TO memvec_admin;
