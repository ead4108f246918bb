CREATE OR REPLACE FUNCTION memvec.import_moment(p_moment text, p_else timestamptz)
RETURNS timestamptz
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN CASE WHEN p_moment::timestamptz BETWEEN '0001-01-02Z' AND '9999-12-30Z' THEN p_moment::timestamptz ELSE p_else END;

COMMENT ON FUNCTION memvec.import_moment IS
'Returns a time as it was given, or another one when there is none or clients'' calendars do not have it (see put_turns). Internal.';
REVOKE ALL ON FUNCTION memvec.import_moment FROM public;
