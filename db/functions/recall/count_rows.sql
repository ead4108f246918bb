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
                   AND (p_filter.since IS NULL OR m.updated_at >= p_filter.since)
                   AND (p_filter.until IS NULL OR m.updated_at < p_filter.until)
                 LIMIT p_most) AS r;
    ELSE
        SELECT count(*) INTO v_rows
          FROM (SELECT FROM memvec.conversations AS c
                 WHERE memvec.in_scope(c.agent_identity, c.person_key,
                                       p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
                   AND (p_filter.session_id IS NULL OR c.session_id = p_filter.session_id)
                   AND (p_filter.exclude_session IS NULL OR c.session_id <> p_filter.exclude_session)
                   AND (p_filter.since IS NULL OR c.ts >= p_filter.since)
                   AND (p_filter.until IS NULL OR c.ts < p_filter.until)
                 LIMIT p_most) AS r;
    END IF;
    RETURN v_rows;
END;
$$;

COMMENT ON FUNCTION memvec.count_rows IS
'Returns how many entries or turns pass a filter, p_most at the most. Internal.';
REVOKE ALL ON FUNCTION memvec.count_rows FROM public;
