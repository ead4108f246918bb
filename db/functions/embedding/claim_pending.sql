-- Parallel workers share the rows that lack a vector by leases: a claimed row is left alone until its lease ends, and a worker
-- that dies gives its rows back by itself. A run over all rows goes by keyset, so that it looks at each row once: it names
-- the last row it was given, and begins anew at the end to find what appeared behind it. The subqueries are fenced
-- (OFFSET 0), or the planner would join whole tables for each handful of rows.
CREATE OR REPLACE FUNCTION memvec.claim_pending(
    p_space integer,
    p_limit integer DEFAULT 64,
    p_after_kind text DEFAULT NULL,
    p_after_id bigint DEFAULT NULL,
    p_failed_before timestamptz DEFAULT NULL,
    p_given_up boolean DEFAULT false,
    p_lease_seconds integer DEFAULT NULL
)
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
    v_lease interval := make_interval(
        secs => greatest(1, least(coalesce(p_lease_seconds, memvec.setting('lease_seconds')::integer), 86400))
    );
    v_most integer := CASE WHEN p_given_up THEN 2147483647 ELSE memvec.setting('embed_max_attempts')::integer END;
    v_after_entry bigint := CASE p_after_kind WHEN 'entry' THEN p_after_id WHEN 'turn' THEN 9223372036854775807 END;
    v_after_turn bigint := CASE p_after_kind WHEN 'turn' THEN p_after_id END;
BEGIN
    -- Claiming is short and embedding long, so claimers take turns instead of skipping each other's rows.
    -- A row that is being deleted is not claimed, and one that is claimed is not deleted meanwhile: nothing of it stays behind.
    PERFORM pg_advisory_xact_lock(hashtextextended('memvec claim ' || p_space, 0));
    RETURN QUERY EXECUTE format(
        $claim$
        WITH pending AS (
            SELECT * FROM (
                SELECT 'entry' AS kind, m.id, m.content, m.content_hash, m.person_key
                  FROM memvec.memory_entries AS m
                 WHERE m.id > $5
                   AND m.embed
                   AND NOT EXISTS (SELECT FROM memvec.%1$I AS e WHERE e.id = m.id OFFSET 0)
                   AND NOT EXISTS (SELECT FROM memvec.embedding_work AS w
                                    WHERE w.space_id = $1 AND w.kind = 'entry' AND w.row_id = m.id
                                      AND NOT memvec.may_embed(w, m.content_hash, $7, $4)
                                   OFFSET 0)
                 ORDER BY m.id
                 LIMIT $2
                   FOR KEY SHARE OF m SKIP LOCKED
            ) AS entries
            UNION ALL
            SELECT * FROM (
                SELECT 'turn', c.id, c.content, c.content_hash, c.person_key
                  FROM memvec.conversations AS c
                 WHERE c.id > $6
                   AND c.embed
                   AND NOT EXISTS (SELECT FROM memvec.%2$I AS e WHERE e.id = c.id OFFSET 0)
                   AND NOT EXISTS (SELECT FROM memvec.embedding_work AS w
                                    WHERE w.space_id = $1 AND w.kind = 'turn' AND w.row_id = c.id
                                      AND NOT memvec.may_embed(w, c.content_hash, $7, $4)
                                   OFFSET 0)
                 ORDER BY c.id
                 LIMIT $2
                   FOR KEY SHARE OF c SKIP LOCKED
            ) AS turns
            LIMIT $2
        ), claimed AS (
            INSERT INTO memvec.embedding_work AS w (space_id, kind, row_id, content_hash, leased_until)
            SELECT $1, p.kind, p.id, p.content_hash, now() + $3 FROM pending AS p
            ON CONFLICT (space_id, kind, row_id) DO UPDATE
               SET leased_until = excluded.leased_until,
                   attempts = CASE WHEN w.content_hash = excluded.content_hash THEN w.attempts ELSE 0 END,
                   failed_at = CASE WHEN w.content_hash = excluded.content_hash THEN w.failed_at END,
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
    ) USING p_space, v_limit, v_lease, v_most, coalesce(v_after_entry, -1), coalesce(v_after_turn, -1), p_failed_before;
END;
$$;

COMMENT ON FUNCTION memvec.claim_pending IS
'Claims up to p_limit rows (at most 1000) that lack a vector in a space, for p_lease_seconds (default: setting lease_seconds), and returns kind, id, text, content hash and failed attempts so far, entries before turns, in the order of their ids. No two workers get the same row. p_after_kind, p_after_id: only rows behind that one. p_failed_before: rows that failed before that moment too, whatever their pause; without it a failed row comes when its pause is over. p_given_up: also rows that failed embed_max_attempts times. Rows marked never to be embedded are never claimed. This shows the text of every theme, so only the embedder group may call it. Errors: MV004.';
REVOKE ALL ON FUNCTION memvec.claim_pending FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.claim_pending TO memvec_embedder, memvec_admin;
