CREATE OR REPLACE FUNCTION memvec.persons_mark()
RETURNS text
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT encode(substr(sha256('memvec persons' || s.value), 1, 8), 'hex') FROM memvec.secrets AS s WHERE s.name = 'person_key'
$$;

COMMENT ON FUNCTION memvec.persons_mark IS
'Returns a mark of the secret that keys this database''s persons: two databases with the same mark (one was restored from a dump of the other) mean the same contact by the same uuid. Says nothing of the secret itself.';
REVOKE ALL ON FUNCTION memvec.persons_mark FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.persons_mark TO memvec_admin;
