-- The way into every single write: who is it, may they, and nobody moves the theme away meanwhile. The key is read again
-- under the lock, because a rename may have committed while we waited for it.
CREATE OR REPLACE FUNCTION memvec.writing_as(
    p_identity text,
    p_governance jsonb DEFAULT NULL,
    OUT agent_identity text,
    OUT person_key uuid
)
RETURNS record
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_locked text;
BEGIN
    PERFORM memvec.assert_read_committed();
    LOOP
        SELECT a.agent_identity, a.person_key
          INTO agent_identity, person_key
          FROM memvec.acting_as(p_identity, p_governance) AS a;
        EXIT WHEN agent_identity = v_locked;
        PERFORM memvec.lock_theme(agent_identity);
        v_locked := agent_identity;
    END LOOP;
END;
$$;

COMMENT ON FUNCTION memvec.writing_as IS
'Returns the theme and person that the caller writes as, with the theme''s writer lock held. Errors: MV002 not allowed, MV006 isolation level, MV008 the theme is under maintenance. Internal.';
REVOKE ALL ON FUNCTION memvec.writing_as FROM public;
