CREATE OR REPLACE FUNCTION memvec.clean_session(p_session_id text)
RETURNS text
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN CASE
    WHEN octet_length(p_session_id) <= 200 THEN memvec.blankless(p_session_id)  -- as nearly always, and cheaper
    ELSE memvec.bounded_name(memvec.blankless(p_session_id))
END;

COMMENT ON FUNCTION memvec.clean_session IS
'Returns a session id as it is stored and compared: trimmed, at most 200 characters (see bounded_name), NULL when blank. Internal.';
REVOKE ALL ON FUNCTION memvec.clean_session FROM public;
