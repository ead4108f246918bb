CREATE OR REPLACE FUNCTION memvec.lock_entries(p_agent_identity text, p_person_key uuid, p_target text)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(
        hashtextextended(format('memvec entries %s %s %s', p_target, coalesce(p_person_key::text, '-'), p_agent_identity), 0)
    );
END;
$$;

COMMENT ON FUNCTION memvec.lock_entries IS
'Takes the exclusive lock under which entries of one theme, person and target are changed, until the transaction ends. Taken after lock_theme. Internal.';
REVOKE ALL ON FUNCTION memvec.lock_entries FROM public;
