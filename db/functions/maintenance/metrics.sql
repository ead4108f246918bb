-- Cheap enough to be asked every minute: rows by theme are the estimates of the last housekeeping, sizes are the catalogue's,
-- and only what waits for a vector is counted.
CREATE OR REPLACE FUNCTION memvec.metrics(p_themes integer DEFAULT 50)
RETURNS TABLE (name text, labels jsonb, value double precision, type text, help text)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_everybody boolean := pg_has_role(session_user, 'memvec_admin', 'MEMBER');
    v_themes text[] := CASE WHEN NOT v_everybody THEN memvec.visible_themes() END;
BEGIN
    RETURN QUERY SELECT 'memvec_schema_version', '{}'::jsonb, memvec.schema_version()::double precision, 'gauge',
        'Number of the newest migration.';

    -- The largest themes by name, the others together, so that a fleet of many themes stays a bounded number of series.
    RETURN QUERY
        WITH ranked AS (
            SELECT t.kind, t.agent_identity, sum(t.rows) AS rows,
                   row_number() OVER (PARTITION BY t.kind ORDER BY sum(t.rows) DESC, t.agent_identity) AS place
              FROM memvec.theme_counts AS t
             WHERE v_themes IS NULL OR t.agent_identity = ANY (v_themes)
             GROUP BY t.kind, t.agent_identity
        ), named AS (
            SELECT r.kind, r.rows, r.place > coalesce(p_themes, 50) AS rest,
                   CASE WHEN r.place <= coalesce(p_themes, 50) THEN r.agent_identity ELSE '' END AS theme
              FROM ranked AS r
        )
        SELECT 'memvec_rows', jsonb_build_object('kind', n.kind, 'theme', n.theme), sum(n.rows)::double precision, 'gauge',
               'Entries and turns of a theme, as of the last housekeeping; the theme without a name is all smaller ones together.'
          FROM named AS n
         GROUP BY n.kind, n.theme, n.rest
         ORDER BY n.kind, n.rest, sum(n.rows) DESC, n.theme;

    RETURN QUERY
        WITH coverage AS MATERIALIZED (SELECT * FROM memvec.embedding_coverage())
        SELECT m.name, jsonb_build_object('space', c.space_id::text, 'model', c.model, 'kind', c.kind), m.value, 'gauge', m.help
          FROM coverage AS c
         CROSS JOIN LATERAL (
             VALUES (1, 'memvec_embedded_rows', c.embedded::double precision, 'Rows that have their vector.'),
                    (2, 'memvec_pending_rows', c.pending::double precision, 'Rows that wait for a vector.'),
                    (3, 'memvec_failed_rows', c.failed::double precision, 'Rows that wait and whose embedding has failed.'),
                    (4, 'memvec_oldest_pending_seconds',
                     coalesce(greatest(0, extract(epoch FROM now() - c.oldest_pending)), 0)::double precision,
                     'How long the oldest of them waits.')
         ) AS m (place, name, value, help)
         ORDER BY m.place, c.space_id, c.kind;

    RETURN QUERY
        SELECT m.name, jsonb_build_object('table', t.relname), m.value, 'gauge', m.help
          FROM pg_stat_user_tables AS t
         CROSS JOIN LATERAL (
             VALUES (1, 'memvec_table_bytes', pg_total_relation_size(t.relid)::double precision, 'Size of a table with its indexes.'),
                    (2, 'memvec_live_rows', t.n_live_tup::double precision, 'Rows of a table, as the server estimates them.'),
                    (3, 'memvec_dead_rows', t.n_dead_tup::double precision, 'Rows of a table that wait for VACUUM.')
         ) AS m (place, name, value, help)
         WHERE t.schemaname = 'memvec' AND v_themes IS NULL
         ORDER BY m.place, t.relname;

    RETURN QUERY
        SELECT 'memvec_invalid_indexes', '{}'::jsonb, count(*)::double precision, 'gauge',
               'Indexes that answer nothing because their build failed.'
          FROM pg_index AS i JOIN pg_class AS r ON r.oid = i.indexrelid
         WHERE r.relnamespace = 'memvec'::regnamespace AND NOT i.indisvalid;

    IF v_everybody THEN
        RETURN QUERY
            SELECT 'memvec_maintenance_total', jsonb_build_object('operation', l.operation), count(*)::double precision, 'counter',
                   'Administrative operations that were done, dry runs apart.'
              FROM memvec.maintenance_log AS l
             WHERE NOT l.dry_run
             GROUP BY l.operation
             ORDER BY l.operation;
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.metrics IS
'Returns measurements for any SQL exporter, named and typed as Prometheus wants them: name, labels (an object of texts), value, type (gauge or counter) and help. p_themes: so many of the largest themes get a series of their own, the others share one with a blank name. A bound login sees its own themes only and no sizes of tables, unless it may read all.';
REVOKE ALL ON FUNCTION memvec.metrics FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.metrics TO memvec_runtime, memvec_reader, memvec_admin;
