-- The door for what comes from elsewhere: the older plugin's tables, memory files, exports. A batch is one transaction under
-- the writers' locks, taken in the order in which everybody takes them; a bad row is reported and does not stop the rest.
CREATE OR REPLACE FUNCTION memvec.import_rows(
    p_rows jsonb,
    p_space integer DEFAULT NULL,
    p_embeddings public.halfvec [] DEFAULT NULL,
    p_dry_run boolean DEFAULT false,
    p_import bigint DEFAULT NULL
)
RETURNS TABLE (
    ordinal integer,
    kind text,
    outcome text,
    agent_identity text,
    reason text,
    embedded boolean,
    message text
)
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    v_space memvec.embedding_spaces;
    v_rows memvec.import_row[];
    v_locks memvec.entry_lock[];
    v_done memvec.import_row[] := '{}';
    v_some memvec.import_row[];
    v_embedded_entries bigint[] := '{}';
    v_embedded_turns bigint[] := '{}';
BEGIN
    PERFORM memvec.assert_read_committed();
    IF p_rows IS NULL OR jsonb_typeof(p_rows) <> 'array'
        OR coalesce(cardinality(p_embeddings), jsonb_array_length(p_rows)) <> jsonb_array_length(p_rows) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = 'import_rows needs an array of rows, and as many vectors if any',
            HINT = 'For example: [{"kind": "entry", "identity": "marketing", "target": "memory", "content": "…"}]';
    END IF;
    IF p_embeddings IS NOT NULL THEN
        v_space := memvec.checked_space(p_space, NULL);
        PERFORM memvec.checked_space(p_space, e.embedding)
           FROM unnest(p_embeddings) AS e (embedding)
          WHERE public.vector_dims(e.embedding) <> v_space.dim;
    END IF;

    IF NOT p_dry_run THEN
        SELECT array_agg(ROW(l.agent_identity, l.person_key, l.target)::memvec.entry_lock) INTO v_locks FROM memvec.import_locks(p_rows) AS l;
        PERFORM memvec.lock_theme(t.agent_identity)
           FROM (SELECT DISTINCT l.agent_identity FROM unnest(v_locks) AS l ORDER BY 1) AS t;
        PERFORM memvec.lock_entries(l.agent_identity, l.person_key, l.target)
           FROM unnest(v_locks) AS l WHERE l.target IS NOT NULL;
    END IF;
    v_rows := memvec.resolve_import(p_rows);
    -- A theme may have been renamed while we waited for it.
    IF NOT p_dry_run
        AND EXISTS (SELECT r.agent_identity FROM unnest(v_rows) AS r WHERE r.outcome IS NULL
                    EXCEPT
                    SELECT l.agent_identity FROM unnest(v_locks) AS l) THEN
        RAISE EXCEPTION USING
            ERRCODE = '40001',
            MESSAGE = 'a theme was renamed while the import waited for it',
            HINT = 'Import these rows again.';
    END IF;

    SELECT array_agg(r) INTO v_some FROM unnest(v_rows) AS r WHERE r.outcome IS NULL AND r.kind = 'entry';
    IF v_some IS NOT NULL THEN
        v_done := v_done || memvec.import_entries(v_some, p_dry_run);
    END IF;
    SELECT array_agg(r) INTO v_some FROM unnest(v_rows) AS r WHERE r.outcome IS NULL AND r.kind = 'turn';
    IF v_some IS NOT NULL THEN
        v_done := v_done || memvec.import_turns(v_some, p_dry_run);
    END IF;
    SELECT v_done || coalesce(array_agg(memvec.import_edge(r, p_dry_run) ORDER BY r.ordinal), '{}')
      INTO v_done
      FROM unnest(v_rows) AS r
     WHERE r.outcome IS NULL AND r.kind = 'edge';
    SELECT v_done || coalesce(array_agg(memvec.import_agent(r, p_dry_run) ORDER BY r.ordinal), '{}')
      INTO v_done
      FROM unnest(v_rows) AS r
     WHERE r.outcome IS NULL AND r.kind = 'agent';

    IF NOT p_dry_run THEN
        PERFORM memvec.import_traces(v_done);
        IF p_embeddings IS NOT NULL THEN
            SELECT coalesce(array_agg(p.id), '{}') INTO v_embedded_entries
              FROM memvec.put_embeddings(
                  v_space, 'entry',
                  (SELECT array_agg(d.row_id ORDER BY d.ordinal) FROM unnest(v_done) AS d WHERE d.kind = 'entry'),
                  (SELECT array_agg(e.embedding ORDER BY d.ordinal)
                     FROM unnest(v_done) AS d
                     JOIN unnest(p_embeddings) WITH ORDINALITY AS e (embedding, ordinal) ON e.ordinal = d.ordinal
                    WHERE d.kind = 'entry')
              ) AS p (id);
            SELECT coalesce(array_agg(p.id), '{}') INTO v_embedded_turns
              FROM memvec.put_embeddings(
                  v_space, 'turn',
                  (SELECT array_agg(d.row_id ORDER BY d.ordinal) FROM unnest(v_done) AS d WHERE d.kind = 'turn'),
                  (SELECT array_agg(e.embedding ORDER BY d.ordinal)
                     FROM unnest(v_done) AS d
                     JOIN unnest(p_embeddings) WITH ORDINALITY AS e (embedding, ordinal) ON e.ordinal = d.ordinal
                    WHERE d.kind = 'turn')
              ) AS p (id);
        END IF;
    END IF;
    PERFORM memvec.note_import(
        p_import, v_done, cardinality(v_embedded_entries) + cardinality(v_embedded_turns), coalesce(p_dry_run, false)
    );

    RETURN QUERY
        SELECT r.ordinal, r.kind, coalesce(d.outcome, r.outcome), r.agent_identity, r.reason,
               CASE r.kind WHEN 'entry' THEN d.row_id = ANY (v_embedded_entries) WHEN 'turn' THEN d.row_id = ANY (v_embedded_turns)
               END IS TRUE
               AND row_number() OVER (PARTITION BY r.kind, d.row_id ORDER BY r.ordinal) = 1,
               coalesce(d.message, r.message)
          FROM unnest(v_rows) AS r
          LEFT JOIN unnest(v_done) AS d ON d.ordinal = r.ordinal
         ORDER BY r.ordinal;
END;
$$;

COMMENT ON FUNCTION memvec.import_rows IS
'Stores rows that come from elsewhere and returns one row for each in order: outcome added, duplicate or refused (with a message), the theme it went to and why (as in canonical_identity; person or nobody for rows of a sink), and whether its vector was stored. p_rows: objects of kind entry (identity, target, content, created_at, updated_at, metadata, embed, sources), turn (identity, session_id, parent_session_id, role, content, ts, metadata, embed), edge (identity, session_id, child_identity, child_session_id, created_at, attrs) or agent (identity, first_seen, last_seen, attrs). identity is a raw key, governed as any other; raw_identity: the chat key noted beside a sink''s name; person: the person of a sink''s row in an export. Times are kept; a duplicate is left as it is, except that a vector it lacked is stored and sources are noted. p_embeddings: their vectors in space p_space, position by position, NULL for none. p_dry_run: nothing is stored, the outcomes are what would be. p_import: the row of maintenance_log to count in (begin_import); NULL: a row of its own. Errors: MV001 not an array, not an import, MV004, MV005, MV006; 40001, 40P01 and 55P03 mean: nothing was stored, send the rows again.';
REVOKE ALL ON FUNCTION memvec.import_rows FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.import_rows TO memvec_admin;
