CREATE OR REPLACE FUNCTION memvec.theme_lock(p_agent_identity text)
RETURNS bigint
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN hashtextextended('memvec theme ' || p_agent_identity, 0);

COMMENT ON FUNCTION memvec.theme_lock IS
'Returns the key of the advisory lock on a theme: writers hold it shared, maintenance exclusively, until their transaction ends. Internal.';
REVOKE ALL ON FUNCTION memvec.theme_lock FROM public;
