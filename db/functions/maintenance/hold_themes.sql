CREATE OR REPLACE FUNCTION memvec.hold_themes(p_themes text [], p_alone boolean DEFAULT false)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_theme text;
BEGIN
    -- Housekeeping touches the same counts, registry and old records in its own order, so each waits for the other's end. It comes
    -- before the themes, or their writers would wait for it too.
    IF NOT (CASE WHEN p_alone THEN pg_try_advisory_xact_lock(memvec.housekeeping_lock())
                 ELSE pg_try_advisory_xact_lock_shared(memvec.housekeeping_lock()) END) THEN
        PERFORM memvec.wait_for_theme(NULL, p_alone, current_setting('lock_timeout'));
    END IF;
    -- In the order in which batches of writers take them.
    FOR v_theme IN SELECT DISTINCT t.theme FROM unnest(p_themes) AS t (theme) WHERE t.theme IS NOT NULL ORDER BY 1 LOOP
        IF NOT pg_try_advisory_xact_lock(memvec.theme_lock(v_theme)) THEN
            PERFORM memvec.wait_for_theme(v_theme, true, current_setting('lock_timeout'));
        END IF;
    END LOOP;
END;
$$;

COMMENT ON FUNCTION memvec.hold_themes IS
'Keeps writers out of themes until the transaction ends: waits for those that are writing, and lets nobody else begin. Housekeeping stays out as well, and with p_alone other maintenance too. Errors: MV008 a writer or housekeeping took longer than setting lock_seconds. Internal.';
REVOKE ALL ON FUNCTION memvec.hold_themes FROM public;
