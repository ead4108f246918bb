CREATE OR REPLACE FUNCTION memvec.set_ttl(p_identity text, p_days integer)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_who record;
BEGIN
    IF p_days NOT BETWEEN 0 AND 36500 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('turns cannot be kept for %s days', p_days),
            HINT = 'Give 1 to 36500 days, 0 to keep them for ever, or NULL to let every prune decide.';
    END IF;
    PERFORM memvec.checked_theme(p_identity);
    SELECT * INTO v_who FROM memvec.canonical_identity(p_identity);
    IF v_who.reason IN ('not-in-allowlist', 'bench-reject') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('"%s" is not an allowed theme', left(p_identity, 80)),
            HINT = 'Allow it first, with memvec.set_setting: see the settings allowed_themes and bench_mode.';
    END IF;
    PERFORM memvec.assert_known(ARRAY[v_who.agent_identity]);
    INSERT INTO memvec.memory_agents AS a (agent_identity, kind, sink, ttl_days)
    VALUES (v_who.agent_identity, v_who.kind, memvec.is_sink(v_who.agent_identity), p_days)
    ON CONFLICT (agent_identity) DO UPDATE SET ttl_days = excluded.ttl_days;
    INSERT INTO memvec.maintenance_log (operation, table_name, rows, parameters)
    VALUES ('set_ttl', 'memory_agents', 1, jsonb_build_object('theme', v_who.agent_identity, 'days', p_days));
END;
$$;

COMMENT ON FUNCTION memvec.set_ttl IS
'Says after how many days memvec.prune deletes the turns of a theme, whatever days it is called with: 0 never, NULL as it is told. Nothing is deleted by this call. Errors: MV001 out of range, a theme that is blank, not allowed or not there, the key of a chat.';
REVOKE ALL ON FUNCTION memvec.set_ttl FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.set_ttl TO memvec_admin;
