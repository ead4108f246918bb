-- Reciprocal Rank Fusion (Cormack, Clarke, Buettcher 2009) of the two legs. The same text in several themes is one result,
-- shown as its best row; where many copies fill a leg (of several themes, or of several sessions of one), the legs are asked
-- again deeper until enough texts are there. How deep depends on p_limit alone, so that explain_recall, which looks at more rows
-- (p_rows), sees what the recall saw.
CREATE OR REPLACE FUNCTION memvec.fused_rows(
    p_kind text,
    p_query text,
    p_embedding public.halfvec,
    p_space integer,
    p_filter memvec.recall_filter,
    p_limit integer,
    p_min_similarity real,
    p_half_life interval,
    p_rows integer DEFAULT NULL
)
RETURNS TABLE (
    id bigint,
    rrf_score double precision,
    vector_rank integer,
    text_rank integer,
    similarity real,
    words_share real,
    themes text []
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
ROWS 10
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    c_deepest CONSTANT integer := 5000;
    -- text_leg looks no further once it has so many
    c_least_texts CONSTANT integer := 20;
    v_shown integer := coalesce(p_rows, p_limit);
    v_k double precision;
    v_depth integer;
    v_weight_vector double precision;
    v_weight_text double precision;
    v_candidates integer;
    v_half_life double precision := nullif(greatest(extract(epoch FROM p_half_life), 0), 0);
    v_words boolean := memvec.blankless(p_query) IS NOT NULL;
    v_take integer;
    v_wanted integer := p_limit;
    v_vectors bigint;
    v_texts bigint;
    v_rows memvec.fused_row[];
BEGIN
    SELECT max(s.value) FILTER (WHERE s.name = 'rrf_k'),
           max(s.value) FILTER (WHERE s.name = 'rrf_depth'),
           max(s.value) FILTER (WHERE s.name = 'rrf_weight_vector'),
           max(s.value) FILTER (WHERE s.name = 'rrf_weight_text'),
           max(s.value) FILTER (WHERE s.name = 'hnsw_candidates')
      INTO v_k, v_depth, v_weight_vector, v_weight_text, v_candidates
      FROM memvec.settings AS s;
    v_depth := greatest(v_depth, p_limit);
    -- Copies of one text tie, so a few times the limit is enough to choose from; age may lift any row, so then all count.
    v_take := CASE WHEN v_half_life IS NULL THEN greatest(50, 3 * v_shown) ELSE 2 * c_deepest END;
    LOOP
        WITH vector AS MATERIALIZED (
            SELECT v.id, v.rank, v.distance
              FROM memvec.vector_leg(p_kind, p_space, p_embedding, p_filter, v_depth, v_wanted) AS v
             WHERE p_embedding IS NOT NULL
               AND (p_min_similarity IS NULL OR (1 - v.distance)::real >= p_min_similarity)
        ), words AS MATERIALIZED (
            SELECT t.id, t.rank, t.words_share
              FROM memvec.text_leg(p_kind, p_query, p_filter, v_depth, v_wanted) AS t
             WHERE v_words
        ), fused AS (
            SELECT coalesce(v.id, w.id) AS id, v.rank AS vector_rank, w.rank AS text_rank,
                   (1 - v.distance)::real AS similarity, w.words_share,
                   coalesce(v_weight_vector / (v_k + v.rank), 0) + coalesce(v_weight_text / (v_k + w.rank), 0) AS score
              FROM vector AS v
              FULL JOIN words AS w ON w.id = v.id
             ORDER BY score DESC
             FETCH FIRST (v_take) ROWS WITH TIES
        ), dated AS (
            SELECT f.*, m.content_hash, m.updated_at AS seen
              FROM fused AS f
              JOIN memvec.memory_entries AS m ON m.id = f.id
             WHERE p_kind = 'entry'
            UNION ALL
            SELECT f.*, c.content_hash, c.ts
              FROM fused AS f
              JOIN memvec.conversations AS c ON c.id = f.id
             WHERE p_kind = 'turn'
        ), decayed AS (
            SELECT d.id, d.vector_rank, d.text_rank, d.similarity, d.words_share, d.content_hash, d.seen,
                   CASE WHEN v_half_life IS NULL THEN d.score
                        -- A thousand half-lives are as good as for ever, and still a number above zero.
                        ELSE d.score
                             * power(0.5, least(1000, greatest(0, extract(epoch FROM now() - d.seen)) / v_half_life))
                   END AS score
              FROM dated AS d
        ), once AS (
            SELECT DISTINCT ON (d.content_hash) d.*
              FROM decayed AS d
             ORDER BY d.content_hash, d.score DESC, d.seen DESC, d.id DESC
        ), best AS (
            SELECT o.* FROM once AS o ORDER BY o.score DESC, o.seen DESC, o.id DESC LIMIT v_shown
        )
        SELECT (SELECT count(*) FROM vector), (SELECT count(*) FROM words),
               array_agg(ROW(b.id, b.score, b.vector_rank, b.text_rank, b.similarity, b.words_share,
                             memvec.holders(p_kind, p_filter, b.content_hash))::memvec.fused_row
                         ORDER BY b.score DESC, b.seen DESC, b.id DESC)
          INTO v_vectors, v_texts, v_rows
          FROM best AS b;
        EXIT WHEN coalesce(cardinality(v_rows), 0) >= p_limit;
        IF v_vectors + v_texts > v_take THEN
            v_take := 2 * c_deepest;
            CONTINUE;
        END IF;
        -- A leg with fewer rows than it was asked for has no more.
        EXIT WHEN v_depth >= c_deepest
            OR v_vectors < least(v_depth, greatest(v_candidates, v_wanted))
               AND v_texts < least(v_depth, greatest(c_least_texts, v_wanted));
        v_depth := least(v_depth * 5, c_deepest);
        v_take := 2 * c_deepest;
        v_wanted := v_depth;
    END LOOP;

    IF p_embedding IS NULL OR NOT EXISTS (SELECT FROM unnest(v_rows) AS r WHERE r.similarity IS NULL) THEN
        RETURN QUERY SELECT r.* FROM unnest(v_rows) AS r;
        RETURN;
    END IF;
    -- What only the words found may have a vector all the same.
    RETURN QUERY
        SELECT r.id, r.rrf_score, r.vector_rank, r.text_rank, coalesce(r.similarity, s.similarity), r.words_share, r.themes
          FROM unnest(v_rows) WITH ORDINALITY
               AS r (id, rrf_score, vector_rank, text_rank, similarity, words_share, themes, position)
          LEFT JOIN memvec.similarities(
                        p_kind, p_space, p_embedding, ARRAY(SELECT a.id FROM unnest(v_rows) AS a WHERE a.similarity IS NULL)
                    ) AS s ON s.id = r.id
         ORDER BY r.position;
END;
$$;

COMMENT ON FUNCTION memvec.fused_rows IS
'Returns the p_limit best rows of both legs, best first: score = sum over the legs of weight / (rrf_k + rank), times 2 ^ (-age / p_half_life) when that is given; ties by recency, then id. p_min_similarity drops rows from the vector leg only. Also the rank in each leg, the cosine similarity (NULL without a vector), the share of the question''s words, and the themes in scope that hold the same text. p_rows, at least p_limit: shows so many rows instead, of which the first p_limit are the same. Internal.';
REVOKE ALL ON FUNCTION memvec.fused_rows FROM public;
