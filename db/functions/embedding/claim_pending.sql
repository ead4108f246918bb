-- Parallel workers share the rows that lack a vector by leases: a claimed row is left alone until its lease ends, a failed
-- one until its pause ends, and a worker that dies gives its rows back by itself.
CREATE OR REPLACE FUNCTION memvec.claim_pending(p_space integer, p_limit integer DEFAULT 64)
RETURNS TABLE (kind text, id bigint, content text, content_hash bytea, attempts integer)
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_space memvec.embedding_spaces := memvec.checked_space(p_space, NULL);
    v_limit integer := greatest(1, least(coalesce(p_limit, 64), 1000));
    v_lease interval := make_interval(secs => memvec.setting('lease_seconds')::integer);
    v_most integer := memvec.setting('embed_max_attempts')::integer;
BEGIN
    -- Claiming is short and embedding long, so claimers take turns instead of skipping each other's rows.
    PERFORM pg_advisory_xact_lock(hashtextextended('memvec claim ' || p_space, 0));
    RETURN QUERY EXECUTE format(
        $claim$
        WITH pending AS (
            (SELECT 'entry' AS kind, m.id, m.content, m.content_hash, m.person_key
               FROM memvec.memory_entries AS m
              WHERE m.embed
                AND NOT EXISTS (SELECT FROM memvec.%1$I AS e WHERE e.id = m.id)
                AND NOT EXISTS (SELECT FROM memvec.embedding_work AS w
                                 WHERE w.space_id = $1 AND w.kind = 'entry' AND w.row_id = m.id
                                   AND w.content_hash = m.content_hash
                                   AND (w.leased_until > now() OR w.attempts >= $4))
              ORDER BY m.id
              LIMIT $2)
            UNION ALL
            (SELECT 'turn', c.id, c.content, c.content_hash, c.person_key
               FROM memvec.conversations AS c
              WHERE c.embed
                AND NOT EXISTS (SELECT FROM memvec.%2$I AS e WHERE e.id = c.id)
                AND NOT EXISTS (SELECT FROM memvec.embedding_work AS w
                                 WHERE w.space_id = $1 AND w.kind = 'turn' AND w.row_id = c.id
                                   AND w.content_hash = c.content_hash
                                   AND (w.leased_until > now() OR w.attempts >= $4))
              ORDER BY c.id
              LIMIT $2)
            LIMIT $2
        ), claimed AS (
            INSERT INTO memvec.embedding_work AS w (space_id, kind, row_id, content_hash, leased_until)
            SELECT $1, p.kind, p.id, p.content_hash, now() + $3 FROM pending AS p
            ON CONFLICT (space_id, kind, row_id) DO UPDATE
               SET leased_until = excluded.leased_until,
                   attempts = CASE WHEN w.content_hash = excluded.content_hash THEN w.attempts ELSE 0 END,
                   last_error = CASE WHEN w.content_hash = excluded.content_hash THEN w.last_error END,
                   content_hash = excluded.content_hash
            RETURNING w.kind, w.row_id, w.attempts
        )
        SELECT p.kind, p.id, p.content, memvec.vector_hash(p.content_hash, p.person_key), c.attempts
          FROM pending AS p
          JOIN claimed AS c ON c.kind = p.kind AND c.row_id = p.id
         ORDER BY p.kind, p.id
        $claim$,
        v_space.entry_table, v_space.turn_table
    ) USING p_space, v_limit, v_lease, v_most;
END;
$$;

COMMENT ON FUNCTION memvec.claim_pending IS
'Claims up to p_limit rows (at most 1000) that lack a vector in a space, for setting lease_seconds, and returns kind, id, text, content hash and failed attempts so far. No two workers get the same row. Rows that failed embed_max_attempts times are left out. This shows the text of every theme, so only the embedder group may call it. Errors: MV004.';
REVOKE ALL ON FUNCTION memvec.claim_pending FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.claim_pending TO memvec_embedder, memvec_admin;
