CREATE OR REPLACE FUNCTION memvec.setting(p_name text)
RETURNS text
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN (SELECT s.value FROM memvec.settings AS s WHERE s.name = p_name);

COMMENT ON FUNCTION memvec.setting IS
'Returns the value of a setting as text, NULL when there is none of that name. Internal.';
REVOKE ALL ON FUNCTION memvec.setting FROM public;
