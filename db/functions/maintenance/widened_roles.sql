-- Bindings follow a theme to its new name, so that nobody loses their memory, and a role never ends up without any, which would let
-- it act as everybody. Where both names hold rows, that shows a role rows it could not see before.
CREATE OR REPLACE FUNCTION memvec.widened_roles(p_old text, p_new text)
RETURNS text
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_themes text[] := ARRAY[p_old, p_new];
BEGIN
    IF memvec.is_sink(p_new) OR EXISTS (
        SELECT FROM unnest(v_themes) AS t (theme)
         WHERE NOT EXISTS (SELECT FROM memvec.memory_entries AS m WHERE m.agent_identity = t.theme)
           AND NOT EXISTS (SELECT FROM memvec.conversations AS c WHERE c.agent_identity = t.theme)
    ) THEN
        RETURN NULL;
    END IF;
    RETURN (
        SELECT string_agg(quote_ident(r.role_name), ', ' ORDER BY r.role_name)
          FROM (SELECT b.role_name FROM memvec.role_identities AS b
                 WHERE b.agent_identity = ANY (v_themes)
                 GROUP BY b.role_name HAVING count(*) = 1) AS r
         WHERE NOT EXISTS (SELECT FROM memvec.role_identities AS a WHERE a.role_name = r.role_name AND a.read_all)
    );
END;
$$;

COMMENT ON FUNCTION memvec.widened_roles IS
'Returns the roles that would see more rows if two themes became one (bound to one of them, both of which hold rows), NULL if there is none. Internal.';
REVOKE ALL ON FUNCTION memvec.widened_roles FROM public;
