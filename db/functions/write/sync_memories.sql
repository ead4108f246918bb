CREATE OR REPLACE FUNCTION memvec.sync_memories(
    p_identity text,
    p_source uuid,
    p_target text,
    p_contents text [],
    p_governance jsonb DEFAULT NULL,
    OUT added integer,
    OUT retired integer,
    OUT kept integer
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
    SELECT s.added, s.retired, s.kept
      INTO added, retired, kept
      FROM memvec.sync_file(v_who.agent_identity, p_source, memvec.checked_target(p_target), p_contents) AS s;
END;
$$;

COMMENT ON FUNCTION memvec.sync_memories IS
'Makes the notes of one home''s file (p_source, p_target) equal to p_contents and returns how many were added, retired and kept. Notes stay in the theme that wrote them; new ones go to the theme of p_identity; a note goes with the last home that held it, and into the history. Blank elements are passed over. Errors: MV001 no source or list, MV002, MV006, MV008 a theme is under maintenance, MV009 p_identity is a sink.';
REVOKE ALL ON FUNCTION memvec.sync_memories FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.sync_memories TO memvec_runtime, memvec_admin;
