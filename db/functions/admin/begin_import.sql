CREATE OR REPLACE FUNCTION memvec.begin_import(p_from text, p_dry_run boolean DEFAULT false)
RETURNS bigint
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_id bigint;
BEGIN
    IF memvec.blankless(p_from) IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = 'an import needs a name for where its rows come from',
            HINT = 'For example: SELECT memvec.begin_import(''wiki'');';
    END IF;
    INSERT INTO memvec.maintenance_log (operation, dry_run, parameters)
    VALUES ('import', coalesce(p_dry_run, false), jsonb_build_object('from', left(memvec.blankless(p_from), 80)))
    RETURNING id INTO v_id;
    RETURN v_id;
END;
$$;

COMMENT ON FUNCTION memvec.begin_import IS
'Begins a row in maintenance_log for an import of many calls and returns its id, for p_import of import_rows: each call adds to it, in its own transaction, what it stored. p_from: what kind of place the rows come from, in a word or two; no connection string. Errors: MV001 blank.';
REVOKE ALL ON FUNCTION memvec.begin_import FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.begin_import TO memvec_admin;
