-- Rows that came in under a chat's raw key, before or past the write functions, are that person's too. The themes that exist are
-- read one by one from the index, not from every row.
CREATE OR REPLACE FUNCTION memvec.person_themes(p_persons uuid [])
RETURNS text []
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_themes text[];
BEGIN
    WITH RECURSIVE entries AS (
        SELECT min(m.agent_identity) AS theme FROM memvec.memory_entries AS m
        UNION ALL
        SELECT (SELECT min(m.agent_identity) FROM memvec.memory_entries AS m WHERE m.agent_identity > e.theme)
          FROM entries AS e WHERE e.theme IS NOT NULL
    ), turns AS (
        SELECT min(c.agent_identity) AS theme FROM memvec.conversations AS c
        UNION ALL
        SELECT (SELECT min(c.agent_identity) FROM memvec.conversations AS c WHERE c.agent_identity > t.theme)
          FROM turns AS t WHERE t.theme IS NOT NULL
    ), themes AS (
        SELECT e.theme FROM entries AS e
        UNION SELECT t.theme FROM turns AS t
        UNION SELECT a.agent_identity FROM memvec.memory_agents AS a
        UNION SELECT h.agent_identity FROM memvec.memory_history AS h
        UNION SELECT e.parent_identity FROM memvec.memory_agent_edges AS e
        UNION SELECT e.child_identity FROM memvec.memory_agent_edges AS e
    )
    SELECT array_agg(t.theme ORDER BY t.theme) INTO v_themes
      FROM themes AS t
     WHERE memvec.person_key(memvec.clean_key(t.theme), memvec.classify_key(memvec.clean_key(t.theme))) = ANY (p_persons)
       AND NOT memvec.is_sink(t.theme);
    RETURN coalesce(v_themes, '{}');
END;
$$;

COMMENT ON FUNCTION memvec.person_themes IS
'Returns the themes that are a person''s raw chat key in any spelling (as an import from elsewhere may have left them). Internal.';
REVOKE ALL ON FUNCTION memvec.person_themes FROM public;
