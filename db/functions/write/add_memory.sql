CREATE OR REPLACE FUNCTION memvec.add_memory(
    p_identity text,
    p_target text,
    p_content text,
    p_metadata jsonb DEFAULT '{}',
    p_source uuid DEFAULT NULL,
    p_embedding public.halfvec DEFAULT NULL,
    p_space integer DEFAULT NULL,
    p_embed boolean DEFAULT true,
    p_governance jsonb DEFAULT NULL,
    OUT id bigint,
    OUT outcome text,
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
    SELECT p.id, p.outcome, p.content_hash
      INTO id, outcome, content_hash
      FROM memvec.put_entry(
          ROW(1, v_who.agent_identity, v_who.person_key, p_target, p_content, p_metadata, p_source, p_embed)::memvec.new_entry
      ) AS p;
    PERFORM memvec.put_embedding(p_space, 'entry', id, p_embedding);
END;
$$;

COMMENT ON FUNCTION memvec.add_memory IS
'Stores a note and returns its id, outcome (added, or duplicate when the theme holds it already) and content hash. A duplicate is left as it is, except that a vector it lacked is stored and p_source is noted. p_source: the home whose file holds it. p_embedding: its vector in space p_space. p_embed false: never to be embedded. Errors: MV001 blank content or unknown target, MV002, MV004 unknown space, MV005 width, MV006, MV008 the theme is under maintenance.';
REVOKE ALL ON FUNCTION memvec.add_memory FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.add_memory TO memvec_runtime, memvec_admin;
