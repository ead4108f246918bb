CREATE OR REPLACE FUNCTION memvec.report_embedding_failure(
    p_space integer,
    p_kinds text [],
    p_ids bigint [],
    p_errors text []
)
RETURNS bigint
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_noted bigint;
BEGIN
    PERFORM memvec.checked_space(p_space, NULL);
    UPDATE memvec.embedding_work AS w
       SET attempts = w.attempts + 1,
           last_error = left(r.error, 500),
           leased_until = now() + least(interval '1 day', interval '1 minute' * power(2, least(w.attempts, 11)))
      FROM unnest(p_kinds, p_ids, p_errors) AS r (kind, id, error)
     WHERE w.space_id = p_space AND w.kind = r.kind AND w.row_id = r.id;
    GET DIAGNOSTICS v_noted = ROW_COUNT;
    RETURN v_noted;
END;
$$;

COMMENT ON FUNCTION memvec.report_embedding_failure IS
'Notes that claimed rows could not be embedded and why, and returns how many were noted. Each failure doubles the pause before the row is handed out again: one minute at first, a day at most. Errors: MV004.';
REVOKE ALL ON FUNCTION memvec.report_embedding_failure FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.report_embedding_failure TO memvec_embedder, memvec_admin;
