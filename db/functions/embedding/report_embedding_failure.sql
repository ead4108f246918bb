CREATE OR REPLACE FUNCTION memvec.report_embedding_failure(
    p_space integer,
    p_kinds text [],
    p_ids bigint [],
    p_errors text [],
    p_permanent boolean [] DEFAULT NULL
)
RETURNS bigint
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_most integer := memvec.setting('embed_max_attempts')::integer;
    v_noted bigint;
BEGIN
    PERFORM memvec.checked_space(p_space, NULL);
    UPDATE memvec.embedding_work AS w
       SET attempts = CASE WHEN r.permanent THEN greatest(w.attempts + 1, v_most) ELSE w.attempts + 1 END,
           failed_at = now(),
           last_error = left(r.error, 500),
           leased_until = now()
      FROM unnest(p_kinds, p_ids, p_errors, p_permanent) AS r (kind, id, error, permanent)
     WHERE w.space_id = p_space AND w.kind = r.kind AND w.row_id = r.id;
    GET DIAGNOSTICS v_noted = ROW_COUNT;
    RETURN v_noted;
END;
$$;

COMMENT ON FUNCTION memvec.report_embedding_failure IS
'Notes that claimed rows could not be embedded and why, gives them back, and returns how many were noted. Each failure doubles the pause before memvec.claim_pending hands the row out again by itself: one minute at first, a day at most. p_permanent: the same text will fail again, so the row is given up at once. Errors: MV004.';
REVOKE ALL ON FUNCTION memvec.report_embedding_failure FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.report_embedding_failure TO memvec_embedder, memvec_admin;
