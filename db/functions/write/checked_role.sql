CREATE OR REPLACE FUNCTION memvec.checked_role(p_role text)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF p_role IS NULL OR p_role NOT IN ('user', 'assistant', 'system', 'tool') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('role "%s" is unknown', left(p_role, 40)),
            HINT = 'Use user, assistant, system or tool.';
    END IF;
    RETURN p_role;
END;
$$;

COMMENT ON FUNCTION memvec.checked_role IS
'Returns the role of a turn: user, assistant, system or tool. Errors: MV001 anything else. Internal.';
REVOKE ALL ON FUNCTION memvec.checked_role FROM public;
