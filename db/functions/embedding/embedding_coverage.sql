CREATE OR REPLACE FUNCTION memvec.embedding_coverage()
RETURNS TABLE (
    space_id integer,
    model text,
    dim integer,
    kind text,
    rows bigint,
    embedded bigint,
    pending bigint,
    failed bigint,
    oldest_pending timestamptz,
    last_error text
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_space memvec.embedding_spaces;
    -- Who embeds for everybody sees every text anyway; others are not told of other themes, nor what went wrong, since an
    -- endpoint may quote the text that it refused.
    v_everybody boolean := pg_has_role(session_user, 'memvec_embedder', 'MEMBER') OR pg_has_role(session_user, 'memvec_admin', 'MEMBER');
    v_themes text[] := CASE WHEN NOT v_everybody THEN memvec.visible_themes() END;
BEGIN
    FOR v_space IN SELECT * FROM memvec.embedding_spaces AS s ORDER BY s.id LOOP
        RETURN QUERY EXECUTE format(
            $coverage$
            SELECT $1, $2, $3, r.kind, count(*), count(*) FILTER (WHERE r.embedded),
                   count(*) FILTER (WHERE NOT r.embedded),
                   count(*) FILTER (WHERE NOT r.embedded AND w.attempts > 0),
                   min(greatest(r.since, $6)) FILTER (WHERE NOT r.embedded),
                   CASE WHEN $4 THEN max(w.last_error) FILTER (WHERE NOT r.embedded) END
              FROM (SELECT 'entry' AS kind, m.id, m.updated_at AS since, e.id IS NOT NULL AS embedded
                      FROM memvec.memory_entries AS m LEFT JOIN memvec.%1$I AS e ON e.id = m.id
                     WHERE m.embed AND ($5 IS NULL OR m.agent_identity = ANY ($5))
                    UNION ALL
                    SELECT 'turn', c.id, c.ts, e.id IS NOT NULL
                      FROM memvec.conversations AS c LEFT JOIN memvec.%2$I AS e ON e.id = c.id
                     WHERE c.embed AND ($5 IS NULL OR c.agent_identity = ANY ($5))) AS r
              LEFT JOIN memvec.embedding_work AS w ON w.space_id = $1 AND w.kind = r.kind AND w.row_id = r.id
             GROUP BY r.kind
             ORDER BY r.kind
            $coverage$,
            v_space.entry_table, v_space.turn_table
        ) USING v_space.id, v_space.model, v_space.dim, v_everybody, v_themes, v_space.created_at;
    END LOOP;
END;
$$;

COMMENT ON FUNCTION memvec.embedding_coverage IS
'Returns, for each embedding space and kind (entry, turn), how many rows should have a vector, how many have one, how many wait, how many of those have failed, since when the oldest waits (no longer than the space exists), and one of the errors (shown to embedder and admin roles). A bound login role counts its own themes only, unless it may read all.';
REVOKE ALL ON FUNCTION memvec.embedding_coverage FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.embedding_coverage TO memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
