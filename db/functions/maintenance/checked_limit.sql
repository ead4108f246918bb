CREATE OR REPLACE FUNCTION memvec.checked_limit(p_limit integer)
RETURNS bigint
LANGUAGE plpgsql
IMMUTABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF p_limit < 1 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('a limit of %s rows would do nothing', p_limit),
            HINT = 'Give a limit of 1 or more, or NULL for all rows at once.';
    END IF;
    RETURN p_limit;
END;
$$;

COMMENT ON FUNCTION memvec.checked_limit IS
'Returns how many rows a maintenance function may take at once, NULL for all. Errors: MV001 less than 1. Internal.';
REVOKE ALL ON FUNCTION memvec.checked_limit FROM public;
