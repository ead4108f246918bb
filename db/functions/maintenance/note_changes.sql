CREATE OR REPLACE FUNCTION memvec.note_changes(
    p_operation text, p_dry_run boolean, p_parameters jsonb, p_changes memvec.change []
)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO memvec.maintenance_log (operation, table_name, rows, dry_run, parameters)
    SELECT p_operation, c.table_name, c.rows, p_dry_run, jsonb_strip_nulls(p_parameters) || jsonb_build_object('action', c.action)
      FROM unnest(p_changes) AS c
     WHERE c.rows > 0;
    IF NOT FOUND THEN
        INSERT INTO memvec.maintenance_log (operation, dry_run, parameters)
        VALUES (p_operation, p_dry_run, jsonb_strip_nulls(p_parameters));
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.note_changes IS
'Writes what an operation did to each table into maintenance_log, or one row without a table when it did nothing. Internal.';
REVOKE ALL ON FUNCTION memvec.note_changes FROM public;
