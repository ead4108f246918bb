-- The score of a row: for each word of the question, how often the row says it (ts_rank, which saturates) times how rare the
-- word is (idf), summed. Rarity comes from the caller, or is counted among the matching rows themselves, which is exact for
-- the filter at hand. Equal scores come out of sums in other orders with other last digits, so the order looks at real precision.
CREATE OR REPLACE FUNCTION memvec.score_matches(
    p_ids bigint [],
    p_vectors tsvector [],
    p_seen timestamptz [],
    p_terms tsquery [],
    p_rarity double precision [],
    p_rows bigint,
    p_depth integer
)
RETURNS TABLE (id bigint, score double precision, words_share real)
LANGUAGE plpgsql
IMMUTABLE
SECURITY DEFINER
ROWS 200
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF p_rarity IS NOT NULL THEN
        -- Nothing is to be counted first, so each row is scored as it passes.
        RETURN QUERY
            SELECT m.id, s.score, (s.held::real / cardinality(p_terms))::real
              FROM unnest(p_ids, p_vectors, p_seen) AS m (id, vector, seen)
             CROSS JOIN LATERAL (
                       SELECT sum(t.rarity * ts_rank(m.vector, t.term)) AS score, count(*) AS held
                         FROM unnest(p_terms, p_rarity) AS t (term, rarity)
                        WHERE m.vector @@ t.term
                   ) AS s
             WHERE s.held > 0
             ORDER BY s.score::real DESC, m.seen DESC, m.id DESC
             LIMIT p_depth;
        RETURN;
    END IF;
    RETURN QUERY
        WITH hits AS MATERIALIZED (
            SELECT m.id, m.seen, t.position, ts_rank(m.vector, t.term) AS rank
              FROM unnest(p_ids, p_vectors, p_seen) AS m (id, vector, seen)
             CROSS JOIN unnest(p_terms) WITH ORDINALITY AS t (term, position)
             WHERE m.vector @@ t.term
        ), rarity AS MATERIALIZED (
            SELECT h.position,
                   ln(1 + (greatest(p_rows, count(*)) - count(*) + 0.5) / (count(*) + 0.5))::double precision AS idf
              FROM hits AS h
             GROUP BY h.position
        )
        SELECT h.id,
               sum(r.idf * h.rank)::double precision,
               (count(*)::real / cardinality(p_terms))::real
          FROM hits AS h
          JOIN rarity AS r ON r.position = h.position
         GROUP BY h.id, h.seen
         ORDER BY sum(r.idf * h.rank)::real DESC, h.seen DESC, h.id DESC
         LIMIT p_depth;
END;
$$;

COMMENT ON FUNCTION memvec.score_matches IS
'Returns the p_depth best of the given rows: id, the sum over p_terms of idf times ts_rank, and the share of the terms that the row holds; ties by recency, then id. p_rarity gives each term''s idf; without it (NULL) the idf is ln(1 + (N - n + 0.5) / (n + 0.5)) (Robertson and Sparck Jones, as in BM25) with N = p_rows and n = the rows here that hold it. Internal.';
REVOKE ALL ON FUNCTION memvec.score_matches FROM public;
