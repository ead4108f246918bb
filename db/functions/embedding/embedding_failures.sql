CREATE OR REPLACE FUNCTION memvec.embedding_failures(p_space integer, p_limit integer DEFAULT 100)
RETURNS TABLE (
    kind text,
    id bigint,
    agent_identity text,
    attempts integer,
    given_up boolean,
    failed_at timestamptz,
    last_error text
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM memvec.checked_space(p_space, NULL);
    RETURN QUERY
        SELECT w.kind, w.row_id, coalesce(m.agent_identity, c.agent_identity), w.attempts,
               w.attempts >= memvec.setting('embed_max_attempts')::integer, w.failed_at, w.last_error
          FROM memvec.embedding_work AS w
          LEFT JOIN memvec.memory_entries AS m
            ON w.kind = 'entry' AND m.id = w.row_id AND m.content_hash = w.content_hash AND m.embed
          LEFT JOIN memvec.conversations AS c
            ON w.kind = 'turn' AND c.id = w.row_id AND c.content_hash = w.content_hash AND c.embed
         WHERE w.space_id = p_space
           AND w.failed_at IS NOT NULL
           AND (m.id IS NOT NULL OR c.id IS NOT NULL)
         ORDER BY w.failed_at DESC, w.kind, w.row_id
         LIMIT greatest(1, least(coalesce(p_limit, 100), 100000));
END;
$$;

COMMENT ON FUNCTION memvec.embedding_failures IS
'Returns rows that could not be embedded in a space, the latest first: kind, id, theme, failed attempts, whether the row was given up, when it failed last and why. At most p_limit (100,000). An error may quote a text, so only embedder and admin roles may call it. Errors: MV004.';
REVOKE ALL ON FUNCTION memvec.embedding_failures FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.embedding_failures TO memvec_embedder, memvec_admin;
