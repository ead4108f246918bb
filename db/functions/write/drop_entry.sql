CREATE OR REPLACE FUNCTION memvec.drop_entry(
    p_agent_identity text,
    p_person_key uuid,
    p_target text,
    p_old_text text,
    p_previous_content text,
    p_source uuid,
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
    v_found bigint[];
BEGIN
    v_found := memvec.find_entries(
        p_agent_identity, p_person_key, memvec.checked_target(p_target), p_old_text, p_previous_content
    );
    matches := cardinality(v_found);
    IF matches = 0 THEN
        outcome := 'absent';
    ELSIF matches > 1 THEN
        outcome := 'ambiguous';
    ELSIF memvec.release_entry(v_found[1], p_source) THEN
        id := v_found[1];
        outcome := 'released';
    ELSE
        id := v_found[1];
        PERFORM memvec.retire_entry(id, 'remove');
        outcome := 'removed';
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.drop_entry IS
'Removes one entry and returns what happened; see remove_memory. The caller holds lock_entries. Internal.';
REVOKE ALL ON FUNCTION memvec.drop_entry FROM public;
