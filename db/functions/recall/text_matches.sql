-- Rows of the filter that hold any of the words, scored: for each word of the question, how often the row says it
-- (ts_rank, which saturates) times how rare the word is (idf), summed. Rarity comes from the caller, or is counted among
-- the matching rows themselves, which is exact for the filter at hand.
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
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
SET jit = off
AS $$
BEGIN
    RETURN QUERY
    WITH matched AS MATERIALIZED (
        SELECT m.id, m.search, m.updated_at AS seen
          FROM memvec.memory_entries AS m
         WHERE p_kind = 'entry'
           AND memvec.in_scope(m.agent_identity, m.person_key,
                               p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
           AND (p_filter.target IS NULL OR m.target = p_filter.target)
           AND (p_filter.since IS NULL OR m.updated_at >= p_filter.since)
           AND (p_filter.until IS NULL OR m.updated_at < p_filter.until)
           AND m.search @@ p_match
        UNION ALL
        SELECT c.id, c.search, c.ts
          FROM memvec.conversations AS c
         WHERE p_kind = 'turn'
           AND memvec.in_scope(c.agent_identity, c.person_key,
                               p_filter.own, p_filter.person_key, p_filter.others, p_filter.themes)
           AND (p_filter.session_id IS NULL OR c.session_id = p_filter.session_id)
           AND (p_filter.exclude_session IS NULL OR c.session_id <> p_filter.exclude_session)
           AND (p_filter.since IS NULL OR c.ts >= p_filter.since)
           AND (p_filter.until IS NULL OR c.ts < p_filter.until)
           AND c.search @@ p_match
    ), hits AS MATERIALIZED (
        SELECT m.id, m.seen, t.position, ts_rank(m.search, t.term) AS rank
          FROM matched AS m
         CROSS JOIN unnest(p_terms) WITH ORDINALITY AS t (term, position)
         WHERE m.search @@ t.term
    ), rarity AS MATERIALIZED (
        SELECT h.position,
               coalesce(p_rarity[h.position],
                        ln(1 + (greatest(p_rows, count(*)) - count(*) + 0.5) / (count(*) + 0.5))::double precision) AS idf
          FROM hits AS h
         GROUP BY h.position
    )
    SELECT h.id,
           sum(r.idf * h.rank)::double precision,
           (count(*)::real / cardinality(p_terms))::real
      FROM hits AS h
      JOIN rarity AS r ON r.position = h.position
     GROUP BY h.id, h.seen
     ORDER BY 2 DESC, h.seen DESC, h.id DESC
     LIMIT p_depth;
END;
$$;

COMMENT ON FUNCTION memvec.text_matches IS
'Returns the p_depth best rows of a filter that match p_match: id, the sum over p_terms of idf times ts_rank, and the share of the terms that the row holds. p_rarity gives each term''s idf; where it is NULL the idf is ln(1 + (N - n + 0.5) / (n + 0.5)) (Robertson and Sparck Jones, as in BM25) with N = p_rows and n = matching rows. Internal.';
REVOKE ALL ON FUNCTION memvec.text_matches FROM public;
