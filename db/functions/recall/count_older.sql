CREATE OR REPLACE FUNCTION memvec.count_older(p_version integer)
RETURNS bigint
LANGUAGE sql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT (SELECT count(*) FROM memvec.memory_entries AS m WHERE m.search_version < p_version)
         + (SELECT count(*) FROM memvec.conversations AS c WHERE c.search_version < p_version);
END;

COMMENT ON FUNCTION memvec.count_older IS
'Returns how many entries and turns have a search_version below p_version. Internal.';
REVOKE ALL ON FUNCTION memvec.count_older FROM public;
