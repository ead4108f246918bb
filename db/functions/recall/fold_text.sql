-- One form for the many ways to write the same word: compatibility forms and accents are folded away, and the two letters whose
-- capital is written as others are. Hangul and kana are composed again, since only the marks U+0300 to U+036F are dropped. ASCII
-- text, the common case, is returned as it is.
CREATE OR REPLACE FUNCTION memvec.fold_text(p_text text)
RETURNS text
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN CASE
    WHEN octet_length(p_text) = char_length(p_text) THEN p_text
    ELSE replace(replace(replace(
             normalize(regexp_replace(normalize(p_text, NFKD), '[\u0300-\u036f]', '', 'g'), NFC),
         'ς', 'σ'), 'ß', 'ss'), 'ẞ', 'SS')
END;

COMMENT ON FUNCTION memvec.fold_text IS
'Returns text without accents and compatibility forms (NFKD, marks U+0300 to U+036F dropped, NFC; ß as ss, a final sigma as any), letter case kept. Internal.';
REVOKE ALL ON FUNCTION memvec.fold_text FROM public;
