CREATE OR REPLACE FUNCTION memvec.lock_theme(p_agent_identity text)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('memvec theme ' || p_agent_identity, 0));
END;
$$;

COMMENT ON FUNCTION memvec.lock_theme IS
'Takes a writer''s shared lock on a theme until the transaction ends. Maintenance that moves or erases a theme takes the same lock exclusively. Internal.';
REVOKE ALL ON FUNCTION memvec.lock_theme FROM public;
