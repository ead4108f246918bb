-- The last statement of its transaction: of two batches at a time the second waits here for the first one's commit.
CREATE OR REPLACE FUNCTION memvec.note_import(
    p_import bigint, p_rows memvec.import_row [], p_vectors integer, p_dry_run boolean
)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_import bigint := p_import;
    v_added jsonb;
BEGIN
    SELECT jsonb_object_agg(c.name, c.rows)
      INTO v_added
      FROM (SELECT k.name, count(*) AS rows
              FROM unnest(p_rows) AS r
              JOIN (VALUES ('entry', 'entries'), ('turn', 'turns'), ('edge', 'delegations'), ('agent', 'themes')) AS k (kind, name)
                ON k.kind = r.kind
             WHERE r.outcome = 'added'
             GROUP BY k.name
             UNION ALL
            SELECT 'vectors', p_vectors WHERE p_vectors > 0) AS c;
    IF v_added IS NULL AND v_import IS NULL THEN
        RETURN;
    END IF;
    v_import := coalesce(v_import, memvec.begin_import('psql', p_dry_run));
    UPDATE memvec.maintenance_log AS l
       SET rows = l.rows + (SELECT count(*) FROM unnest(p_rows) AS r WHERE r.outcome = 'added'),
           parameters = l.parameters
               || coalesce(
                   (SELECT jsonb_object_agg(a.name, a.rows + coalesce((l.parameters ->> a.name)::bigint, 0))
                      FROM (SELECT e.key AS name, e.value::bigint AS rows FROM jsonb_each_text(v_added) AS e) AS a),
                   '{}'
               )
     WHERE l.id = v_import AND l.operation = 'import' AND l.dry_run = p_dry_run AND l.acted_by = session_user;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('%s is no import that this login began', p_import),
            HINT = 'Use what memvec.begin_import returned, with the same p_dry_run.';
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.note_import IS
'Adds what a call of import_rows stored to the row of its import in maintenance_log, or gives the call a row of its own if it stored anything: how many entries, turns, delegations, themes and vectors. Errors: MV001 not an import of this login. Internal.';
REVOKE ALL ON FUNCTION memvec.note_import FROM public;
