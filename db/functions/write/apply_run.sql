-- A run of operations of one kind. Turns and added entries go in with one statement; if one of a run is bad, each is tried
-- alone, so that only the bad one fails.
CREATE OR REPLACE FUNCTION memvec.apply_run(p_run memvec.batch_op [])
RETURNS memvec.batch_op []
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_run memvec.batch_op[];
    v_op memvec.batch_op := p_run[1];
    v_state text;
    v_text text;
    v_hint text;
BEGIN
    BEGIN
        CASE v_op.op
            WHEN 'append_turn' THEN RETURN memvec.apply_turns(p_run);
            WHEN 'add_memory' THEN RETURN memvec.apply_entries(p_run);
            ELSE RETURN ARRAY[memvec.apply_edit(v_op)];
        END CASE;
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS v_state = RETURNED_SQLSTATE, v_text = MESSAGE_TEXT, v_hint = PG_EXCEPTION_HINT;
        IF v_state IN ('40001', '40P01', '55P03', '57014', 'MV008') OR v_state LIKE '53%' OR v_state LIKE '57P%' THEN
            RAISE;
        END IF;
    END;

    IF cardinality(p_run) = 1 THEN
        v_op.outcome := 'error';
        v_op.error_code := v_state;
        v_op.message := concat_ws(' ', v_text, '(' || nullif(v_hint, '') || ')');
        RETURN ARRAY[v_op];
    END IF;
    FOREACH v_op IN ARRAY p_run LOOP
        v_run := v_run || memvec.apply_run(ARRAY[v_op]);
    END LOOP;
    RETURN v_run;
END;
$$;

COMMENT ON FUNCTION memvec.apply_run IS
'Applies a run of operations of one kind (one operation, or several append_turn or add_memory) and returns them with their outcomes; a bad one gets outcome error. Errors: only those that ask for the whole batch to be sent again (40001, 40P01, 55P03, 57014, MV008, classes 53 and 57P). Internal.';
REVOKE ALL ON FUNCTION memvec.apply_run FROM public;
