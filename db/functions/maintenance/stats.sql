CREATE OR REPLACE FUNCTION memvec.stats()
RETURNS TABLE (
    agent_identity text,
    kind text,
    entries bigint,
    turns bigint,
    entries_embedded bigint,
    turns_embedded bigint,
    redacted bigint,
    last_write timestamptz
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
AS $$
#variable_conflict use_column
DECLARE
    v_space memvec.embedding_spaces;
    v_themes text[] := memvec.visible_themes();
    v_embedded text := 'SELECT NULL::text AS kind, NULL::bigint AS id WHERE false';
BEGIN
    FOR v_space IN SELECT * FROM memvec.embedding_spaces AS s ORDER BY s.id LOOP
        v_embedded := v_embedded || format(
            ' UNION SELECT ''entry'', e.id FROM memvec.%I AS e UNION SELECT ''turn'', t.id FROM memvec.%I AS t',
            v_space.entry_table, v_space.turn_table
        );
    END LOOP;
    RETURN QUERY EXECUTE format(
        $stats$
        WITH embedded AS (%s), rows AS (
            SELECT 'entry' AS kind, m.id, m.agent_identity, m.updated_at AS seen, m.content FROM memvec.memory_entries AS m
            UNION ALL
            SELECT 'turn', c.id, c.agent_identity, c.ts, c.content FROM memvec.conversations AS c
        ), counted AS (
            SELECT r.agent_identity,
                   count(*) FILTER (WHERE r.kind = 'entry') AS entries,
                   count(*) FILTER (WHERE r.kind = 'turn') AS turns,
                   count(e.id) FILTER (WHERE r.kind = 'entry') AS entries_embedded,
                   count(e.id) FILTER (WHERE r.kind = 'turn') AS turns_embedded,
                   sum(regexp_count(r.content, '\[redacted\]')) AS redacted,
                   max(r.seen) AS last_write
              FROM rows AS r
              LEFT JOIN embedded AS e ON e.kind = r.kind AND e.id = r.id
             GROUP BY r.agent_identity
        )
        SELECT coalesce(a.agent_identity, c.agent_identity),
               coalesce(a.kind, memvec.classify_key(c.agent_identity)),
               coalesce(c.entries, 0), coalesce(c.turns, 0),
               coalesce(c.entries_embedded, 0), coalesce(c.turns_embedded, 0),
               coalesce(c.redacted, 0), c.last_write
          FROM memvec.memory_agents AS a
          FULL JOIN counted AS c ON c.agent_identity = a.agent_identity
         WHERE $1 IS NULL OR coalesce(a.agent_identity, c.agent_identity) = ANY ($1)
         ORDER BY 1
        $stats$,
        v_embedded
    ) USING v_themes;
END;
$$;

COMMENT ON FUNCTION memvec.stats IS
'Returns, for each theme, its kind, how many notes and turns it holds, how many of them have a vector in any space, how many secrets were masked in them (as [redacted]), and when it was last written to. A bound login role sees its own themes only, unless it may read all; an unbound one sees none when setting require_binding is on. Sinks are one row each, whoever the people are.';
REVOKE ALL ON FUNCTION memvec.stats FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.stats TO memvec_runtime, memvec_reader, memvec_admin;
