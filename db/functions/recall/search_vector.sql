-- What a text can be found by: the language's lexemes of its words; identifiers whole and in parts (split at punctuation, at
-- case changes and between letters and digits); character pairs of CJK runs; emoji. Questions go through the same function, so an
-- operator is never seen in one. What stands unseen in a word (direction marks, joiners, soft hyphens, byte order marks) or may be
-- left out (the vowel marks of Hebrew and Arabic) is no part of it; signs part words as punctuation does, since the parser takes
-- them for letters where the database's ctype is C. Only the index is cut: at 262,144 characters, or where a tsvector is full. Written for speed,
-- since every write pays for it: what a plain sentence does not have costs one test each.
CREATE OR REPLACE FUNCTION memvec.search_vector(p_text text, p_language regconfig DEFAULT NULL)
RETURNS tsvector
LANGUAGE plpgsql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
AS $$
DECLARE
    c_longest CONSTANT integer := 262144;
    c_piece CONSTANT integer := 50000;
    c_cjk CONSTANT text := '[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+';
    c_punctuation CONSTANT text := '[!-/:-@[-`{-~\u00a1\u00ab\u00b7\u00bb\u00bf\u2010-\u2027\u2030-\u205e\u3001-\u3003\u3008-\u301f]+';
    c_unseen CONSTANT text := '[\u00ad\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u061c\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u180e\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]+';
    c_signs CONSTANT text := '[\u0080-\u00a9\u00ac-\u00b1\u00b4\u00b6\u00d7\u00f7\u060c\u061b\u061f\u06d4\u200b\u2028\u2029\u20a0-\u20cf\u2190-\u22ff\u2500-\u25ff\u27c0-\u27ff\u2900-\u2aff]+';
    c_emoji CONSTANT text := '[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]';
    c_joined CONSTANT text := '[^[:space:]!-/:-@[-`{-~][!-&(-/:-@[-`{-~]+[^[:space:]!-/:-@[-`{-~]';
    c_border CONSTANT text := '[a-z][A-Z0-9]|[A-Z][0-9]|[0-9][A-Za-z]';
    v_language regconfig := p_language;
    v_text text;
    v_extra text[] := '{}';
    v_parts text;
    v_words text;
    v_lexemes tsvector := '';
    v_more tsvector;
BEGIN
    IF p_text IS NULL THEN
        RETURN v_lexemes;
    END IF;
    IF v_language IS NULL THEN
        SELECT memvec.setting('search_language')::regconfig INTO v_language;
    END IF;
    -- A piece always fits into a tsvector; many may not.
    IF length(p_text) > c_piece THEN
        FOR v_start IN 1..least(length(p_text), c_longest) BY c_piece LOOP
            BEGIN
                v_more := v_lexemes || memvec.search_vector(substr(p_text, v_start, c_piece), v_language);
                -- The index adds a name of up to 800 bytes (owned_search).
                PERFORM v_more || array_to_tsvector(ARRAY[repeat('x', 1000)]);
                v_lexemes := v_more;
            EXCEPTION WHEN program_limit_exceeded THEN
                EXIT;
            END;
        END LOOP;
        RETURN v_lexemes;
    END IF;

    -- Folding can spell one character out as eighteen.
    v_text := left(memvec.fold_text(p_text), 2 * c_piece);
    IF octet_length(v_text) <> char_length(v_text) AND v_text ~ c_cjk THEN
        v_extra := memvec.cjk_bigrams(v_text);
        v_text := regexp_replace(v_text, c_cjk, ' ', 'g');
    END IF;
    IF octet_length(v_text) <> char_length(v_text) AND v_text ~ (c_unseen || '|' || c_signs || '|' || c_emoji) THEN
        v_text := regexp_replace(v_text, c_unseen, '', 'g');
        v_text := regexp_replace(v_text, c_signs, ' ', 'g');
        v_extra := v_extra || ARRAY(SELECT DISTINCT e.found[1] FROM regexp_matches(v_text, c_emoji, 'g') AS e (found));
        v_text := regexp_replace(v_text, c_emoji, ' ', 'g');
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
    IF octet_length(v_words) > 2000 THEN
        -- The parser would only complain about words that no lexeme can hold (255 is the most a repetition may say).
        v_words := regexp_replace(v_words, '[^[:space:]]{255}[^[:space:]]{255,}', ' ', 'g');
    END IF;
    v_lexemes := to_tsvector(v_language, lower(v_words COLLATE memvec.folding));
    IF (v_words ~ '[0-9]' OR v_words ~ '[a-z][A-Z]') AND v_words ~ c_border THEN
        SELECT string_agg(
                   regexp_replace(
                       regexp_replace(w.word, '([A-Z]+)([A-Z][a-z])', '\1 \2', 'g'),
                       '([a-z])(?=[A-Z0-9])|([A-Z])(?=[0-9])|([0-9])(?=[A-Za-z])', '\1\2\3 ', 'g'
                   ), ' '
               )
          INTO v_parts
          FROM regexp_split_to_table(v_words, '[[:space:]]+') AS w (word)
         WHERE w.word ~ c_border AND length(w.word) <= 200;
        -- None where all such words are too long to be identifiers.
        v_lexemes := v_lexemes || to_tsvector(v_language, lower(coalesce(v_parts, '') COLLATE memvec.folding));
    END IF;
    IF v_extra = '{}' THEN
        RETURN v_lexemes;
    END IF;
    RETURN v_lexemes || array_to_tsvector(v_extra);
END;
$$;

COMMENT ON FUNCTION memvec.search_vector IS
'Returns the tsvector that a text is found by: stemmed words of a text search configuration (setting search_language unless given), whole identifiers and their parts, CJK character pairs, emoji, accents folded. Blank or NULL gives an empty one. Long text is indexed up to 262,144 characters, or as far as a tsvector holds.';
REVOKE ALL ON FUNCTION memvec.search_vector FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.search_vector TO memvec_runtime, memvec_reader, memvec_admin;
