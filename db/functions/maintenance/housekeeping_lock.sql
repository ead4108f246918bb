CREATE OR REPLACE FUNCTION memvec.housekeeping_lock()
RETURNS bigint
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN hashtextextended('memvec housekeeping', 0);

COMMENT ON FUNCTION memvec.housekeeping_lock IS
'Returns the key of the advisory lock of housekeeping: it and what counts words again hold it exclusively, other maintenance shared. Internal.';
REVOKE ALL ON FUNCTION memvec.housekeeping_lock FROM public;
