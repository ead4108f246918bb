-- Where somebody's name, number or secret may have gone: not into texts alone.
CREATE OR REPLACE FUNCTION memvec.pii_places(p_table text, p_after bigint, p_limit integer)
RETURNS TABLE (id bigint, agent_identity text, place text, content text, name boolean)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    CASE p_table
        WHEN 'memory_agents' THEN
            -- The themes of rows one after the other from the index, however many rows each has.
            RETURN QUERY
                WITH RECURSIVE entries (theme) AS (
                    SELECT min(m.agent_identity) FROM memvec.memory_entries AS m
                    UNION ALL
                    SELECT (SELECT min(m.agent_identity) FROM memvec.memory_entries AS m WHERE m.agent_identity > e.theme)
                      FROM entries AS e WHERE e.theme IS NOT NULL
                ), turns (theme) AS (
                    SELECT min(c.agent_identity) FROM memvec.conversations AS c
                    UNION ALL
                    SELECT (SELECT min(c.agent_identity) FROM memvec.conversations AS c WHERE c.agent_identity > t.theme)
                      FROM turns AS t WHERE t.theme IS NOT NULL
                )
                SELECT NULL::bigint, a.agent_identity, 'agent_identity', a.agent_identity, true
                  FROM (SELECT m.agent_identity FROM memvec.memory_agents AS m
                        UNION SELECT e.theme FROM entries AS e
                        UNION SELECT t.theme FROM turns AS t
                        UNION SELECT h.agent_identity FROM memvec.memory_history AS h
                        UNION SELECT r.agent_identity FROM memvec.role_identities AS r
                        UNION SELECT l.agent_identity FROM memvec.identity_aliases AS l) AS a
                UNION ALL
                SELECT NULL, a.agent_identity, 'attrs', a.attrs::text, false FROM memvec.memory_agents AS a
                UNION ALL
                SELECT NULL, l.agent_identity, 'alias', l.alias, true FROM memvec.identity_aliases AS l;
        WHEN 'memory_agent_edges' THEN
            RETURN QUERY
                SELECT e.id, e.parent_identity, p.place, p.content, p.name
                  FROM (SELECT * FROM memvec.memory_agent_edges AS e WHERE e.id > p_after ORDER BY e.id LIMIT p_limit) AS e
                 CROSS JOIN LATERAL (VALUES ('parent_identity', e.parent_identity, true),
                                            ('child_identity', e.child_identity, true),
                                            ('parent_session_id', e.parent_session_id, true),
                                            ('child_session_id', e.child_session_id, true),
                                            ('attrs', e.attrs::text, false)) AS p (place, content, name)
                 ORDER BY e.id;
        WHEN 'memory_entries' THEN
            RETURN QUERY
                SELECT m.id, m.agent_identity, p.place, p.content, false
                  FROM (SELECT * FROM memvec.memory_entries AS m WHERE m.id > p_after ORDER BY m.id LIMIT p_limit) AS m
                 CROSS JOIN LATERAL (VALUES ('content', m.content), ('metadata', m.metadata::text)) AS p (place, content)
                 ORDER BY m.id;
        WHEN 'conversations' THEN
            RETURN QUERY
                SELECT c.id, c.agent_identity, p.place, p.content, p.name
                  FROM (SELECT * FROM memvec.conversations AS c WHERE c.id > p_after ORDER BY c.id LIMIT p_limit) AS c
                 CROSS JOIN LATERAL (VALUES ('content', c.content, false), ('metadata', c.metadata::text, false),
                                            ('session_id', c.session_id, true),
                                            ('parent_session_id', c.parent_session_id, true)) AS p (place, content, name)
                 ORDER BY c.id;
        WHEN 'memory_history' THEN
            RETURN QUERY
                SELECT h.id, h.agent_identity, p.place, p.content, false
                  FROM (SELECT * FROM memvec.memory_history AS h WHERE h.id > p_after ORDER BY h.id LIMIT p_limit) AS h
                 CROSS JOIN LATERAL (VALUES ('content', h.content), ('metadata', h.metadata::text)) AS p (place, content)
                 ORDER BY h.id;
        WHEN 'embedding_work' THEN
            RETURN QUERY
                SELECT w.row_id, NULL::text, 'last_error', w.last_error, false
                  FROM memvec.embedding_work AS w
                 WHERE w.last_error IS NOT NULL;
        WHEN 'maintenance_log' THEN
            RETURN QUERY
                SELECT l.id, NULL::text, 'parameters', l.parameters::text, false
                  FROM memvec.maintenance_log AS l
                 WHERE l.id > p_after
                 ORDER BY l.id
                 LIMIT p_limit;
    END CASE;
END;
$$;

COMMENT ON FUNCTION memvec.pii_places IS
'Returns the texts of one table in which scan_pii looks: row id, theme, place, text, and whether it is a name or an id; at most p_limit rows after id p_after, in the order of their ids. memory_agents (with aliases and bindings) and embedding_work come whole. Internal.';
REVOKE ALL ON FUNCTION memvec.pii_places FROM public;
