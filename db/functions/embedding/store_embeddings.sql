-- A vector names its row by id and by the hash of the text it was computed from, so it can neither land on a text that has
-- changed meanwhile nor be planted by somebody who does not know the text. Nor does the answer tell a login anything of rows
-- it may not act for: they are gone, whatever the hash; and the hash of a person's row cannot be computed without the person.
CREATE OR REPLACE FUNCTION memvec.store_embeddings(
    p_space integer,
    p_kinds text [],
    p_ids bigint [],
    p_hashes bytea [],
    p_embeddings public.halfvec [],
    OUT stored integer,
    OUT changed integer,
    OUT gone integer,
    OUT invalid integer
)
RETURNS record
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_space memvec.embedding_spaces;
    v_places bigint[] := '{}';
    v_row record;
    v_hash bytea;
    v_theme text;
    v_person uuid;
    -- Who embeds for everybody sees every text anyway.
    v_everybody boolean := pg_has_role(session_user, 'memvec_embedder', 'MEMBER') OR pg_has_role(session_user, 'memvec_admin', 'MEMBER');
BEGIN
    PERFORM memvec.assert_read_committed();
    v_space := memvec.checked_space(p_space, NULL);
    stored := 0;
    changed := 0;
    gone := 0;
    invalid := 0;
    FOR v_row IN
        SELECT r.place, r.kind, r.id, r.content_hash, public.l2_norm(r.embedding) AS length, r.embedding
          FROM unnest(p_kinds, p_ids, p_hashes, p_embeddings) WITH ORDINALITY AS r (kind, id, content_hash, embedding, place)
         ORDER BY r.kind, r.id
    LOOP
        v_hash := NULL;
        IF v_row.kind = 'entry' THEN
            SELECT memvec.vector_hash(m.content_hash, m.person_key), m.agent_identity, m.person_key INTO v_hash, v_theme, v_person
              FROM memvec.memory_entries AS m
             WHERE m.id = v_row.id AND m.embed
               FOR KEY SHARE;
        ELSIF v_row.kind = 'turn' THEN
            SELECT memvec.vector_hash(c.content_hash, c.person_key), c.agent_identity, c.person_key INTO v_hash, v_theme, v_person
              FROM memvec.conversations AS c
             WHERE c.id = v_row.id AND c.embed
               FOR KEY SHARE;
        END IF;
        -- A sink's row of nobody is not in anybody's scope, not even in its own.
        IF v_hash IS NULL
            OR NOT (v_everybody
                    OR memvec.may_act_as(v_theme) AND memvec.in_scope(v_theme, v_person, v_theme, v_person, false, NULL)) THEN
            gone := gone + 1;
        ELSIF v_hash IS DISTINCT FROM v_row.content_hash THEN
            changed := changed + 1;
        ELSIF coalesce(v_row.length, 0) = 0 THEN
            -- Counted as a failure where it was claimed, or it would be handed out again at once, for ever.
            PERFORM memvec.report_embedding_failure(
                p_space, ARRAY[v_row.kind], ARRAY[v_row.id], ARRAY['the vector is missing or zero']
            );
            invalid := invalid + 1;
        ELSE
            IF public.vector_dims(v_row.embedding) <> v_space.dim THEN
                PERFORM memvec.checked_space(p_space, v_row.embedding);
            END IF;
            v_places := v_places || v_row.place;
        END IF;
    END LOOP;
    stored := cardinality(v_places);
    -- All vectors of a table in one statement; the rows are locked, so none has gone meanwhile.
    EXECUTE format(
        'INSERT INTO memvec.%I (id, agent_identity, person_key, target, embedding)
         SELECT m.id, m.agent_identity, m.person_key, m.target, r.embedding
           FROM unnest($1, $2, $3) WITH ORDINALITY AS r (kind, id, embedding, place)
           JOIN memvec.memory_entries AS m ON m.id = r.id
          WHERE m.embed AND r.kind = ''entry'' AND r.place = ANY ($4)
          ORDER BY m.id
         ON CONFLICT (id) DO NOTHING',
        v_space.entry_table
    ) USING p_kinds, p_ids, p_embeddings, v_places;
    EXECUTE format(
        'INSERT INTO memvec.%I (id, agent_identity, person_key, session_id, ts, embedding)
         SELECT c.id, c.agent_identity, c.person_key, c.session_id, c.ts, r.embedding
           FROM unnest($1, $2, $3) WITH ORDINALITY AS r (kind, id, embedding, place)
           JOIN memvec.conversations AS c ON c.id = r.id
          WHERE c.embed AND r.kind = ''turn'' AND r.place = ANY ($4)
          ORDER BY c.id
         ON CONFLICT (id) DO NOTHING',
        v_space.turn_table
    ) USING p_kinds, p_ids, p_embeddings, v_places;
    DELETE FROM memvec.embedding_work AS w
     USING unnest(p_kinds, p_ids) WITH ORDINALITY AS r (kind, id, place)
     WHERE r.place = ANY (v_places) AND w.space_id = p_space AND w.kind = r.kind AND w.row_id = r.id;
END;
$$;

COMMENT ON FUNCTION memvec.store_embeddings IS
'Stores vectors and returns how many are stored, how many named a text that has changed, how many a row that is gone (or must not be embedded, or belongs to a theme that the login role may not act as), and how many were zero or NULL, which counts as a failure of a claimed row. The four arrays belong together: kind (entry or turn), row id, content hash as the write functions and claim_pending return it, vector. Errors: MV004 unknown space, MV005 wrong width (nothing is stored), MV006.';
REVOKE ALL ON FUNCTION memvec.store_embeddings FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.store_embeddings TO memvec_runtime, memvec_embedder, memvec_admin;
