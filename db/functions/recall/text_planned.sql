-- Planned anew each time, because the best way depends on the values: the words' index, a session's index, the index of dates, or
-- several of them. "+ 0" keeps the planner from reading all rows in their order in the hope of p_most: text_newest has tried that.
CREATE OR REPLACE FUNCTION memvec.text_planned(
    p_kind text,
    p_filter memvec.recall_filter,
    p_match tsquery,
    p_most bigint,
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
          FROM (SELECT m.id, m.search, m.updated_at
                  FROM memvec.memory_entries AS m
                 WHERE memvec.in_scope(m.agent_identity, m.person_key,
                                       p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
                   AND (p_filter.target IS NULL OR m.target = p_filter.target)
                   AND (p_filter.since IS NULL OR m.updated_at >= p_filter.since)
                   AND (p_filter.until IS NULL OR m.updated_at < p_filter.until)
                   AND memvec.owned_search(m.search, m.agent_identity, m.person_key) @@ p_match
                 ORDER BY m.id + 0 DESC
                 LIMIT p_most) AS r;
    ELSE
        SELECT array_agg(r.id), array_agg(r.search), array_agg(r.ts)
          INTO ids, vectors, seen
          FROM (SELECT c.id, c.search, c.ts
                  FROM memvec.conversations AS c
                 WHERE memvec.in_scope(c.agent_identity, c.person_key,
                                       p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
                   AND (p_filter.session_id IS NULL OR c.session_id = p_filter.session_id)
                   AND (p_filter.exclude_session IS NULL OR c.session_id <> p_filter.exclude_session)
                   AND (p_filter.since IS NULL OR c.ts >= p_filter.since)
                   AND (p_filter.until IS NULL OR c.ts < p_filter.until)
                   AND memvec.owned_search(c.search, c.agent_identity, c.person_key) @@ p_match
                 ORDER BY c.id + 0 DESC
                 LIMIT p_most) AS r;
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.text_planned IS
'Returns the p_most newest (NULL: all) entries or turns of a filter that match p_match: ids, search vectors and dates, NULL for none. Internal.';
REVOKE ALL ON FUNCTION memvec.text_planned FROM public;
