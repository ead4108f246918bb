CREATE OR REPLACE FUNCTION memvec.import_agent(p_row memvec.import_row, p_dry_run boolean)
RETURNS memvec.import_row
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_row memvec.import_row := p_row;
    v_sink boolean := memvec.is_sink(p_row.agent_identity);
    v_first timestamptz := memvec.import_moment(p_row.arguments ->> 'first_seen', now());
    v_last timestamptz := greatest(v_first, memvec.import_moment(p_row.arguments ->> 'last_seen', v_first));
BEGIN
    v_row.outcome := CASE
        WHEN EXISTS (SELECT FROM memvec.memory_agents AS a WHERE a.agent_identity = p_row.agent_identity) THEN 'duplicate'
        ELSE 'added'
    END;
    IF NOT p_dry_run THEN
        INSERT INTO memvec.memory_agents AS a (agent_identity, kind, sink, first_seen, last_seen, attrs)
        VALUES (p_row.agent_identity, memvec.classify_key(p_row.agent_identity), v_sink, v_first, v_last,
                CASE WHEN v_sink THEN '{}' ELSE memvec.as_object(p_row.arguments -> 'attrs') END)
        ON CONFLICT (agent_identity) DO UPDATE
           SET first_seen = least(a.first_seen, excluded.first_seen),
               last_seen = greatest(a.last_seen, excluded.last_seen),
               attrs = excluded.attrs || a.attrs
         WHERE a.first_seen > excluded.first_seen OR a.last_seen < excluded.last_seen
            OR excluded.attrs || a.attrs <> a.attrs;
    END IF;
    RETURN v_row;
END;
$$;

COMMENT ON FUNCTION memvec.import_agent IS
'Registers a theme of an import with the times it was seen, or widens those it has, and returns it with its outcome (added or duplicate). Attributes that it has already stay; sinks keep none. Internal.';
REVOKE ALL ON FUNCTION memvec.import_agent FROM public;
