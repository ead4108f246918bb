-- Tables may be large and a regular expression takes its time, so the work can be had in pages: a page that does not reach
-- the end says in its last row where the next begins.
CREATE OR REPLACE FUNCTION memvec.scan_pii(
    p_pattern text DEFAULT NULL,
    p_kinds text [] DEFAULT NULL,
    p_table text DEFAULT NULL,
    p_after bigint DEFAULT 0,
    p_limit integer DEFAULT NULL
)
RETURNS TABLE (
    table_name text,
    id bigint,
    agent_identity text,
    place text,
    pii text,
    sample text,
    matches integer
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c_tables CONSTANT text[] :=
        '{memory_agents,memory_agent_edges,memory_entries,conversations,memory_history,embedding_work,maintenance_log}';
    c_kinds CONSTANT text[] := '{phone,email,card,key,pattern}';
    v_from integer := coalesce(array_position(c_tables, p_table), 1);
    v_left integer := CASE WHEN p_limit IS NOT NULL THEN greatest(p_limit, 1) END;
    v_after bigint := coalesce(p_after, 0);
    v_place record;
    v_last bigint;
BEGIN
    IF NOT coalesce(p_kinds <@ c_kinds, true) OR (p_table IS NOT NULL AND p_table <> ALL (c_tables)) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('scan_pii knows no %s', CASE WHEN p_kinds <@ c_kinds IS NOT false THEN format('table "%s"', left(p_table, 80))
                                                          ELSE format('kinds {%s}', left(array_to_string(p_kinds, ','), 80)) END),
            HINT = format('Kinds: %s. Tables: %s.', array_to_string(c_kinds, ', '), array_to_string(c_tables, ', '));
    END IF;
    BEGIN
        PERFORM regexp_count('', p_pattern);
    EXCEPTION WHEN invalid_regular_expression THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('the pattern is not a regular expression: %s', SQLERRM),
            HINT = 'To look for a text as it is, put a backslash before signs such as ( + ? *.';
    END;

    FOR i IN v_from..cardinality(c_tables) LOOP
        table_name := c_tables[i];
        v_last := NULL;
        FOR v_place IN SELECT * FROM memvec.pii_places(table_name, v_after, v_left) LOOP
            IF v_left IS NOT NULL AND v_place.id IS DISTINCT FROM v_last AND c_tables[i] NOT IN ('memory_agents', 'embedding_work') THEN
                v_left := v_left - 1;
            END IF;
            v_last := v_place.id;
            id := v_place.id;
            agent_identity := v_place.agent_identity;
            place := v_place.place;
            FOR pii, sample, matches IN
                SELECT f.pii, f.sample, f.matches
                  FROM memvec.find_pii(v_place.content, p_kinds, p_pattern, v_place.name) AS f
            LOOP
                RETURN NEXT;
            END LOOP;
        END LOOP;
        IF v_left = 0 THEN
            id := v_last;
            agent_identity := NULL;
            place := NULL;
            pii := NULL;
            sample := NULL;
            matches := NULL;
            RETURN NEXT;
            RETURN;
        END IF;
        v_after := 0;
    END LOOP;
END;
$$;

COMMENT ON FUNCTION memvec.scan_pii IS
'Returns where personal data or secrets seem to be stored: table, row id (NULL for a theme''s name, attributes or alias), theme (by its name, even where the name is what was found), place, what kind (phone, email, card with a valid check digit, key, or pattern), a sample in which the value is masked, and how many in that place. Looks at the texts, metadata and session ids of entries, turns, history and edges, at theme names and aliases, at errors of embedding and at the log. p_pattern: a regular expression (case does not count) to look for besides. p_kinds: only these. p_limit: stop after so many rows; unless that was the end, the last row of the answer has pii NULL and is to be given as p_table and p_after to go on. It finds shapes, not meaning: it misses some and names some that are harmless. Errors: MV001 unknown kind or table, or a bad pattern.';
REVOKE ALL ON FUNCTION memvec.scan_pii FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.scan_pii TO memvec_admin;
