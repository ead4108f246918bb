CREATE OR REPLACE FUNCTION memvec.cleanup(p_identities text [], p_dry_run boolean DEFAULT true, p_limit integer DEFAULT NULL)
RETURNS TABLE (table_name text, action text, rows bigint, remaining bigint)
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_themes text[] := '{}';
    v_name text;
BEGIN
    PERFORM memvec.assert_read_committed();
    FOREACH v_name IN ARRAY coalesce(p_identities, '{}') LOOP
        v_themes := v_themes || memvec.checked_theme(v_name);
    END LOOP;
    IF v_themes = '{}' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = 'cleanup needs the names of themes',
            HINT = 'For example: SELECT * FROM memvec.cleanup(ARRAY[''_bench'', ''old-project'']);';
    END IF;
    IF NOT p_dry_run THEN
        PERFORM memvec.hold_themes(v_themes);
    END IF;
    -- Under the lock: the first writer of a theme may just have been waited for.
    FOREACH v_name IN ARRAY p_identities LOOP
        PERFORM memvec.assert_known(memvec.checked_theme(v_name));
    END LOOP;
    RETURN QUERY
        SELECT e.table_name, e.action, e.rows, e.remaining
          FROM memvec.erase_scope(
              'cleanup', v_themes, NULL, false, coalesce(p_dry_run, true), p_limit, jsonb_build_object('themes', v_themes)
          ) AS e;
END;
$$;

COMMENT ON FUNCTION memvec.cleanup IS
'Deletes all entries and turns of the named themes with their vectors, and returns for each table how many rows went and how many remain. History, registry, edges and bindings stay (memvec.erase_theme takes those too). p_limit: how many entries and turns at most in this call. A dry run, the default, only counts. Errors: MV001 no or blank names, a theme that is not there, the key of a chat, an alias, a limit below 1; MV006; MV008 a writer held a theme too long.';
REVOKE ALL ON FUNCTION memvec.cleanup FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.cleanup TO memvec_admin;
