-- What a text can be found by: the language's lexemes of its words; identifiers whole and in parts (split at punctuation, at
-- case changes and between letters and digits); character pairs of CJK runs. Questions go through the same function, so an
-- operator is never seen in one. Only the index is cut: 262,144 characters, fewer if a tsvector cannot hold them.
CREATE OR REPLACE FUNCTION memvec.search_vector(p_text text, p_language text DEFAULT NULL)
RETURNS tsvector
LANGUAGE plpgsql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET client_min_messages = 'error'
AS $$
DECLARE
    c_cjk CONSTANT text := '[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+';
    c_punctuation CONSTANT text := '[!-/:-@[-`{-~\u00a0-\u00bf\u2000-\u206f\u3000-\u303f\uff00-\uff0f]+';
    c_joined CONSTANT text := '[^[:space:]!-/:-@[-`{-~][!-/:-@[-`{-~]+[^[:space:]!-/:-@[-`{-~]';
    c_border CONSTANT text := '[a-z][A-Z0-9]|[A-Z][0-9]|[0-9][A-Za-z]';
    v_language regconfig := coalesce(memvec.blankless(p_language), memvec.setting('search_language'))::regconfig;
    v_text text := memvec.fold_text(left(p_text, 262144));
    v_extra text[] := '{}';
    v_parts text := '';
    v_words text;
BEGIN
    IF v_text IS NULL THEN
        RETURN ''::tsvector;
    END IF;
    IF octet_length(v_text) <> char_length(v_text) AND v_text ~ c_cjk THEN
        v_extra := memvec.cjk_bigrams(v_text);
        v_text := regexp_replace(v_text, c_cjk, ' ', 'g');
    END IF;
    IF v_text ~ c_joined THEN
        SELECT v_extra || coalesce(array_agg(DISTINCT t.whole), '{}')
          INTO v_extra
          FROM (SELECT btrim(lower(w.word COLLATE memvec.folding), '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~') AS whole
                  FROM regexp_split_to_table(v_text, '[[:space:]]+') AS w (word)
                 WHERE w.word ~ c_joined) AS t
         WHERE t.whole ~ c_joined AND length(t.whole) <= 200;
    END IF;
    v_words := regexp_replace(v_text, c_punctuation, ' ', 'g');
    IF v_words ~ c_border THEN
        SELECT string_agg(
                   regexp_replace(
                       regexp_replace(w.word, '([A-Z]+)([A-Z][a-z])', '\1 \2', 'g'),
                       '([a-z])(?=[A-Z0-9])|([A-Z])(?=[0-9])|([0-9])(?=[A-Za-z])', '\1\2\3 ', 'g'
                   ), ' '
               )
          INTO v_parts
          FROM regexp_split_to_table(v_words, '[[:space:]]+') AS w (word)
         WHERE w.word ~ c_border AND length(w.word) <= 200;
    END IF;
    BEGIN
        RETURN to_tsvector(v_language, lower(v_words COLLATE memvec.folding))
            || to_tsvector(v_language, lower(coalesce(v_parts, '') COLLATE memvec.folding))
            || array_to_tsvector(v_extra);
    EXCEPTION WHEN program_limit_exceeded THEN
        RETURN memvec.search_vector(left(p_text, least(length(p_text), 262144) / 2), p_language);
    END;
END;
$$;

COMMENT ON FUNCTION memvec.search_vector IS
'Returns the tsvector that a text is found by: stemmed words of a text search configuration (setting search_language unless given), whole identifiers and their parts, CJK character pairs, accents folded. Blank or NULL gives an empty one. Long text is indexed up to 262,144 characters, or as far as a tsvector holds.';
REVOKE ALL ON FUNCTION memvec.search_vector FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.search_vector TO memvec_runtime, memvec_reader, memvec_admin;
