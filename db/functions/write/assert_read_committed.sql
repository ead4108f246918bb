-- Writers decide under a lock and must then see what others committed while they waited for it. Above READ COMMITTED they
-- would decide on an old snapshot.
CREATE OR REPLACE FUNCTION memvec.assert_read_committed()
RETURNS void
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV006',
            MESSAGE = format('writes need isolation level READ COMMITTED, this transaction is %s',
                             upper(current_setting('transaction_isolation'))),
            HINT = 'BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED;';
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.assert_read_committed IS
'Returns nothing, and refuses isolation levels above READ COMMITTED. Errors: MV006. Internal.';
REVOKE ALL ON FUNCTION memvec.assert_read_committed FROM public;
