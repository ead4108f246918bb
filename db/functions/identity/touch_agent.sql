CREATE OR REPLACE FUNCTION memvec.touch_agent(p_agent_identity text, p_kind text, p_attrs jsonb)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- A fleet that starts together would queue on one row, so a sighting within the last minute is not written again.
    INSERT INTO memvec.memory_agents AS a (agent_identity, kind, sink, attrs)
    VALUES (p_agent_identity, p_kind, memvec.is_sink(p_agent_identity), p_attrs)
    ON CONFLICT (agent_identity) DO UPDATE
       SET last_seen = now(), attrs = a.attrs || excluded.attrs
     WHERE a.last_seen < now() - interval '1 minute' OR a.attrs || excluded.attrs <> a.attrs;
END;
$$;

COMMENT ON FUNCTION memvec.touch_agent IS
'Registers a theme, or renews when it was last seen and merges attributes. Internal.';
REVOKE ALL ON FUNCTION memvec.touch_agent FROM public;
