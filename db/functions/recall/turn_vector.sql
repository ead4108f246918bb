-- "What did we decide in March?" names a day or a month that no turn of then says: whoever speaks knows the date. The date stands
-- before the text, since only the end of a long text is cut. It is that of UTC, so that every server writes the same words.
CREATE OR REPLACE FUNCTION memvec.turn_vector(p_content text, p_ts timestamptz, p_language regconfig, p_date_words text)
RETURNS tsvector
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
RETURN memvec.search_vector(
    CASE WHEN p_date_words = '' THEN '' ELSE to_char(p_ts AT TIME ZONE 'UTC', p_date_words) || E'\n' END || p_content, p_language
);

COMMENT ON FUNCTION memvec.turn_vector IS
'Returns the tsvector that a turn is found by: the words of its text and those of its date in UTC, written in the to_char format p_date_words (blank: none). Internal.';
REVOKE ALL ON FUNCTION memvec.turn_vector FROM public;
