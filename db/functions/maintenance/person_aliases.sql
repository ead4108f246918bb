-- An alias holds two keys, and either may be the person's: the one that was sent, or the one it was led to.
CREATE OR REPLACE FUNCTION memvec.person_aliases(p_persons uuid [])
RETURNS TABLE (alias text)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF p_persons IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
        SELECT a.alias
          FROM memvec.identity_aliases AS a
         WHERE memvec.person_key(a.alias, memvec.classify_key(a.alias)) = ANY (p_persons)
            OR (memvec.canonical_identity(a.alias)).person_key = ANY (p_persons);
END;
$$;

COMMENT ON FUNCTION memvec.person_aliases IS
'Returns the aliases that are a person''s own chat key in any spelling, or that lead to it. Internal.';
REVOKE ALL ON FUNCTION memvec.person_aliases FROM public;
