CREATE OR REPLACE FUNCTION memvec.reindex_lock()
RETURNS bigint
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN hashtextextended('memvec reindex', 0);

COMMENT ON FUNCTION memvec.reindex_lock IS
'Returns the key of the advisory lock that reindex_search holds shared, by which those who renew rows are told from writers. Internal.';
REVOKE ALL ON FUNCTION memvec.reindex_lock FROM public;
