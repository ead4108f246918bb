-- What is put before the model without being asked for must be relevant, or nothing: a row passes if it is near enough in
-- meaning, or holds enough of the question's words.
CREATE OR REPLACE FUNCTION memvec.prefetch(
    p_identity text,
    p_query text,
    p_embedding public.halfvec DEFAULT NULL,
    p_space integer DEFAULT NULL,
    p_limit integer DEFAULT 5,
    p_min_similarity real DEFAULT NULL,
    p_exclude_session text DEFAULT NULL,
    p_governance jsonb DEFAULT NULL
)
RETURNS TABLE (
    kind text,
    id bigint,
    agent_identity text,
    target text,
    session_id text,
    role text,
    content text,
    ts timestamptz,
    score real,
    rrf_score double precision,
    vector_rank integer,
    text_rank integer
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
ROWS 5
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    v_filter memvec.recall_filter := memvec.resolve_filter(
        p_identity, 'own', NULL, NULL, p_exclude_session, NULL, NULL, p_governance
    );
    v_limit integer := greatest(1, least(coalesce(p_limit, 5), 50));
    v_least_words real := memvec.setting('prefetch_min_words')::real;
    v_floor real := coalesce(
        p_min_similarity, (SELECT s.min_similarity FROM memvec.embedding_spaces AS s WHERE s.id = p_space)
    );
    -- Until a floor is known, nearness says nothing: by words only.
    v_embedding public.halfvec := CASE WHEN v_floor IS NOT NULL THEN p_embedding END;
BEGIN
    IF p_embedding IS NOT NULL THEN
        PERFORM memvec.checked_space(p_space, p_embedding);
    END IF;
    RETURN QUERY
        WITH ranked AS (
            SELECT 'entry' AS kind, f.*
              FROM memvec.fused_rows('entry', p_query, v_embedding, p_space, v_filter, v_limit * 3, v_floor, NULL) AS f
            UNION ALL
            SELECT 'turn', f.*
              FROM memvec.fused_rows('turn', p_query, v_embedding, p_space, v_filter, v_limit * 3, v_floor, NULL) AS f
        ), relevant AS (
            SELECT r.* FROM ranked AS r WHERE r.similarity >= v_floor OR r.words_share >= v_least_words
        ), texts AS (
            SELECT r.*, m.agent_identity, m.target, NULL::text AS session_id, NULL::text AS role, m.content,
                   m.content_hash, m.updated_at AS ts
              FROM relevant AS r
              JOIN memvec.memory_entries AS m ON r.kind = 'entry' AND m.id = r.id
            UNION ALL
            SELECT r.*, c.agent_identity, NULL, c.session_id, c.role, c.content, c.content_hash, c.ts
              FROM relevant AS r
              JOIN memvec.conversations AS c ON r.kind = 'turn' AND c.id = r.id
        ), once AS (
            SELECT DISTINCT ON (t.content_hash) t.*
              FROM texts AS t
             ORDER BY t.content_hash, t.rrf_score DESC, t.kind, t.ts DESC
        )
        SELECT o.kind, o.id, o.agent_identity, o.target, o.session_id, o.role, o.content, o.ts,
               o.similarity, o.rrf_score, o.vector_rank, o.text_rank
          FROM once AS o
         ORDER BY o.rrf_score DESC, o.kind, o.ts DESC, o.id DESC
         LIMIT v_limit;
END;
$$;

COMMENT ON FUNCTION memvec.prefetch IS
'Returns the notes and turns of the caller''s own theme that bear on what was just said, each text once, best first, or nothing. A row passes by its cosine similarity (p_min_similarity, else the space''s own floor; where neither is known, by words only) or by the share of the question''s words it holds (setting prefetch_min_words). p_exclude_session: the session whose turns the model still sees. p_limit: 1 to 50 (the nearest of them when it is outside). Errors: MV002, MV004, MV005.';
REVOKE ALL ON FUNCTION memvec.prefetch FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.prefetch TO memvec_runtime, memvec_reader, memvec_admin;
