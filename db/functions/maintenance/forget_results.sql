-- The operation itself stays noted: if a home sends it again, the text must not come back.
CREATE OR REPLACE FUNCTION memvec.forget_results(p_hashes bytea [], p_dry_run boolean)
RETURNS bigint
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_rows bigint;
BEGIN
    IF p_hashes IS NULL OR p_hashes = '{}' THEN
        RETURN 0;
    END IF;
    IF p_dry_run THEN
        SELECT count(*) INTO v_rows
          FROM memvec.applied_ops AS o
         WHERE o.content_hash = ANY (p_hashes)
            OR o.outcome = 'synced' AND EXISTS (
                SELECT FROM jsonb_array_elements(o.detail -> 'rows') AS r WHERE decode(r ->> 'content_hash', 'hex') = ANY (p_hashes)
            );
    ELSE
        UPDATE memvec.applied_ops AS o
           SET row_id = NULL, content_hash = NULL, detail = NULL
         WHERE o.content_hash = ANY (p_hashes)
            OR o.outcome = 'synced' AND EXISTS (
                SELECT FROM jsonb_array_elements(o.detail -> 'rows') AS r WHERE decode(r ->> 'content_hash', 'hex') = ANY (p_hashes)
            );
        GET DIAGNOSTICS v_rows = ROW_COUNT;
    END IF;
    RETURN v_rows;
END;
$$;

COMMENT ON FUNCTION memvec.forget_results IS
'Empties the recorded results of operations that stored texts with these hashes (vector_hash), and returns how many; that they were applied stays known. Internal.';
REVOKE ALL ON FUNCTION memvec.forget_results FROM public;
