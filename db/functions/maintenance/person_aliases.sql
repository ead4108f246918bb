CREATE OR REPLACE FUNCTION memvec.person_aliases(p_person uuid)
RETURNS TABLE (alias text)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF p_person IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
        SELECT a.alias
          FROM memvec.identity_aliases AS a
         WHERE memvec.person_key(a.alias, memvec.classify_key(a.alias)) = p_person;
END;
$$;

COMMENT ON FUNCTION memvec.person_aliases IS
'Returns the aliases that are a person''s own chat key in any spelling. Internal.';
REVOKE ALL ON FUNCTION memvec.person_aliases FROM public;
