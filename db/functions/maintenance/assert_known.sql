-- A name that nobody has is a slip of the pen, and must not look like work that is done. Anything that is left of a theme makes it
-- known; so does being a sink, before anybody wrote to it, and a cleanup, whose later batches and repetitions name it still.
CREATE OR REPLACE FUNCTION memvec.assert_known(p_themes text [])
RETURNS void
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM unnest(p_themes) AS t (theme) WHERE memvec.is_sink(t.theme))
        OR EXISTS (SELECT FROM memvec.memory_agents AS a WHERE a.agent_identity = ANY (p_themes))
        OR EXISTS (SELECT FROM memvec.memory_entries AS m WHERE m.agent_identity = ANY (p_themes))
        OR EXISTS (SELECT FROM memvec.conversations AS c WHERE c.agent_identity = ANY (p_themes))
        OR EXISTS (SELECT FROM memvec.memory_history AS h WHERE h.agent_identity = ANY (p_themes))
        OR EXISTS (SELECT FROM memvec.role_identities AS r WHERE r.agent_identity = ANY (p_themes))
        OR EXISTS (SELECT FROM memvec.identity_aliases AS i WHERE i.alias = ANY (p_themes))
        OR EXISTS (SELECT FROM memvec.maintenance_log AS l
                    WHERE l.operation = 'cleanup' AND NOT l.dry_run AND l.parameters -> 'themes' ?| p_themes) THEN
        RETURN;
    END IF;
    RAISE EXCEPTION USING
        ERRCODE = 'MV001',
        MESSAGE = format('there is no theme "%s"', left(p_themes[1], 80)),
        HINT = 'Name a theme as memvec.stats() (hermes-pgsql stats) shows it; a new one is there after its agent''s first session.';
END;
$$;

COMMENT ON FUNCTION memvec.assert_known IS
'Refuses the spellings of a theme of which the database holds nothing: no rows, history, registry row, role binding, alias or cleanup. Errors: MV001. Internal.';
REVOKE ALL ON FUNCTION memvec.assert_known FROM public;
