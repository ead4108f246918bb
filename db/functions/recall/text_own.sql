-- One theme's rows, or one person's, need no planning: the index knows whose a row is. "OFFSET 0" keeps the planner from also
-- reading the theme's own index; in_scope looks at the few rows that come out.
CREATE OR REPLACE FUNCTION memvec.text_own(
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
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
BEGIN
    IF p_kind = 'entry' THEN
        SELECT array_agg(r.id), array_agg(r.search), array_agg(r.updated_at)
          INTO ids, vectors, seen
          FROM (SELECT m.id, m.search, m.updated_at
                  FROM (SELECT e.* FROM memvec.memory_entries AS e
                         WHERE memvec.owned_search(e.search, e.agent_identity, e.person_key) @@ p_match
                        OFFSET 0) AS m
                 WHERE memvec.in_scope(m.agent_identity, m.person_key, p_filter.own, p_filter.person_key, false, NULL)
                   AND (p_filter.target IS NULL OR m.target = p_filter.target)
                   AND (p_filter.since IS NULL OR m.updated_at >= p_filter.since)
                   AND (p_filter.until IS NULL OR m.updated_at < p_filter.until)
                 ORDER BY m.id DESC
                 LIMIT p_most) AS r;
    ELSE
        SELECT array_agg(r.id), array_agg(r.search), array_agg(r.ts)
          INTO ids, vectors, seen
          FROM (SELECT c.id, c.search, c.ts
                  FROM (SELECT t.* FROM memvec.conversations AS t
                         WHERE memvec.owned_search(t.search, t.agent_identity, t.person_key) @@ p_match
                        OFFSET 0) AS c
                 WHERE memvec.in_scope(c.agent_identity, c.person_key, p_filter.own, p_filter.person_key, false, NULL)
                   AND (p_filter.exclude_session IS NULL OR c.session_id <> p_filter.exclude_session)
                   AND (p_filter.since IS NULL OR c.ts >= p_filter.since)
                   AND (p_filter.until IS NULL OR c.ts < p_filter.until)
                 ORDER BY c.id DESC
                 LIMIT p_most) AS r;
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.text_own IS
'Returns the p_most newest (NULL: all) entries or turns of the filter''s own theme and person that match p_match, which must also ask for the owner (see owned_search): ids, search vectors and dates, NULL for none. The filter must have neither others nor session_id. Internal.';
REVOKE ALL ON FUNCTION memvec.text_own FROM public;
