-- What is known of a theme besides its rows, which have not moved yet.
CREATE OR REPLACE FUNCTION memvec.move_records(p_old text, p_new text, p_person uuid, p_kind text, p_alias text)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- Two edges that now say the same become one.
    DELETE FROM memvec.memory_agent_edges AS e
     USING memvec.memory_agent_edges AS n
     WHERE e.parent_identity = p_old AND n.parent_identity = p_new
       AND n.parent_person IS NOT DISTINCT FROM coalesce(p_person, e.parent_person)
       AND n.parent_session_id = e.parent_session_id AND n.child_session_id = e.child_session_id;
    UPDATE memvec.memory_agent_edges AS e
       SET parent_identity = p_new, parent_person = coalesce(p_person, e.parent_person)
     WHERE e.parent_identity = p_old;
    UPDATE memvec.memory_agent_edges AS e SET child_identity = p_new WHERE e.child_identity = p_old;

    INSERT INTO memvec.memory_agents AS a (agent_identity, kind, sink, first_seen, last_seen, attrs, ttl_days)
    SELECT p_new, p_kind, memvec.is_sink(p_new), o.first_seen, o.last_seen,
           CASE WHEN memvec.is_sink(p_new) THEN '{}' ELSE o.attrs END,
           -- Turns that are there already keep the age they had.
           CASE WHEN NOT memvec.is_sink(p_new)
                     AND NOT EXISTS (SELECT FROM memvec.conversations AS c WHERE c.agent_identity = p_new) THEN o.ttl_days END
      FROM memvec.memory_agents AS o
     WHERE o.agent_identity = p_old
    ON CONFLICT (agent_identity) DO UPDATE
       SET first_seen = least(a.first_seen, excluded.first_seen),
           last_seen = greatest(a.last_seen, excluded.last_seen),
           attrs = excluded.attrs || a.attrs,
           ttl_days = coalesce(a.ttl_days, excluded.ttl_days);
    DELETE FROM memvec.memory_agents AS a WHERE a.agent_identity = p_old;

    INSERT INTO memvec.role_identities AS r (role_name, role_oid, agent_identity, read_all)
    SELECT o.role_name, o.role_oid, p_new, o.read_all FROM memvec.role_identities AS o WHERE o.agent_identity = p_old
    ON CONFLICT (role_name, agent_identity) DO UPDATE SET read_all = r.read_all OR excluded.read_all;
    DELETE FROM memvec.role_identities AS r WHERE r.agent_identity = p_old;

    INSERT INTO memvec.theme_counts AS t (kind, agent_identity, target, rows)
    SELECT o.kind, p_new, o.target, o.rows FROM memvec.theme_counts AS o WHERE o.agent_identity = p_old
    ON CONFLICT (kind, agent_identity, target) DO UPDATE SET rows = t.rows + excluded.rows;
    DELETE FROM memvec.theme_counts AS t WHERE t.agent_identity = p_old;

    IF p_alias IS NULL THEN
        RETURN;
    END IF;
    -- Aliases are one hop: what led to the old name leads to the new one, and the new name is nobody's alias.
    DELETE FROM memvec.identity_aliases AS a WHERE memvec.bounded_name(a.alias) = p_new;
    UPDATE memvec.identity_aliases AS a
       SET agent_identity = p_new
     WHERE memvec.bounded_name(memvec.clean_key(a.agent_identity)) = p_old;
    INSERT INTO memvec.identity_aliases AS a (alias, agent_identity)
    VALUES (p_alias, p_new)
    ON CONFLICT (alias) DO UPDATE SET agent_identity = excluded.agent_identity;
END;
$$;

COMMENT ON FUNCTION memvec.move_records IS
'Moves edges, registry row, role bindings and counts of one theme to another, and leaves p_alias as an alias of the new name. Internal.';
REVOKE ALL ON FUNCTION memvec.move_records FROM public;
