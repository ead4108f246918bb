-- Any word may match, rare ones count more. In a small theme every word of the question is matched. In a large one a common
-- word would match a large part of it, so rows are found by the rarest words, as many as should bring text_match_rows rows
-- inside the filter, and are then scored by all of them.
CREATE OR REPLACE FUNCTION memvec.text_leg(
    p_kind text,
    p_query text,
    p_filter memvec.recall_filter,
    p_depth integer,
    p_wanted integer
)
RETURNS TABLE (id bigint, rank integer, score double precision, words_share real)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
ROWS 200
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_words text[] := memvec.query_terms(p_query);
    v_terms tsquery[];
    v_any tsquery;
    v_rarest tsquery;
    v_rarity double precision[];
    v_all_terms_rows bigint := memvec.setting('text_all_terms_rows')::bigint;
    v_rows bigint;
    v_total bigint;
    v_ids bigint[];
    v_scores double precision[];
    v_shares real[];
BEGIN
    IF cardinality(v_words) = 0 THEN
        RETURN;
    END IF;
    SELECT array_agg(memvec.term_query(w.word) ORDER BY w.position),
           string_agg(memvec.term_query(w.word)::text, ' | ' ORDER BY w.position)::tsquery
      INTO v_terms, v_any
      FROM unnest(v_words) WITH ORDINALITY AS w (word, position);

    v_rows := memvec.estimate_rows(p_kind, p_filter, v_all_terms_rows);
    IF v_rows > v_all_terms_rows AND p_filter.session_id IS NULL THEN
        SELECT greatest(sum(c.rows), v_rows) INTO v_total FROM memvec.theme_counts AS c WHERE c.kind = p_kind;
        WITH known AS (
            SELECT w.word, w.position, least(coalesce(s.rows, 0), v_total) AS rows
              FROM unnest(v_words) WITH ORDINALITY AS w (word, position)
              LEFT JOIN memvec.term_statistics AS s ON s.kind = p_kind AND s.lexeme = w.word
        ), chosen AS (
            SELECT k.*,
                   sum(k.rows) OVER (ORDER BY k.rows, k.position ROWS UNBOUNDED PRECEDING) - k.rows AS rows_before
              FROM known AS k
        )
        SELECT array_agg(ln(1 + (v_total - c.rows + 0.5) / (c.rows + 0.5))::double precision ORDER BY c.position),
               string_agg(memvec.term_query(c.word)::text, ' | ' ORDER BY c.position)
                   FILTER (WHERE c.rows_before * v_rows::numeric / v_total < memvec.setting('text_match_rows')::integer
                             AND (c.rows_before = 0
                                  OR (c.rows_before + c.rows) * v_rows::numeric / v_total
                                     <= memvec.setting('text_match_rows')::integer))::tsquery
          INTO v_rarity, v_rarest
          FROM chosen AS c;
    END IF;

    SELECT array_agg(t.id), array_agg(t.score), array_agg(t.words_share)
      INTO v_ids, v_scores, v_shares
      FROM memvec.text_matches(p_kind, p_filter, coalesce(v_rarest, v_any), v_terms, v_rarity, v_rows, p_depth) AS t;
    IF v_rarest IS NOT NULL AND v_rarest <> v_any
        AND coalesce(cardinality(v_ids), 0) < least(p_depth, greatest(p_wanted, 20)) THEN
        SELECT array_agg(t.id), array_agg(t.score), array_agg(t.words_share)
          INTO v_ids, v_scores, v_shares
          FROM memvec.text_matches(p_kind, p_filter, v_any, v_terms, v_rarity, v_rows, p_depth) AS t;
    END IF;
    RETURN QUERY
        SELECT r.id, r.position::integer, r.score, r.words_share
          FROM unnest(v_ids, v_scores, v_shares) WITH ORDINALITY AS r (id, score, words_share, position);
END;
$$;

COMMENT ON FUNCTION memvec.text_leg IS
'Returns the rows of a filter that hold words of a question: row id, rank from 1, score, and the share of the question''s words that the row holds. Where the rarest words find fewer than p_wanted rows (or 20), every word is matched. Internal.';
REVOKE ALL ON FUNCTION memvec.text_leg FROM public;
