-- Who stores a vector holds its row, not its theme. Entries go before turns and both by their ids, as store_embeddings takes them. The
-- lock_timeout of the SET clause is only there so that the one set below ends with this function.
CREATE OR REPLACE FUNCTION memvec.hold_rows(p_entries bigint [], p_turns bigint [])
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
SET lock_timeout = '5s'
AS $$
DECLARE
    v_seconds integer := memvec.setting('lock_seconds')::integer;
    v_others text;
BEGIN
    PERFORM set_config('lock_timeout', format('%ss', v_seconds), true);
    BEGIN
        PERFORM FROM memvec.memory_entries AS m WHERE m.id = ANY (p_entries) ORDER BY m.id FOR UPDATE;
        PERFORM FROM memvec.conversations AS c WHERE c.id = ANY (p_turns) ORDER BY c.id FOR UPDATE;
        RETURN;
    EXCEPTION WHEN lock_not_available THEN
        NULL;
    END;
    SELECT string_agg(DISTINCT format('login %s, process %s', coalesce(a.usename, '?'), l.pid), '; ') INTO v_others
      FROM pg_locks AS l
      LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
     WHERE l.relation IN ('memvec.memory_entries'::regclass, 'memvec.conversations'::regclass)
       AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
       AND l.granted AND l.mode IN ('RowShareLock', 'RowExclusiveLock')
       AND l.pid <> pg_backend_pid();
    RAISE EXCEPTION USING
        ERRCODE = 'MV008',
        MESSAGE = format('a row is in use and was not free within %s s', v_seconds),
        DETAIL = 'By one of these: ' || coalesce(v_others, 'somebody who has just ended') || '.',
        HINT = 'Nothing was changed. Try again when that transaction has ended; pg_terminate_backend(process) ends it. Setting lock_seconds says how long to wait.';
END;
$$;

COMMENT ON FUNCTION memvec.hold_rows IS
'Locks entries and turns that maintenance is about to change against those who store or claim vectors. Errors: MV008 one was not free within setting lock_seconds, with who may hold it. Internal.';
REVOKE ALL ON FUNCTION memvec.hold_rows FROM public;
