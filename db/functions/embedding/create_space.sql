-- Two tables a space. The filter columns are repeated beside each vector so that a scan of one theme touches no other table,
-- and the vectors lie inline: out of line, an exact comparison takes four times as long. Wider vectors than a page can
-- hold inline go out of line all the same. Where a vector fits into an index row (2,704 bytes) beside names of 200 characters of
-- four bytes, the theme's index holds it too: the vectors of a theme then lie side by side instead of one a page, which
-- makes comparing them two to three times as fast.
CREATE OR REPLACE FUNCTION memvec.create_space(
    p_model text,
    p_dim integer,
    p_query_prefix text,
    p_document_prefix text,
    p_min_similarity real
)
RETURNS integer
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_id integer;
    v_entry name;
    v_turn name;
    c_entry_covered CONSTANT integer := 900;
    c_turn_covered CONSTANT integer := 500;
    v_storage text := CASE WHEN p_dim <= 3400 THEN 'PLAIN' ELSE 'EXTERNAL' END;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('memvec spaces', 0));
    v_id := memvec.find_space(p_model, p_dim, p_query_prefix, p_document_prefix);
    IF v_id IS NOT NULL THEN
        RETURN v_id;
    END IF;
    v_id := nextval(pg_get_serial_sequence('memvec.embedding_spaces', 'id'));
    v_entry := format('entry_embeddings_%s', v_id);
    v_turn := format('turn_embeddings_%s', v_id);
    INSERT INTO memvec.embedding_spaces
           (id, model, dim, query_prefix, document_prefix, min_similarity, entry_table, turn_table)
    OVERRIDING SYSTEM VALUE
    -- What is no cosine is no floor; one is measured then.
    VALUES (v_id, p_model, p_dim, coalesce(p_query_prefix, ''), coalesce(p_document_prefix, ''),
            CASE WHEN p_min_similarity BETWEEN -1 AND 1 THEN p_min_similarity END, v_entry, v_turn);

    EXECUTE format(
        'CREATE TABLE memvec.%I (
             id bigint PRIMARY KEY REFERENCES memvec.memory_entries (id) ON DELETE CASCADE,
             agent_identity text NOT NULL,
             person_key uuid,
             target text NOT NULL,
             embedding public.halfvec(%s) NOT NULL
         ) WITH (toast_tuple_target = 4080, autovacuum_vacuum_insert_scale_factor = 0.02)',
        v_entry, p_dim
    );
    EXECUTE format(
        'CREATE TABLE memvec.%I (
             id bigint PRIMARY KEY REFERENCES memvec.conversations (id) ON DELETE CASCADE,
             agent_identity text NOT NULL,
             person_key uuid,
             session_id text NOT NULL,
             ts timestamptz NOT NULL,
             embedding public.halfvec(%s) NOT NULL
         ) WITH (toast_tuple_target = 4080, autovacuum_vacuum_insert_scale_factor = 0.02)',
        v_turn, p_dim
    );
    -- No plan depends on what the vectors are, so the planner keeps no samples of them.
    EXECUTE format('ALTER TABLE memvec.%I ALTER embedding SET STORAGE %s, ALTER embedding SET STATISTICS 0', v_entry, v_storage);
    EXECUTE format('ALTER TABLE memvec.%I ALTER embedding SET STORAGE %s, ALTER embedding SET STATISTICS 0', v_turn, v_storage);
    EXECUTE format('CREATE INDEX ON memvec.%I (agent_identity, person_key) %s', v_entry,
                   CASE WHEN p_dim <= c_entry_covered THEN 'INCLUDE (id, target, embedding)' END);
    EXECUTE format('CREATE INDEX ON memvec.%I (agent_identity, person_key, session_id) %s', v_turn,
                   CASE WHEN p_dim <= c_turn_covered THEN 'INCLUDE (id, ts, embedding)' END);
    -- An hour's turns are found by it, whatever else is in the table.
    EXECUTE format('CREATE INDEX ON memvec.%I USING brin (ts) WITH (pages_per_range = 32, autosummarize = on)', v_turn);
    EXECUTE format('ALTER TABLE memvec.%I ENABLE ROW LEVEL SECURITY', v_entry);
    EXECUTE format('ALTER TABLE memvec.%I ENABLE ROW LEVEL SECURITY', v_turn);
    RETURN v_id;
END;
$$;

COMMENT ON FUNCTION memvec.create_space IS
'Makes the tables of an embedding space, unless it exists, and returns its id. Two callers at once get the same one. Internal.';
REVOKE ALL ON FUNCTION memvec.create_space FROM public;
