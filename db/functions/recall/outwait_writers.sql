-- Who began to write before a change of settings was committed writes by the old ones, and is seen only once it is done. Writers
-- hold their theme's lock or that of a table. Others who renew rows need no waiting: the rows they hold count as old until they
-- commit. Nor does it help to wait for a writer who waits for us.
CREATE OR REPLACE FUNCTION memvec.outwait_writers()
RETURNS boolean
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_until timestamptz := clock_timestamp() + make_interval(secs => memvec.setting('lock_seconds')::double precision);
    v_database oid := (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database());
    v_reindex bigint := memvec.reindex_lock();
    v_writers text[];
BEGIN
    SELECT array_agg(DISTINCT l.virtualtransaction)
      INTO v_writers
      FROM pg_locks AS l
     WHERE l.granted AND l.database = v_database AND l.pid <> pg_backend_pid()
       AND (l.locktype = 'advisory'
            OR l.mode = 'RowExclusiveLock'
               AND l.relation IN ('memvec.memory_entries'::regclass, 'memvec.conversations'::regclass))
       -- A lock of a session that is in no transaction
       AND l.virtualtransaction NOT LIKE '%/0'
       AND l.virtualtransaction NOT IN (
               SELECT r.virtualtransaction
                 FROM pg_locks AS r
                WHERE r.locktype = 'advisory' AND r.objsubid = 1 AND r.database = v_database
                  AND r.classid::bigint << 32 | r.objid::bigint = v_reindex
           );
    WHILE EXISTS (SELECT FROM pg_locks AS l WHERE l.virtualtransaction = ANY (v_writers)) LOOP
        IF clock_timestamp() > v_until
            OR EXISTS (SELECT FROM pg_locks AS l
                        WHERE l.virtualtransaction = ANY (v_writers) AND pg_backend_pid() = ANY (pg_blocking_pids(l.pid))) THEN
            RETURN false;
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
    RETURN true;
END;
$$;

COMMENT ON FUNCTION memvec.outwait_writers IS
'Waits until the transactions that write entries or turns at the moment of the call have ended, for setting lock_seconds at most, and returns whether they have. Later ones are not waited for, nor are those of reindex_search. Internal.';
REVOKE ALL ON FUNCTION memvec.outwait_writers FROM public;
