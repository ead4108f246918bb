-- A word that a large part of the rows hold stands in the newest of them: they are read in their order until p_most hold it.
-- p_look is how many to read before giving up, should the word be one of old rows only. Rows are counted, not numbers: every
-- write of a text that was there already takes an id and leaves a gap.
CREATE OR REPLACE FUNCTION memvec.text_newest(
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
          FROM (SELECT m.id, m.search, m.updated_at
                  FROM (SELECT l.* FROM memvec.memory_entries AS l ORDER BY l.id DESC LIMIT p_look) AS m
                 WHERE memvec.in_scope(m.agent_identity, m.person_key,
                                       p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
                   AND (p_filter.target IS NULL OR m.target = p_filter.target)
                   AND (p_filter.since IS NULL OR m.updated_at >= p_filter.since)
                   AND (p_filter.until IS NULL OR m.updated_at < p_filter.until)
                   AND m.search @@ p_match
                 ORDER BY m.id DESC
                 LIMIT p_most) AS r;
    ELSE
        SELECT array_agg(r.id), array_agg(r.search), array_agg(r.ts)
          INTO ids, vectors, seen
          FROM (SELECT c.id, c.search, c.ts
                  FROM (SELECT l.* FROM memvec.conversations AS l ORDER BY l.id DESC LIMIT p_look) AS c
                 WHERE memvec.in_scope(c.agent_identity, c.person_key,
                                       p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
                   AND (p_filter.session_id IS NULL OR c.session_id = p_filter.session_id)
                   AND (p_filter.exclude_session IS NULL OR c.session_id <> p_filter.exclude_session)
                   AND (p_filter.since IS NULL OR c.ts >= p_filter.since)
                   AND (p_filter.until IS NULL OR c.ts < p_filter.until)
                   AND c.search @@ p_match
                 ORDER BY c.id DESC
                 LIMIT p_most) AS r;
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.text_newest IS
'Returns the p_most newest entries or turns of a filter that match p_match, found among the p_look newest rows of all: ids, search vectors and dates, NULL for none. Fewer than p_most: there may be more further back. Internal.';
REVOKE ALL ON FUNCTION memvec.text_newest FROM public;
