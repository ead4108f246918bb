-- What a text can be found by: the language's lexemes of its words; identifiers whole and in parts (split at punctuation, at
-- case changes and between letters and digits); character pairs of CJK runs. Questions go through the same function, so an
-- operator is never seen in one. Only the index is cut: 262,144 characters, fewer if a tsvector cannot hold them.
CREATE OR REPLACE FUNCTION memvec.search_vector(p_text text, p_language regconfig DEFAULT NULL)
RETURNS tsvector
LANGUAGE plpgsql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c_longest CONSTANT integer := 262144;
    c_always_fits CONSTANT integer := 50000;
    v_language regconfig := p_language;
BEGIN
    IF p_language IS NULL THEN
        SELECT memvec.setting('search_language')::regconfig INTO v_language;
    END IF;
    IF length(p_text) <= c_always_fits THEN
        RETURN memvec.text_lexemes(p_text, v_language);
    END IF;
    IF p_text IS NULL THEN
        RETURN ''::tsvector;
    END IF;
    BEGIN
        RETURN memvec.text_lexemes(left(p_text, c_longest), v_language);
    EXCEPTION WHEN program_limit_exceeded THEN
        RETURN memvec.search_vector(left(p_text, least(length(p_text), c_longest) / 2), p_language);
    END;
END;
$$;

COMMENT ON FUNCTION memvec.search_vector IS
'Returns the tsvector that a text is found by: stemmed words of a text search configuration (setting search_language unless given), whole identifiers and their parts, CJK character pairs, accents folded. Blank or NULL gives an empty one. Long text is indexed up to 262,144 characters, or as far as a tsvector holds.';
REVOKE ALL ON FUNCTION memvec.search_vector FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.search_vector TO memvec_runtime, memvec_reader, memvec_admin;
