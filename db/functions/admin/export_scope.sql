CREATE OR REPLACE FUNCTION memvec.export_scope(p_identity text, OUT agent_identity text, OUT person_key uuid)
RETURNS record
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF p_identity IS NULL THEN
        RETURN;
    END IF;
    SELECT c.agent_identity, CASE WHEN NOT memvec.is_sink(memvec.clean_key(p_identity)) THEN c.person_key END
      INTO agent_identity, person_key
      FROM memvec.canonical_identity(p_identity) AS c;
END;
$$;

COMMENT ON FUNCTION memvec.export_scope IS
'Returns what an export takes: the theme of a raw key (NULL takes all), and with a chat''s key only that person; the name of a sink takes the whole sink. Internal.';
REVOKE ALL ON FUNCTION memvec.export_scope FROM public;
