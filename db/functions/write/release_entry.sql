CREATE OR REPLACE FUNCTION memvec.release_entry(p_id bigint, p_source uuid)
RETURNS boolean
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF p_source IS NULL OR NOT EXISTS (
        SELECT FROM memvec.entry_sources AS s WHERE s.entry_id = p_id AND s.source <> p_source
    ) THEN
        RETURN false;
    END IF;
    DELETE FROM memvec.entry_sources AS s WHERE s.entry_id = p_id AND s.source = p_source;
    RETURN true;
END;
$$;

COMMENT ON FUNCTION memvec.release_entry IS
'Returns whether homes other than p_source hold an entry; if so, p_source no longer counts as holding it. Internal.';
REVOKE ALL ON FUNCTION memvec.release_entry FROM public;
