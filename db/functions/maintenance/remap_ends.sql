-- Whose rows go where. Decided once before the locks, to know which to take, and again under them.
CREATE OR REPLACE FUNCTION memvec.remap_ends(
    p_old text,
    p_new text,
    OUT old_theme text,
    OUT new_theme text,
    OUT person_key uuid,
    OUT kind text,
    OUT alias text
)
RETURNS record
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_old text := memvec.clean_key(p_old);
    v_new text := memvec.clean_key(p_new);
    v_to record;
BEGIN
    IF v_old IS NULL OR (v_new IS NULL AND memvec.classify_key(v_old) NOT IN ('direct', 'group', 'bench')) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = 'remap needs the name of a theme and its new name',
            HINT = 'For example: SELECT * FROM memvec.remap(''marketng'', ''marketing''); a raw chat key may come alone, it goes to its sink.';
    END IF;
    IF memvec.is_sink(v_old) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('"%s" is a sink: its rows belong to many and are not moved together', v_old),
            HINT = 'Use memvec.cleanup to delete what a sink holds, memvec.erase_person for one person.';
    END IF;

    -- The spelling in which the rows lie; an import may have left one that no key leads to.
    old_theme := CASE
        WHEN EXISTS (SELECT FROM memvec.memory_entries AS m WHERE m.agent_identity = p_old)
            OR EXISTS (SELECT FROM memvec.conversations AS c WHERE c.agent_identity = p_old) THEN p_old
        ELSE memvec.bounded_name(v_old)
    END;
    IF memvec.classify_key(v_old) IN ('direct', 'group', 'bench') THEN
        SELECT * INTO v_to FROM memvec.canonical_identity(p_old);
        IF v_new IS NOT NULL AND v_to.agent_identity <> v_new THEN
            RAISE EXCEPTION USING
                ERRCODE = 'MV001',
                MESSAGE = format('the rows of that chat key belong in "%s", with their person', v_to.agent_identity),
                HINT = format('Name "%s", or no new name at all. People do not become themes.', v_to.agent_identity);
        END IF;
    ELSE
        -- The way back: the new name is now an alias of the old one.
        IF NOT EXISTS (SELECT FROM memvec.identity_aliases AS a
                        WHERE a.alias = v_new AND memvec.bounded_name(memvec.clean_key(a.agent_identity)) = old_theme) THEN
            SELECT * INTO v_to FROM memvec.canonical_identity(p_new);
        ELSE
            SELECT * INTO v_to FROM memvec.canonical_identity(p_new, '{}');
        END IF;
        IF v_to.reason IN ('not-in-allowlist', 'bench-reject') THEN
            RAISE EXCEPTION USING
                ERRCODE = 'MV001',
                MESSAGE = format('"%s" is not an allowed theme, its key would act as "%s"', left(v_new, 80), v_to.agent_identity),
                HINT = 'Allow it first, with memvec.set_setting: see the setting allowed_themes.';
        END IF;
        IF memvec.is_sink(v_to.agent_identity) THEN
            RAISE EXCEPTION USING
                ERRCODE = 'MV001',
                MESSAGE = format('the rows of a theme cannot go into the sink "%s", where they would belong to nobody', v_to.agent_identity),
                HINT = 'Name an ordinary theme; memvec.cleanup deletes rows that nobody needs.';
        END IF;
        -- Agents without a key go on as default, so there is no other name for it.
        alias := nullif(v_old, 'default');
    END IF;
    new_theme := v_to.agent_identity;
    person_key := v_to.person_key;
    kind := v_to.kind;
    IF new_theme = old_theme OR v_new = v_old AND old_theme = memvec.bounded_name(v_old) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('"%s" is the same theme under both names', new_theme),
            HINT = 'Nothing needs to be moved.';
    END IF;
    IF new_theme = memvec.bounded_name(alias) THEN
        alias := NULL;
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.remap_ends IS
'Returns the theme whose rows a remap moves, as they spell it, the theme, person and kind to which they go, and the key that will be an alias from then on (NULL: none). Errors: MV001 blank, a sink, the same theme, a new theme that is not allowed, or a chat''s rows elsewhere than in their sink. Internal.';
REVOKE ALL ON FUNCTION memvec.remap_ends FROM public;
