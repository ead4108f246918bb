-- Aliases come and go, and the rows stay as they were written: under the person of the key itself, under that of a group's sink
-- when an alias led there, under that of another chat to which an alias leads. One person all the same.
CREATE OR REPLACE FUNCTION memvec.person_keys(p_session_key text)
RETURNS uuid []
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_key text := memvec.clean_key(p_session_key);
    v_kind text := memvec.classify_key(v_key);
BEGIN
    RETURN (
        SELECT array_agg(DISTINCT p.person)
          FROM unnest(ARRAY[
                   memvec.person_key(v_key, v_kind),
                   CASE v_kind WHEN 'direct' THEN memvec.person_key(v_key, 'group') END,
                   (memvec.canonical_identity(p_session_key)).person_key
               ]) AS p (person)
         WHERE p.person IS NOT NULL
    );
END;
$$;

COMMENT ON FUNCTION memvec.person_keys IS
'Returns every person_key under which rows of a chat''s session key may lie, whatever aliases it had; NULL when it is nobody''s. Internal.';
REVOKE ALL ON FUNCTION memvec.person_keys FROM public;
