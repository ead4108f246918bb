CREATE OR REPLACE FUNCTION memvec.pending_embeddings(
    p_space integer,
    OUT counted_at timestamptz,
    OUT pending bigint,
    OUT leased bigint,
    OUT failed bigint,
    OUT given_up bigint
)
RETURNS record
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_space memvec.embedding_spaces := memvec.checked_space(p_space, NULL);
BEGIN
    counted_at := now();
    EXECUTE format(
        $count$
        SELECT count(*), count(*) FILTER (WHERE w.leased_until > now()),
               count(*) FILTER (WHERE w.leased_until <= now() AND w.attempts BETWEEN 1 AND $2 - 1),
               count(*) FILTER (WHERE w.leased_until <= now() AND w.attempts >= $2)
          FROM (SELECT 'entry' AS kind, m.id, m.content_hash
                  FROM memvec.memory_entries AS m
                 WHERE m.embed AND NOT EXISTS (SELECT FROM memvec.%1$I AS e WHERE e.id = m.id)
                UNION ALL
                SELECT 'turn', c.id, c.content_hash
                  FROM memvec.conversations AS c
                 WHERE c.embed AND NOT EXISTS (SELECT FROM memvec.%2$I AS e WHERE e.id = c.id)) AS r
          LEFT JOIN memvec.embedding_work AS w
            ON w.space_id = $1 AND w.kind = r.kind AND w.row_id = r.id AND w.content_hash = r.content_hash
        $count$,
        v_space.entry_table, v_space.turn_table
    ) INTO pending, leased, failed, given_up USING p_space, memvec.setting('embed_max_attempts')::integer;
END;
$$;

COMMENT ON FUNCTION memvec.pending_embeddings IS
'Returns the present moment, how many rows lack a vector in a space, how many of those are leased to a worker, how many have failed and will be tried again, and how many were given up after embed_max_attempts failures. Errors: MV004.';
REVOKE ALL ON FUNCTION memvec.pending_embeddings FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.pending_embeddings TO memvec_embedder, memvec_admin;
