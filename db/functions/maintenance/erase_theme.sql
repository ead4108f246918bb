CREATE OR REPLACE FUNCTION memvec.erase_theme(p_identity text, p_dry_run boolean DEFAULT true, p_limit integer DEFAULT NULL)
RETURNS TABLE (table_name text, action text, rows bigint, remaining bigint)
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_themes text[];
BEGIN
    PERFORM memvec.assert_read_committed();
    v_themes := memvec.checked_theme(p_identity);
    RETURN QUERY
        SELECT e.table_name, e.action, e.rows, e.remaining
          FROM memvec.erase_scope(
              'erase_theme', v_themes, NULL, true, coalesce(p_dry_run, true), p_limit, jsonb_build_object('themes', v_themes)
          ) AS e;
END;
$$;

COMMENT ON FUNCTION memvec.erase_theme IS
'Erases a theme without a trace: entries, turns, vectors of every space, history, edges, registry, counts of words and rows, and the results kept of its operations. Returns for each table how many rows went and, counted again, how many remain. p_limit: how many edges, history rows, entries and turns at most in this call; repeat until nothing remains. A dry run, the default, only counts. Bindings of roles and aliases stay. Errors: MV001 blank name, the key of a chat, an alias, a limit below 1; MV006; MV008 a writer held the theme too long.';
REVOKE ALL ON FUNCTION memvec.erase_theme FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.erase_theme TO memvec_admin;
