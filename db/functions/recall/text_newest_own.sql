-- As text_newest, among one theme's rows: those lie in their order in an index of their own, so it does not matter who else has
-- written since. "BETWEEN" and the order by theme, of which there is one, keep the planner from the order of all rows.
CREATE OR REPLACE FUNCTION memvec.text_newest_own(
    p_kind text,
    p_filter memvec.recall_filter,
    p_match tsquery,
    p_most bigint,
    p_look bigint,
    OUT ids bigint [],
    OUT vectors tsvector [],
    OUT seen timestamptz []
)
RETURNS record
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
SET jit = off
AS $$
BEGIN
    IF p_kind = 'entry' THEN
        SELECT array_agg(r.id), array_agg(r.search), array_agg(r.updated_at)
          INTO ids, vectors, seen
          FROM (SELECT m.id, m.search, m.updated_at, m.agent_identity, m.person_key
                  FROM (SELECT l.* FROM memvec.memory_entries AS l
                         WHERE l.agent_identity BETWEEN p_filter.own AND p_filter.own AND l.person_key IS NULL
                         ORDER BY l.agent_identity DESC, l.id DESC
                         LIMIT p_look) AS m
                 WHERE (p_filter.target IS NULL OR m.target = p_filter.target)
                   AND (p_filter.since IS NULL OR m.updated_at >= p_filter.since)
                   AND (p_filter.until IS NULL OR m.updated_at < p_filter.until)
                   AND m.search @@ p_match
                 ORDER BY m.agent_identity DESC, m.id DESC
                 LIMIT p_most) AS r
         WHERE memvec.in_scope(r.agent_identity, r.person_key, p_filter.own, p_filter.person_key, false, NULL);
    ELSE
        SELECT array_agg(r.id), array_agg(r.search), array_agg(r.ts)
          INTO ids, vectors, seen
          FROM (SELECT c.id, c.search, c.ts, c.agent_identity, c.person_key
                  FROM (SELECT l.* FROM memvec.conversations AS l
                         WHERE l.agent_identity BETWEEN p_filter.own AND p_filter.own AND l.person_key IS NULL
                         ORDER BY l.agent_identity DESC, l.id DESC
                         LIMIT p_look) AS c
                 WHERE (p_filter.session_id IS NULL OR c.session_id = p_filter.session_id)
                   AND (p_filter.exclude_session IS NULL OR c.session_id <> p_filter.exclude_session)
                   AND (p_filter.since IS NULL OR c.ts >= p_filter.since)
                   AND (p_filter.until IS NULL OR c.ts < p_filter.until)
                   AND c.search @@ p_match
                 ORDER BY c.agent_identity DESC, c.id DESC
                 LIMIT p_most) AS r
         WHERE memvec.in_scope(r.agent_identity, r.person_key, p_filter.own, p_filter.person_key, false, NULL);
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.text_newest_own IS
'Returns the p_most newest entries or turns of the filter''s own theme that match p_match, found among the theme''s p_look newest rows: ids, search vectors and dates, NULL for none. Fewer than p_most: there may be more further back. The filter must have neither others nor a person. Internal.';
REVOKE ALL ON FUNCTION memvec.text_newest_own FROM public;
