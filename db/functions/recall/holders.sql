CREATE OR REPLACE FUNCTION memvec.holders(p_kind text, p_filter memvec.recall_filter, p_content_hash bytea)
RETURNS text []
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT p_filter.others THEN
        RETURN ARRAY[p_filter.own];
    END IF;
    IF p_kind = 'entry' THEN
        RETURN ARRAY(
            SELECT DISTINCT m.agent_identity
              FROM memvec.memory_entries AS m
             WHERE m.content_hash = p_content_hash
               AND memvec.in_scope(m.agent_identity, m.person_key,
                                   p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
             ORDER BY 1
        );
    END IF;
    RETURN ARRAY(
        SELECT DISTINCT c.agent_identity
          FROM memvec.conversations AS c
         WHERE c.content_hash = p_content_hash
           AND memvec.in_scope(c.agent_identity, c.person_key,
                               p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
         ORDER BY 1
    );
END;
$$;

COMMENT ON FUNCTION memvec.holders IS
'Returns the themes within a filter''s scope that hold an entry or turn of that text, in alphabetical order. Internal.';
REVOKE ALL ON FUNCTION memvec.holders FROM public;
