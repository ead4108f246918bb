CREATE OR REPLACE FUNCTION memvec.recall_memory(
    p_identity text,
    p_query text DEFAULT NULL,
    p_embedding public.halfvec DEFAULT NULL,
    p_space integer DEFAULT NULL,
    p_scope text DEFAULT 'own',
    p_target text DEFAULT NULL,
    p_limit integer DEFAULT 10,
    p_since timestamptz DEFAULT NULL,
    p_until timestamptz DEFAULT NULL,
    p_min_similarity real DEFAULT NULL,
    p_half_life interval DEFAULT NULL,
    p_governance jsonb DEFAULT NULL
)
RETURNS TABLE (
    id bigint,
    agent_identity text,
    target text,
    content text,
    created_at timestamptz,
    updated_at timestamptz,
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
    v_filter memvec.recall_filter;
    v_limit integer := greatest(1, least(coalesce(p_limit, 10), 1000));
BEGIN
    IF memvec.clean_key(p_scope) = 'session' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = 'notes have no session',
            HINT = 'Use scope own, all or a theme name, or memvec.recall_conversation.';
    END IF;
    v_filter := memvec.resolve_filter(p_identity, p_scope, p_target, NULL, NULL, p_since, p_until, p_governance);
    RETURN QUERY
        SELECT m.id, m.agent_identity, m.target, m.content, m.created_at, m.updated_at, m.metadata,
               f.similarity, f.rrf_score, f.vector_rank, f.text_rank, f.themes
          FROM memvec.fused_rows(
                   'entry', p_query, p_embedding, p_space, v_filter, v_limit, p_min_similarity, p_half_life
               ) WITH ORDINALITY
               AS f (id, rrf_score, vector_rank, text_rank, similarity, words_share, themes, position)
          JOIN memvec.memory_entries AS m ON m.id = f.id
         ORDER BY f.position;
END;
$$;

COMMENT ON FUNCTION memvec.recall_memory IS
'Returns notes by meaning and by words, best first. p_query: the question (any word may match, rare ones count more; no operators). p_embedding: its vector in space p_space; without it, words only; without either, no rows. p_scope: own (the default), all (own rows and every ordinary theme that bindings and allow-lists leave; each text once, with all the themes that hold it), or a theme. p_target: memory, user, or both. p_limit: 1 to 1000 (the nearest of them when it is outside). p_since, p_until: bounds on updated_at. p_min_similarity: floor of the vector leg. p_half_life: age at which a score counts half; none when it is not above zero. score is the cosine similarity or NULL, rrf_score orders the rows, vector_rank and text_rank tell which leg found them. Errors: MV001, MV002, MV003 scope refused, MV004 unknown space, MV005 width.';
REVOKE ALL ON FUNCTION memvec.recall_memory FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.recall_memory TO memvec_runtime, memvec_reader, memvec_admin;
