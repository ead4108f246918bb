CREATE OR REPLACE FUNCTION memvec.checked_content(p_content text)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_content text := memvec.blankless(p_content);
BEGIN
    IF v_content IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = 'blank content cannot be stored',
            HINT = 'Give at least one character that is not white space.';
    END IF;
    RETURN v_content;
END;
$$;

COMMENT ON FUNCTION memvec.checked_content IS
'Returns content trimmed as the host trims it. Errors: MV001 blank. Internal.';
REVOKE ALL ON FUNCTION memvec.checked_content FROM public;
