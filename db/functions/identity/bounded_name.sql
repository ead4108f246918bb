CREATE OR REPLACE FUNCTION memvec.bounded_name(p_key text)
RETURNS text
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN CASE
    WHEN length(p_key) > 200
        THEN left(p_key, 183) || '~' || encode(substr(sha256(convert_to(p_key, 'UTF8')), 1, 8), 'hex')
    ELSE p_key
END;

COMMENT ON FUNCTION memvec.bounded_name IS
'Returns a theme name or session id of at most 200 characters: a longer one is cut to 183, with a tilde and 16 hex digits of its SHA-256. Internal.';
REVOKE ALL ON FUNCTION memvec.bounded_name FROM public;
