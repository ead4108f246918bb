-- From "who asks, in which scope" to the filter that both legs apply. This is where a scope is refused.
CREATE OR REPLACE FUNCTION memvec.resolve_filter(
    p_identity text,
    p_scope text,
    p_target text,
    p_session_id text,
    p_exclude_session text,
    p_since timestamptz,
    p_until timestamptz,
    p_governance jsonb
)
RETURNS memvec.recall_filter
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_who record;
    v_named record;
    v_filter memvec.recall_filter;
    v_scope text := coalesce(memvec.clean_key(p_scope), 'own');
BEGIN
    SELECT * INTO v_who FROM memvec.acting_as(p_identity, p_governance);
    v_filter.person_key := v_who.person_key;
    v_filter.others := false;
    v_filter.target := nullif(memvec.clean_key(p_target), 'both');
    IF v_filter.target IS NOT NULL THEN
        v_filter.target := memvec.checked_target(v_filter.target);
    END IF;
    v_filter.session_id := memvec.clean_session(p_session_id);
    v_filter.exclude_session := memvec.clean_session(p_exclude_session);
    v_filter.since := p_since;
    v_filter.until := p_until;

    IF v_scope IN ('own', 'current') THEN
        v_filter.own := v_who.agent_identity;
    ELSIF v_scope = 'session' THEN
        IF v_filter.session_id IS NULL THEN
            RAISE EXCEPTION USING
                ERRCODE = 'MV001',
                MESSAGE = 'scope session needs a session',
                HINT = 'Give p_session_id, or use scope own, all or a theme name.';
        END IF;
        v_filter.own := v_who.agent_identity;
    ELSIF v_scope = 'all' THEN
        v_filter.own := v_who.agent_identity;
        v_filter.others := true;
        v_filter.themes := memvec.readable_themes(p_governance);
    ELSE
        SELECT * INTO v_named FROM memvec.governed_identity(v_scope, p_governance);
        IF v_named.agent_identity = v_who.agent_identity AND v_named.reason NOT IN ('not-in-allowlist', 'bench-reject') THEN
            v_filter.own := v_who.agent_identity;
        ELSIF memvec.is_sink(v_named.agent_identity) THEN
            RAISE EXCEPTION USING
                ERRCODE = 'MV003',
                MESSAGE = format('scope "%s" is a sink of chats or benchmarks and cannot be read from theme "%s"',
                                 v_named.agent_identity, v_who.agent_identity),
                HINT = 'Use scope own, all, or the name of an ordinary theme.';
        ELSIF v_named.reason IN ('not-in-allowlist', 'bench-reject') OR v_named.agent_identity <> ALL (memvec.readable_themes(p_governance)) THEN
            RAISE EXCEPTION USING
                ERRCODE = 'MV003',
                MESSAGE = format('scope "%s" may not be read here', left(v_scope, 80)),
                HINT = 'It is not among the allowed themes, or the login role is bound to others. Use scope own or all.';
        ELSE
            v_filter.own := v_named.agent_identity;
            v_filter.person_key := NULL;
        END IF;
    END IF;
    RETURN v_filter;
END;
$$;

COMMENT ON FUNCTION memvec.resolve_filter IS
'Returns the filter of a recall: scope own (or current, or blank), session, all (own rows and every ordinary theme that readable_themes leaves), or a theme name; target memory, user, or both when NULL. Errors: MV001 unknown target or no session, MV002, MV003 scope refused. Internal.';
REVOKE ALL ON FUNCTION memvec.resolve_filter FROM public;
