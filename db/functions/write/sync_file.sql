-- A home's file is the truth about what that home holds. Entries stay in the theme that wrote them; a text of the file that
-- this source does not hold anywhere yet is new and goes to the home's own theme. That is a guess where the file was read before
-- its writer was heard; once the writer has named another theme, the guess is taken back.
CREATE OR REPLACE FUNCTION memvec.sync_file(
    p_agent_identity text,
    p_source uuid,
    p_target text,
    p_contents text [],
    OUT added integer,
    OUT retired integer,
    OUT kept integer,
    OUT rows jsonb
)
RETURNS record
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_hashes bytea[];
    v_held record;
    v_text record;
    v_put record;
BEGIN
    IF p_source IS NULL OR p_contents IS NULL OR memvec.blankless(p_agent_identity) IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = 'sync_memories needs a source and the list of the file''s entries',
            HINT = 'An empty list means an empty file; NULL means nothing.';
    END IF;
    IF memvec.is_sink(p_agent_identity) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV009',
            MESSAGE = format('entries of a home''s files do not go to the sink "%s"', p_agent_identity),
            HINT = 'Give the theme of the home''s profile, not a chat''s session key.';
    END IF;
    PERFORM memvec.lock_theme(l.agent_identity)
       FROM (SELECT DISTINCT m.agent_identity
               FROM memvec.entry_sources AS s
               JOIN memvec.memory_entries AS m ON m.id = s.entry_id
              WHERE s.source = p_source AND m.target = p_target
              ORDER BY 1) AS l;
    PERFORM memvec.lock_entries(l.agent_identity, l.person_key, p_target)
       FROM (SELECT m.agent_identity, m.person_key
               FROM memvec.entry_sources AS s
               JOIN memvec.memory_entries AS m ON m.id = s.entry_id
              WHERE s.source = p_source AND m.target = p_target
              UNION
             SELECT p_agent_identity, NULL
              ORDER BY 1, 2 NULLS FIRST) AS l;

    added := 0;
    retired := 0;
    kept := 0;
    rows := '[]';
    SELECT coalesce(array_agg(memvec.content_hash(memvec.blankless(t.content))), '{}')
      INTO v_hashes
      FROM unnest(p_contents) AS t (content)
     WHERE memvec.blankless(t.content) IS NOT NULL;

    FOR v_held IN
        SELECT m.id, m.agent_identity
          FROM memvec.entry_sources AS s
          JOIN memvec.memory_entries AS m ON m.id = s.entry_id
         WHERE s.source = p_source
           AND m.target = p_target
           AND (m.content_hash <> ALL (v_hashes)
                OR s.guessed AND m.content_hash IN (
                    SELECT o.content_hash
                      FROM memvec.entry_sources AS k
                      JOIN memvec.memory_entries AS o ON o.id = k.entry_id
                     WHERE k.source = p_source AND NOT k.guessed AND o.target = p_target
                ))
    LOOP
        CONTINUE WHEN NOT memvec.may_act_as(v_held.agent_identity);
        DELETE FROM memvec.entry_sources AS s WHERE s.entry_id = v_held.id AND s.source = p_source;
        IF NOT EXISTS (SELECT FROM memvec.entry_sources AS s WHERE s.entry_id = v_held.id) THEN
            PERFORM memvec.retire_entry(v_held.id, 'reconcile');
            retired := retired + 1;
        END IF;
    END LOOP;

    FOR v_text IN
        SELECT DISTINCT ON (memvec.content_hash(memvec.blankless(t.content)))
               memvec.blankless(t.content) AS content,
               memvec.content_hash(memvec.blankless(t.content)) AS content_hash,
               t.position
          FROM unnest(p_contents) WITH ORDINALITY AS t (content, position)
         WHERE memvec.blankless(t.content) IS NOT NULL
         ORDER BY memvec.content_hash(memvec.blankless(t.content)), t.position
    LOOP
        SELECT m.id, 'kept' AS outcome, memvec.vector_hash(m.content_hash, m.person_key) AS content_hash INTO v_put
          FROM memvec.entry_sources AS s
          JOIN memvec.memory_entries AS m ON m.id = s.entry_id
         WHERE s.source = p_source AND m.target = p_target AND m.content_hash = v_text.content_hash
           AND memvec.may_act_as(m.agent_identity)
         LIMIT 1;
        IF NOT FOUND THEN
            SELECT p.id, p.outcome, p.content_hash INTO v_put
              FROM memvec.put_entry(
                  ROW(1, p_agent_identity, NULL, p_target, v_text.content, '{"origin": "file"}', p_source, true)::memvec.new_entry
              ) AS p;
        END IF;
        IF v_put.outcome = 'added' THEN
            UPDATE memvec.entry_sources AS s SET guessed = true WHERE s.entry_id = v_put.id AND s.source = p_source;
            added := added + 1;
        ELSE
            kept := kept + 1;
        END IF;
        rows := rows || jsonb_build_object(
            'id', v_put.id, 'content_hash', encode(v_put.content_hash, 'hex'), 'position', v_text.position - 1
        );
    END LOOP;
END;
$$;

COMMENT ON FUNCTION memvec.sync_file IS
'Makes the entries of one source and target equal to a list, and returns counts and, for each text, its row id, content hash (hex) and position in the list (from 0). Errors: MV001 no source or list, MV009 a sink. Internal.';
REVOKE ALL ON FUNCTION memvec.sync_file FROM public;
