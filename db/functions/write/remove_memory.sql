CREATE OR REPLACE FUNCTION memvec.remove_memory(
    p_identity text,
    p_target text,
    p_old_text text,
    p_previous_content text DEFAULT NULL,
    p_source uuid DEFAULT NULL,
    p_governance jsonb DEFAULT NULL,
    OUT id bigint,
    OUT outcome text,
    OUT matches integer
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
    SELECT d.id, d.outcome, d.matches
      INTO id, outcome, matches
      FROM memvec.drop_entry(
          v_who.agent_identity, v_who.person_key, p_target, p_old_text, p_previous_content, p_source
      ) AS d;
END;
$$;

COMMENT ON FUNCTION memvec.remove_memory IS
'Removes one note, found as replace_memory finds it, and returns its id, outcome and how many matched. Outcomes: removed (it goes to the history), released (p_source holds it no more, but another home does, so it stays), absent, ambiguous (several matched, nothing is removed). Errors: MV001 blank pattern, MV002, MV006, MV008 the theme is under maintenance.';
REVOKE ALL ON FUNCTION memvec.remove_memory FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.remove_memory TO memvec_runtime, memvec_admin;
