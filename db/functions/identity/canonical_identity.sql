-- From a raw session key to a theme. Every public function sends its raw key through here, so that no client can skip
-- governance and no raw key is ever stored, logged or returned.
CREATE OR REPLACE FUNCTION memvec.canonical_identity(
    p_raw text,
    p_aliases jsonb DEFAULT NULL,
    p_allowed text [] DEFAULT NULL,
    p_bench_mode text DEFAULT NULL,
    OUT agent_identity text,
    OUT person_key uuid,
    OUT kind text,
    OUT reason text
)
RETURNS record
LANGUAGE plpgsql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_key text := memvec.clean_key(p_raw);
    v_alias text;
    v_person_of text;
    v_allowed text[];
BEGIN
    reason := CASE
        WHEN v_key IS NULL THEN 'empty'
        WHEN v_key = p_raw THEN 'unchanged'
        WHEN v_key = memvec.blankless(p_raw) THEN 'trimmed'
        WHEN v_key = lower(p_raw COLLATE memvec.folding) THEN 'lowercased'
        ELSE 'cleaned'
    END;
    v_person_of := v_key;
    IF p_aliases IS NULL THEN
        SELECT a.agent_identity INTO v_alias FROM memvec.identity_aliases AS a WHERE a.alias = v_key;
    ELSIF jsonb_typeof(p_aliases) = 'object' THEN
        SELECT a.value INTO v_alias FROM jsonb_each_text(p_aliases) AS a WHERE memvec.clean_key(a.key) = v_key
         ORDER BY a.key LIMIT 1;
    END IF;
    IF FOUND AND v_key IS NOT NULL THEN
        v_key := memvec.clean_key(v_alias);
        reason := 'alias';
        -- An alias onto a sink's name collects several chats; each keeps the person of its own key.
        IF v_key IS NOT NULL AND NOT memvec.is_sink(v_key) THEN
            v_person_of := v_key;
        END IF;
    END IF;

    kind := memvec.classify_key(v_key);
    IF kind = 'direct' THEN
        agent_identity := 'whatsapp-dm';
        reason := CASE WHEN v_key = agent_identity THEN reason ELSE 'dm-bucket' END;
    ELSIF kind = 'group' THEN
        agent_identity := 'external-group';
        reason := CASE WHEN v_key = agent_identity THEN reason ELSE 'group-bucket' END;
    ELSIF kind = 'bench' THEN
        IF coalesce(p_bench_mode, memvec.setting('bench_mode')) = 'reject' THEN
            agent_identity := 'default';
            kind := 'default';
            reason := 'bench-reject';
        ELSE
            agent_identity := '_bench';
            reason := CASE WHEN v_key = agent_identity THEN reason ELSE 'bench-bucket' END;
        END IF;
    ELSIF kind = 'default' THEN
        agent_identity := 'default';
    ELSE
        IF p_allowed IS NULL THEN
            SELECT string_to_array(s.value, ',') INTO v_allowed FROM memvec.settings AS s WHERE s.name = 'allowed_themes';
        ELSE
            v_allowed := p_allowed;
        END IF;
        agent_identity := memvec.bounded_name(v_key);
        IF v_allowed <> '{}' AND agent_identity <> ALL (memvec.theme_list(v_allowed)) THEN
            agent_identity := 'default';
            kind := 'default';
            reason := 'not-in-allowlist';
        END IF;
    END IF;
    -- Locks are named after persons, and everybody sees locks: who could name a person could watch them write.
    IF kind IN ('direct', 'group')
        AND (memvec.may_act_as(agent_identity) OR pg_has_role(session_user, 'memvec_admin', 'MEMBER')) THEN
        person_key := memvec.person_key(v_person_of, kind);
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.canonical_identity IS
'Returns the theme that a raw session key stands for: agent_identity, person_key (a keyed hash, only in whatsapp-dm and external-group, and only for a login role that may act as them), kind (default, theme, direct, group, bench) and reason. p_aliases (an object raw -> theme), p_allowed (empty = every theme) and p_bench_mode (bucket or reject) replace the fleet''s settings where they are not NULL. Order: clean, alias (one hop), direct message, group, benchmark, allow-list; unknown chat types count as groups.';
REVOKE ALL ON FUNCTION memvec.canonical_identity FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.canonical_identity TO memvec_runtime, memvec_reader, memvec_admin;
