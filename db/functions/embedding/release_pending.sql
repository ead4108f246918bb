CREATE OR REPLACE FUNCTION memvec.release_pending(p_space integer, p_kinds text [], p_ids bigint [])
RETURNS bigint
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_released bigint;
BEGIN
    PERFORM memvec.checked_space(p_space, NULL);
    UPDATE memvec.embedding_work AS w
       SET leased_until = now()
      FROM unnest(p_kinds, p_ids) AS r (kind, id)
     WHERE w.space_id = p_space AND w.kind = r.kind AND w.row_id = r.id AND w.leased_until > now();
    GET DIAGNOSTICS v_released = ROW_COUNT;
    RETURN v_released;
END;
$$;

COMMENT ON FUNCTION memvec.release_pending IS
'Gives claimed rows back untried, so that others need not wait for the end of their lease, and returns how many were. Errors: MV004.';
REVOKE ALL ON FUNCTION memvec.release_pending FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.release_pending TO memvec_embedder, memvec_admin;
