CREATE OR REPLACE FUNCTION memvec.query_terms(p_query text)
RETURNS text []
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
AS $$
DECLARE
    v_terms text[];
BEGIN
    SELECT array_agg(t.lexeme ORDER BY t.first, t.lexeme)
      INTO v_terms
      FROM (SELECT s.lexeme, coalesce(s.positions[1]::integer, 0) AS first
              FROM unnest(memvec.search_vector(left(p_query, 8000))) AS s
             WHERE length(s.lexeme) <= 255
             ORDER BY 2, 1
             LIMIT 128) AS t;
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
