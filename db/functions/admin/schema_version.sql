CREATE OR REPLACE FUNCTION memvec.schema_version()
RETURNS integer
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (SELECT max(m.version) FROM memvec.schema_migrations AS m);
END;
$$;

COMMENT ON FUNCTION memvec.schema_version IS
'Returns the number of the newest migration that was applied here.';
REVOKE ALL ON FUNCTION memvec.schema_version FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.schema_version TO memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
