CREATE OR REPLACE FUNCTION memvec.checked_target(p_target text)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF p_target IS NULL OR p_target NOT IN ('memory', 'user') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('target "%s" is unknown', left(p_target, 40)),
            HINT = 'Use memory or user.';
    END IF;
    RETURN p_target;
END;
$$;

COMMENT ON FUNCTION memvec.checked_target IS
'Returns the target of an entry, memory or user. Errors: MV001 anything else. Internal.';
REVOKE ALL ON FUNCTION memvec.checked_target FROM public;
