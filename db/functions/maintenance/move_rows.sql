CREATE OR REPLACE FUNCTION memvec.move_rows(p_old text, p_new text, p_person uuid)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_table name;
BEGIN
    UPDATE memvec.memory_entries AS m
       SET agent_identity = p_new, person_key = coalesce(p_person, m.person_key)
     WHERE m.agent_identity = p_old;
    UPDATE memvec.conversations AS c
       SET agent_identity = p_new, person_key = coalesce(p_person, c.person_key)
     WHERE c.agent_identity = p_old;
    UPDATE memvec.memory_history AS h
       SET agent_identity = p_new, person_key = coalesce(p_person, h.person_key)
     WHERE h.agent_identity = p_old;
    FOR v_table IN
        SELECT t.name
          FROM memvec.embedding_spaces AS s
         CROSS JOIN LATERAL (VALUES (s.entry_table), (s.turn_table)) AS t (name)
         ORDER BY s.id, t.name
    LOOP
        EXECUTE format(
            'UPDATE memvec.%I AS e
                SET agent_identity = $2, person_key = coalesce($3, e.person_key)
              WHERE e.agent_identity = $1',
            v_table
        ) USING p_old, p_new, p_person;
    END LOOP;
END;
$$;

COMMENT ON FUNCTION memvec.move_rows IS
'Moves entries, turns, their vectors and the history of one theme to another; the caller holds both. Internal.';
REVOKE ALL ON FUNCTION memvec.move_rows FROM public;
