-- Any word may match, rare ones count more. In a small theme every word of the question is matched. In a large one a common
-- word would match a large part of it, so rows are found by the rarest words, as many as should bring text_match_rows rows
-- inside the filter, and are then scored by all of them. Where even the rarest is in more rows than that, the newest are taken.
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
    c_lifted CONSTANT integer := 500;
    v_words text[] := memvec.query_terms(p_query);
    v_terms tsquery[];
    v_any tsquery;
    v_rarest tsquery;
    v_rarity double precision[];
    v_all_terms_rows bigint := memvec.setting('text_all_terms_rows')::bigint;
    v_match_rows bigint := memvec.setting('text_match_rows')::bigint;
    v_rows bigint;
    v_total bigint;
    v_passed bigint;
    v_most bigint := greatest(v_match_rows, p_depth);
    v_least bigint;
    v_largest bigint;
    v_neighbours double precision := memvec.setting('turn_neighbours')::double precision;
    v_found record;
    v_more record;
BEGIN
    IF cardinality(v_words) = 0 THEN
        RETURN;
    END IF;
    v_terms := ARRAY(SELECT memvec.term_query(w.word) FROM unnest(v_words) AS w (word));
    v_any := array_to_string(v_terms, ' | ')::tsquery;

    v_rows := memvec.estimate_rows(p_kind, p_filter, v_all_terms_rows);
    -- The statistics know no words of sinks.
    IF v_rows > v_all_terms_rows AND p_filter.session_id IS NULL AND (p_filter.others OR NOT memvec.is_sink(p_filter.own)) THEN
        SELECT greatest(sum(c.rows) FILTER (WHERE NOT memvec.is_sink(c.agent_identity)), v_rows),
               greatest(sum(c.rows) FILTER (WHERE p_filter.others OR c.agent_identity = p_filter.own), v_rows)
          INTO v_total, v_passed
          FROM memvec.theme_counts AS c
         WHERE c.kind = p_kind;
        WITH known AS (
            SELECT w.word, w.position, least(coalesce(s.rows, 0), v_total) AS rows,
                   least(coalesce(s.rows, 0), v_total) * v_rows::numeric / v_total AS rows_here
              FROM unnest(v_words) WITH ORDINALITY AS w (word, position)
              LEFT JOIN memvec.term_statistics AS s ON s.kind = p_kind AND s.lexeme = w.word
        ), chosen AS (
            SELECT k.*,
                   sum(k.rows_here) OVER (ORDER BY k.rows, k.position ROWS UNBOUNDED PRECEDING) AS rows_so_far,
                   row_number() OVER (ORDER BY k.rows, k.position) AS place
              FROM known AS k
        )
        SELECT array_agg(ln(1 + (v_total - c.rows + 0.5) / (c.rows + 0.5))::double precision ORDER BY c.position),
               string_agg(memvec.term_query(c.word)::text, ' | ' ORDER BY c.position)
                   FILTER (WHERE c.rows_so_far <= v_match_rows OR c.place = 1)::tsquery,
               min(c.rows_here),
               max(c.rows_here)
          INTO v_rarity, v_rarest, v_least, v_largest
          FROM chosen AS c;
    END IF;

    v_found := memvec.text_matches(
        p_kind, p_filter, coalesce(v_rarest, v_any), CASE WHEN v_least > v_match_rows THEN v_most END, v_least, v_passed
    );
    IF v_rarest <> v_any AND coalesce(cardinality(v_found.ids), 0) < least(p_depth, greatest(p_wanted, 20)) THEN
        v_more := memvec.text_matches(p_kind, p_filter, v_any && !! v_rarest, v_most, v_largest, v_passed);
        v_found.ids := v_found.ids || v_more.ids;
        v_found.vectors := v_found.vectors || v_more.vectors;
        v_found.seen := v_found.seen || v_more.seen;
    END IF;
    IF v_found.ids IS NULL THEN
        RETURN;
    END IF;
    IF p_kind = 'turn' AND v_neighbours > 0 THEN
        RETURN QUERY
            WITH found AS MATERIALIZED (
                SELECT s.id, s.score, s.words_share
                  FROM memvec.score_matches(v_found.ids, v_found.vectors, v_found.seen, v_terms, v_rarity, v_rows, greatest(p_depth, c_lifted)) AS s
            ), lifted AS (
                SELECT l.*
                  FROM (SELECT array_agg(f.id) AS ids, array_agg(f.score) AS scores FROM found AS f) AS f,
                       memvec.lifted_turns(f.ids, f.scores, v_neighbours) AS l
            )
            SELECT l.id, (row_number() OVER (ORDER BY l.score::real DESC, l.seen DESC, l.id DESC))::integer, l.score, f.words_share
              FROM lifted AS l
              JOIN found AS f ON f.id = l.id
             ORDER BY 2
             LIMIT p_depth;
        RETURN;
    END IF;
    RETURN QUERY
        SELECT s.id, s.position::integer, s.score, s.words_share
          FROM memvec.score_matches(v_found.ids, v_found.vectors, v_found.seen, v_terms, v_rarity, v_rows, p_depth)
               WITH ORDINALITY AS s (id, score, words_share, position);
END;
$$;

COMMENT ON FUNCTION memvec.text_leg IS
'Returns the rows of a filter that hold words of a question: row id, rank from 1, score, and the share of the question''s words that the row holds. A turn''s score counts its neighbours'' (lifted_turns). Where the rarest words find fewer than p_wanted rows (or 20), the newest rows with the other words are added. Internal.';
REVOKE ALL ON FUNCTION memvec.text_leg FROM public;
