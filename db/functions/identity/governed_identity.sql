-- The fleet's rules first, then the host's own, which may only narrow: a host's alias never moves a chat out of its sink,
-- allow-lists intersect, reject wins.
CREATE OR REPLACE FUNCTION memvec.governed_identity(
    p_raw text,
    p_governance jsonb DEFAULT NULL,
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
    v_host record;
    v_allowed text[];
BEGIN
    SELECT * INTO agent_identity, person_key, kind, reason FROM memvec.canonical_identity(p_raw);
    IF p_governance IS NULL OR jsonb_typeof(p_governance) <> 'object' OR kind IN ('direct', 'group') THEN
        RETURN;
    END IF;

    IF jsonb_typeof(p_governance -> 'aliases') = 'object' AND kind <> 'bench'
        AND NOT EXISTS (SELECT FROM memvec.identity_aliases AS a WHERE a.alias = memvec.clean_key(p_raw)) THEN
        SELECT * INTO v_host FROM memvec.canonical_identity(p_raw, p_governance -> 'aliases');
        -- An alias that led to a sink, to nothing or to a theme that is not allowed counts as well.
        IF v_host.reason IN ('alias', 'bench-reject', 'not-in-allowlist') OR memvec.is_sink(v_host.agent_identity) THEN
            agent_identity := v_host.agent_identity;
            person_key := v_host.person_key;
            kind := v_host.kind;
            reason := v_host.reason;
        END IF;
        -- What the host's alias names may itself have been renamed by the fleet.
        IF kind = 'theme' THEN
            SELECT * INTO agent_identity, person_key, kind, reason FROM memvec.canonical_identity(agent_identity);
        END IF;
    END IF;

    IF kind = 'bench' AND p_governance ->> 'bench_mode' = 'reject' THEN
        agent_identity := 'default';
        kind := 'default';
        reason := 'bench-reject';
    ELSIF kind = 'theme' AND jsonb_typeof(p_governance -> 'allowed_themes') = 'array' THEN
        v_allowed := memvec.host_themes(p_governance);
        IF agent_identity <> ALL (v_allowed) THEN
            agent_identity := 'default';
            kind := 'default';
            reason := 'not-in-allowlist';
        END IF;
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.governed_identity IS
'Returns canonical_identity of a raw key, narrowed by a host''s own rules {"aliases": {raw: theme}, "allowed_themes": [theme], "bench_mode": "reject"}. Rules of another shape are ignored. Internal.';
REVOKE ALL ON FUNCTION memvec.governed_identity FROM public;
