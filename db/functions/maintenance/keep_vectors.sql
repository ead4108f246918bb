CREATE OR REPLACE FUNCTION memvec.keep_vectors(p_kind text, p_twins memvec.twin [])
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_space memvec.embedding_spaces;
BEGIN
    FOR v_space IN SELECT * FROM memvec.embedding_spaces AS s ORDER BY s.id LOOP
        IF p_kind = 'entry' THEN
            EXECUTE format(
                'INSERT INTO memvec.%1$I (id, agent_identity, person_key, target, embedding)
                 SELECT k.id, k.agent_identity, k.person_key, k.target, d.embedding
                   FROM unnest($1) AS t
                   JOIN memvec.%1$I AS d ON d.id = t.dropped
                   JOIN memvec.memory_entries AS k ON k.id = t.kept
                 ON CONFLICT (id) DO NOTHING',
                v_space.entry_table
            ) USING p_twins;
        ELSE
            EXECUTE format(
                'INSERT INTO memvec.%1$I (id, agent_identity, person_key, session_id, ts, embedding)
                 SELECT k.id, k.agent_identity, k.person_key, k.session_id, k.ts, d.embedding
                   FROM unnest($1) AS t
                   JOIN memvec.%1$I AS d ON d.id = t.dropped
                   JOIN memvec.conversations AS k ON k.id = t.kept
                 ON CONFLICT (id) DO NOTHING',
                v_space.turn_table
            ) USING p_twins;
        END IF;
    END LOOP;
    DELETE FROM memvec.embedding_work AS w
     WHERE w.kind = p_kind AND w.row_id = ANY (ARRAY(SELECT t.dropped FROM unnest(p_twins) AS t));
END;
$$;

COMMENT ON FUNCTION memvec.keep_vectors IS
'Gives the kept row of each pair the vectors that only the dropped one has, in every space, and forgets the dropped one''s embedding work. Internal.';
REVOKE ALL ON FUNCTION memvec.keep_vectors FROM public;
