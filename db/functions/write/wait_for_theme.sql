-- Waiting has an end, and who waited in vain learns for whom. The lock_timeout of the SET clause is only there so that the one
-- set below ends with this function.
CREATE OR REPLACE FUNCTION memvec.wait_for_theme(p_agent_identity text, p_exclusive boolean, p_lock_timeout text)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
    v_key bigint := coalesce(memvec.theme_lock(p_agent_identity), memvec.housekeeping_lock());
    v_seconds double precision := least(
        memvec.setting('lock_seconds')::double precision, nullif(extract(epoch FROM p_lock_timeout::interval), 0)
    );
    -- A theme whose name is a chat's raw key exists where an import left one; it is not told.
    v_named text := CASE
        WHEN p_agent_identity IS NULL THEN 'housekeeping'
        WHEN memvec.classify_key(memvec.clean_key(p_agent_identity)) IN ('direct', 'group') AND NOT memvec.is_sink(p_agent_identity)
            THEN 'the theme of a chat'
        ELSE format('theme "%s"', p_agent_identity)
    END;
    v_others text;
BEGIN
    PERFORM set_config('lock_timeout', format('%sms', ceil(1000 * v_seconds)), true);
    BEGIN
        IF p_exclusive THEN
            PERFORM pg_advisory_xact_lock(v_key);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(v_key);
        END IF;
        RETURN;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        NULL;
    END;

    SELECT string_agg(DISTINCT format('login %s, process %s', coalesce(a.usename, '?'), l.pid), '; ') INTO v_others
      FROM pg_locks AS l
      LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
     WHERE l.locktype = 'advisory' AND l.objsubid = 1
       AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
       AND l.classid::bigint << 32 | l.objid::bigint = v_key
       AND (l.granted OR l.mode = 'ExclusiveLock')
       AND l.pid <> pg_backend_pid();
    IF p_exclusive OR p_agent_identity IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV008',
            MESSAGE = format('%s is in use and was not free within %s s', v_named, round(v_seconds::numeric, 1)),
            DETAIL = 'In use by: ' || coalesce(v_others, 'somebody who has just ended') || '.',
            HINT = 'Nothing was changed. Try again when that transaction has ended; pg_terminate_backend(process) ends it. Setting lock_seconds says how long to wait.';
    END IF;
    RAISE EXCEPTION USING
        ERRCODE = 'MV008',
        MESSAGE = format('%s is under maintenance and was not free within %s s', v_named, round(v_seconds::numeric, 1)),
        DETAIL = 'Held by: ' || coalesce(v_others, 'somebody who has just ended') || '.',
        HINT = 'Nothing was stored. Try again in a moment; the outbox does so by itself.';
END;
$$;

COMMENT ON FUNCTION memvec.wait_for_theme IS
'Waits for the lock on a theme (NULL: that of housekeeping), shared or exclusive, for setting lock_seconds or the caller''s own lock_timeout if that is shorter. Errors: MV008 it was not free in time, with who held it. Internal.';
REVOKE ALL ON FUNCTION memvec.wait_for_theme FROM public;
