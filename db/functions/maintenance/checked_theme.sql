-- Maintenance means the rows that are there, so an alias is not followed and a theme is found in the spelling its rows have: imports
-- from elsewhere may have left one that no session key leads to.
CREATE OR REPLACE FUNCTION memvec.checked_theme(p_identity text)
RETURNS text []
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_key text := memvec.clean_key(p_identity);
    v_themes text[];
BEGIN
    IF v_key IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = 'a blank name is no theme',
            HINT = 'Name the theme as memvec.stats() shows it.';
    END IF;
    IF memvec.classify_key(v_key) IN ('direct', 'group') AND NOT memvec.is_sink(v_key) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = 'that is the key of a chat, not the name of a theme',
            HINT = 'Use memvec.erase_person for one person''s rows, or name a sink (whatsapp-dm, external-group) for everybody''s.';
    END IF;
    v_themes := ARRAY(SELECT DISTINCT t.theme FROM unnest(ARRAY[p_identity, memvec.bounded_name(v_key)]) AS t (theme) ORDER BY 1);
    IF EXISTS (SELECT FROM memvec.identity_aliases AS a WHERE a.alias = v_key)
        AND NOT EXISTS (SELECT FROM memvec.memory_entries AS m WHERE m.agent_identity = ANY (v_themes))
        AND NOT EXISTS (SELECT FROM memvec.conversations AS c WHERE c.agent_identity = ANY (v_themes)) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('"%s" is an alias of another theme and has no rows of its own', left(v_key, 80)),
            HINT = format('Name the theme itself: %s.', (memvec.canonical_identity(v_key)).agent_identity);
    END IF;
    RETURN v_themes;
END;
$$;

COMMENT ON FUNCTION memvec.checked_theme IS
'Returns the spellings under which a theme''s rows may lie: as given and as a session key leads to it. Errors: MV001 blank, the key of a chat, or an alias. Internal.';
REVOKE ALL ON FUNCTION memvec.checked_theme FROM public;
