-- The rows of a filter that hold the words. Planned anew each time, because with the filter's values in view the planner
-- combines the theme's index with the words' index, or takes either.
CREATE OR REPLACE FUNCTION memvec.text_matches(
    p_kind text,
    p_filter memvec.recall_filter,
    p_match tsquery,
    p_terms tsquery [],
    p_rarity double precision [],
    p_rows bigint,
    p_depth integer
)
RETURNS TABLE (id bigint, score double precision, words_share real)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
ROWS 200
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
SET jit = off
AS $$
DECLARE
    v_ids bigint[];
    v_vectors tsvector[];
    v_seen timestamptz[];
BEGIN
    IF p_kind = 'entry' THEN
        SELECT array_agg(m.id), array_agg(m.search), array_agg(m.updated_at)
          INTO v_ids, v_vectors, v_seen
          FROM memvec.memory_entries AS m
         WHERE memvec.in_scope(m.agent_identity, m.person_key,
                               p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
           AND (p_filter.target IS NULL OR m.target = p_filter.target)
           AND (p_filter.since IS NULL OR m.updated_at >= p_filter.since)
           AND (p_filter.until IS NULL OR m.updated_at < p_filter.until)
           AND m.search @@ p_match;
    ELSE
        SELECT array_agg(c.id), array_agg(c.search), array_agg(c.ts)
          INTO v_ids, v_vectors, v_seen
          FROM memvec.conversations AS c
         WHERE memvec.in_scope(c.agent_identity, c.person_key,
                               p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
           AND (p_filter.session_id IS NULL OR c.session_id = p_filter.session_id)
           AND (p_filter.exclude_session IS NULL OR c.session_id <> p_filter.exclude_session)
           AND (p_filter.since IS NULL OR c.ts >= p_filter.since)
           AND (p_filter.until IS NULL OR c.ts < p_filter.until)
           AND c.search @@ p_match;
    END IF;
    RETURN QUERY
        SELECT s.id, s.score, s.words_share
          FROM memvec.score_matches(v_ids, v_vectors, v_seen, p_terms, p_rarity, p_rows, p_depth) AS s;
END;
$$;

COMMENT ON FUNCTION memvec.text_matches IS
'Returns the p_depth best rows of a filter that match p_match, scored by p_terms; see score_matches. Internal.';
REVOKE ALL ON FUNCTION memvec.text_matches FROM public;
