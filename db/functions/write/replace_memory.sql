CREATE OR REPLACE FUNCTION memvec.replace_memory(
    p_identity text,
    p_target text,
    p_old_text text,
    p_content text,
    p_previous_content text DEFAULT NULL,
    p_metadata jsonb DEFAULT '{}',
    p_source uuid DEFAULT NULL,
    p_embedding public.halfvec DEFAULT NULL,
    p_space integer DEFAULT NULL,
    p_embed boolean DEFAULT true,
    p_governance jsonb DEFAULT NULL,
    OUT id bigint,
    OUT outcome text,
    OUT matches integer,
    OUT content_hash bytea
)
RETURNS record
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_who record;
BEGIN
    SELECT * INTO v_who FROM memvec.writing_as(p_identity, p_governance);
    PERFORM memvec.lock_entries(v_who.agent_identity, v_who.person_key, memvec.checked_target(p_target));
    SELECT s.id, s.outcome, s.matches, memvec.vector_hash(s.content_hash, v_who.person_key)
      INTO id, outcome, matches, content_hash
      FROM memvec.swap_entry(
          v_who.agent_identity, v_who.person_key, p_target, p_old_text, p_content, p_previous_content, p_metadata,
          p_source, p_embed
      ) AS s;
    PERFORM memvec.put_embedding(p_space, 'entry', id, p_embedding);
END;
$$;

COMMENT ON FUNCTION memvec.replace_memory IS
'Replaces one note and returns its id, outcome, how many notes matched, and the content hash. The note meant is the one equal to p_previous_content; without that, the one equal to p_old_text, else the only one that holds p_old_text literally. Outcomes: replaced; merged (the new text was there already, the old note is gone); released (another home than p_source still holds the old text, which stays; the new text is stored); added (nothing matched, the new text is stored) or duplicate (nor was that new); ambiguous (several matched, nothing is replaced, the new text is stored). The old text goes to the history. Errors: MV001 blank content or blank pattern, MV002, MV004, MV005, MV006, MV008 the theme is under maintenance.';
REVOKE ALL ON FUNCTION memvec.replace_memory FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.replace_memory TO memvec_runtime, memvec_admin;
