-- While rows of a former language are left (reindex_search), the question is put in that language too.
CREATE OR REPLACE FUNCTION memvec.query_terms(p_query text)
RETURNS text []
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
AS $$
DECLARE
    v_before text := memvec.setting('search_languages_before');
    v_terms text[];
BEGIN
    IF v_before = '' THEN
        SELECT array_agg(t.lexeme ORDER BY t.first, t.lexeme)
          INTO v_terms
          FROM (SELECT s.lexeme, coalesce(s.positions[1]::integer, 0) AS first
                  FROM unnest(memvec.search_vector(left(p_query, 8000))) AS s
                 WHERE octet_length(s.lexeme) <= 2000
                 ORDER BY 2, 1
                 LIMIT 128) AS t;
    ELSE
        SELECT array_agg(t.lexeme ORDER BY t.first, t.lexeme)
          INTO v_terms
          FROM (SELECT s.lexeme, min(coalesce(s.positions[1]::integer, 0)) AS first
                  FROM unnest(string_to_array(v_before, ',')::regconfig[] || NULL::regconfig) AS l (language),
                       unnest(memvec.search_vector(left(p_query, 8000), l.language)) AS s
                 WHERE octet_length(s.lexeme) <= 2000
                 GROUP BY s.lexeme
                 ORDER BY 2, 1
                 LIMIT 128) AS t;
    END IF;
    IF octet_length(p_query) = char_length(p_query) THEN
        RETURN coalesce(v_terms[:64], '{}');
    END IF;
    -- The last character of a run of several stands for what begins with it, which the question did not ask.
    RETURN ARRAY(
        SELECT t.term
          FROM unnest(v_terms) WITH ORDINALITY AS t (term, position)
         WHERE NOT (t.term ~ '^[\u2e80-\U0003ffff]$'
                    AND EXISTS (SELECT FROM unnest(v_terms) AS o (term)
                                 WHERE length(o.term) = 2 AND right(o.term, 1) = t.term))
         ORDER BY t.position
         LIMIT 64
    );
END;
$$;

COMMENT ON FUNCTION memvec.query_terms IS
'Returns the terms of a question in their order: the lexemes of its first 8,000 characters, at most 64. A question of stop words only has none. Internal.';
REVOKE ALL ON FUNCTION memvec.query_terms FROM public;
