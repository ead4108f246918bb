CREATE OR REPLACE FUNCTION memvec.lock_theme(p_agent_identity text)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock_shared(memvec.theme_lock(p_agent_identity)) THEN
        PERFORM memvec.wait_for_theme(p_agent_identity, false, current_setting('lock_timeout'));
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.lock_theme IS
'Takes a writer''s shared lock on a theme until the transaction ends. Maintenance that moves or erases a theme takes the same lock exclusively. Errors: MV008 maintenance held it longer than setting lock_seconds. Internal.';
REVOKE ALL ON FUNCTION memvec.lock_theme FROM public;
