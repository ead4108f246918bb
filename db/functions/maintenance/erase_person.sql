CREATE OR REPLACE FUNCTION memvec.erase_person(p_session_key text, p_dry_run boolean DEFAULT true, p_limit integer DEFAULT NULL)
RETURNS TABLE (table_name text, action text, rows bigint, remaining bigint)
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_persons uuid[] := memvec.person_keys(p_session_key);
    v_who record;
BEGIN
    PERFORM memvec.assert_read_committed();
    SELECT * INTO v_who FROM memvec.canonical_identity(p_session_key);
    IF v_persons IS NULL OR memvec.is_sink(memvec.clean_key(p_session_key)) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = CASE WHEN memvec.clean_key(p_session_key) IS NULL THEN 'a blank key is nobody''s'
                           WHEN memvec.is_sink(memvec.clean_key(p_session_key)) THEN 'a sink is many people'
                           ELSE format('that key is not a person''s: it leads to theme "%s"', v_who.agent_identity) END,
            HINT = 'Give the chat''s session key as the host has it, such as agent:main:telegram:dm:12345678; memvec.erase_theme erases a theme.';
    END IF;
    IF v_who.person_key IS NULL THEN
        RAISE WARNING USING
            MESSAGE = format('an alias leads that key to theme "%s": what was written since is the theme''s and stays', v_who.agent_identity),
            HINT = 'memvec.erase_theme erases the theme.';
        SELECT * INTO v_who FROM memvec.canonical_identity(p_session_key, '{}');
    END IF;
    RETURN QUERY
        SELECT e.table_name, e.action, e.rows, e.remaining
          FROM memvec.erase_scope(
              'erase_person', memvec.person_themes(v_persons), v_persons, true, coalesce(p_dry_run, true), p_limit,
              jsonb_build_object('theme', v_who.agent_identity, 'person', v_who.person_key)
          ) AS e;
END;
$$;

COMMENT ON FUNCTION memvec.erase_person IS
'Erases one person by their chat''s session key, in any spelling: entries, turns, vectors of every space, history, edges, the results kept of their operations, aliases that are their key or lead to it, what was written before an alias led it elsewhere, and rows that an import left under the raw key. What went to an ordinary theme while an alias led the key there is that theme''s and stays, with a warning. Returns for each table how many rows went and, counted again, how many remain. p_limit: how many edges, history rows, entries and turns at most in this call; repeat until nothing remains. A dry run, the default, only counts. The log keeps the person''s uuid, never the key. Errors: MV001 not the key of a person, a limit below 1; MV006; MV008 a writer held the sink, or housekeeping its records, too long.';
REVOKE ALL ON FUNCTION memvec.erase_person FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.erase_person TO memvec_admin;
