-- Composing costs a hundred times what it costs to see that a text is plain ASCII and needs none.
CREATE OR REPLACE FUNCTION memvec.composed(p_text text)
RETURNS text
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN CASE WHEN octet_length(p_text) = char_length(p_text) THEN p_text ELSE normalize(p_text, NFC) END;

COMMENT ON FUNCTION memvec.composed IS
'Returns a text in Unicode''s composed form (NFC), in which two spellings of one text are equal. Internal.';
REVOKE ALL ON FUNCTION memvec.composed FROM public;
