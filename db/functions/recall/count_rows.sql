-- Planned anew each time: whose rows are asked for decides which index is read, and a plan for anybody's reads the whole table.
CREATE OR REPLACE FUNCTION memvec.count_rows(p_kind text, p_filter memvec.recall_filter, p_most bigint)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
SET jit = off
AS $$
DECLARE
    v_rows bigint;
BEGIN
    IF p_kind = 'entry' THEN
        SELECT count(*) INTO v_rows
          FROM (SELECT FROM memvec.memory_entries AS m
                 WHERE memvec.in_scope(m.agent_identity, m.person_key,
                                       p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
                   AND (p_filter.target IS NULL OR m.target = p_filter.target)
                 LIMIT p_most) AS r;
    ELSE
        SELECT count(*) INTO v_rows
          FROM (SELECT FROM memvec.conversations AS c
                 WHERE memvec.in_scope(c.agent_identity, c.person_key,
                                       p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
                 LIMIT p_most) AS r;
    END IF;
    RETURN v_rows;
END;
$$;

COMMENT ON FUNCTION memvec.count_rows IS
'Returns how many entries or turns a filter''s theme, person and target hold, p_most at the most. Session and time bounds are not looked at. Internal.';
REVOKE ALL ON FUNCTION memvec.count_rows FROM public;
