CREATE OR REPLACE FUNCTION memvec.recall_conversation(
    p_identity text,
    p_query text DEFAULT NULL,
    p_embedding public.halfvec DEFAULT NULL,
    p_space integer DEFAULT NULL,
    p_scope text DEFAULT 'own',
    p_limit integer DEFAULT 10,
    p_session_id text DEFAULT NULL,
    p_exclude_session text DEFAULT NULL,
    p_since timestamptz DEFAULT NULL,
    p_until timestamptz DEFAULT NULL,
    p_min_similarity real DEFAULT NULL,
    p_half_life interval DEFAULT NULL,
    p_governance jsonb DEFAULT NULL
)
RETURNS TABLE (
    id bigint,
    agent_identity text,
    session_id text,
    role text,
    content text,
    ts timestamptz,
    metadata jsonb,
    score real,
    rrf_score double precision,
    vector_rank integer,
    text_rank integer,
    themes text []
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
ROWS 10
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    v_filter memvec.recall_filter := memvec.resolve_filter(
        p_identity, p_scope, NULL, p_session_id, p_exclude_session, p_since, p_until, p_governance
    );
    v_limit integer := greatest(1, least(coalesce(p_limit, 10), 1000));
BEGIN
    RETURN QUERY
        SELECT c.id, c.agent_identity, c.session_id, c.role, c.content, c.ts, c.metadata,
               f.similarity, f.rrf_score, f.vector_rank, f.text_rank, f.themes
          FROM memvec.fused_rows(
                   'turn', p_query, p_embedding, p_space, v_filter, v_limit, p_min_similarity, p_half_life
               ) WITH ORDINALITY
               AS f (id, rrf_score, vector_rank, text_rank, similarity, words_share, themes, position)
          JOIN memvec.conversations AS c ON c.id = f.id
         ORDER BY f.position;
END;
$$;

COMMENT ON FUNCTION memvec.recall_conversation IS
'Returns chat turns by meaning and by words, best first, as recall_memory does for notes. p_scope also takes session (needs p_session_id). p_session_id: only turns of that session. p_exclude_session: no turns of that session. p_since, p_until: bounds on ts. Errors: MV001, MV002, MV003, MV004, MV005.';
REVOKE ALL ON FUNCTION memvec.recall_conversation FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.recall_conversation TO memvec_runtime, memvec_reader, memvec_admin;
