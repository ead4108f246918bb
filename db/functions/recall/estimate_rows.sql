-- Which way is cheaper depends on how many rows pass the filter. theme_counts knows roughly; a theme it has not heard of yet
-- is counted, but no further than the answer matters.
CREATE OR REPLACE FUNCTION memvec.estimate_rows(p_kind text, p_filter memvec.recall_filter, p_enough bigint)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_rows bigint;
BEGIN
    IF NOT p_filter.others THEN
        SELECT sum(c.rows) INTO v_rows
          FROM memvec.theme_counts AS c
         WHERE c.kind = p_kind
           AND c.agent_identity = p_filter.own
           AND (p_filter.target IS NULL OR c.target = p_filter.target);
    ELSE
        SELECT sum(c.rows) INTO v_rows
          FROM memvec.theme_counts AS c
         WHERE c.kind = p_kind
           AND (p_filter.target IS NULL OR c.target = p_filter.target)
           AND (c.agent_identity = p_filter.own
                OR NOT memvec.is_sink(c.agent_identity)
                   AND (p_filter.themes IS NULL OR c.agent_identity = ANY (p_filter.themes)));
    END IF;
    IF v_rows > 0 THEN
        RETURN v_rows;
    END IF;
    IF p_kind = 'entry' THEN
        SELECT count(*) INTO v_rows
          FROM (SELECT FROM memvec.memory_entries AS m
                 WHERE memvec.in_scope(m.agent_identity, m.person_key,
                                       p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
                 LIMIT p_enough + 1) AS r;
    ELSE
        SELECT count(*) INTO v_rows
          FROM (SELECT FROM memvec.conversations AS c
                 WHERE memvec.in_scope(c.agent_identity, c.person_key,
                                       p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
                 LIMIT p_enough + 1) AS r;
    END IF;
    RETURN v_rows;
END;
$$;

COMMENT ON FUNCTION memvec.estimate_rows IS
'Returns about how many entries or turns a filter''s theme and target hold: from theme_counts, or counted up to p_enough + 1 where those say nothing. Session and time bounds are not looked at. Internal.';
REVOKE ALL ON FUNCTION memvec.estimate_rows FROM public;
