-- What must hold after the function files, before the migration commits: every function in the schema comes from a file,
-- belongs to memvec_owner and is closed to PUBLIC, and so will be the next one. Run by the administrator, in the
-- migration's transaction, after the role was reset. Plain ASCII, like bootstrap.sql.
DO $verify$
DECLARE
    v_functions text;
    v_drops text;
BEGIN
    -- CREATE OR REPLACE writes a function's catalogue row anew, so a row that another transaction wrote has no file any
    -- more. Hence two rules: no GRANT, REVOKE or ALTER for all functions at once during a migration (it would touch orphans too),
    -- and no file inside a savepoint (its rows would carry another transaction id). Functions of extensions are not ours
    -- to judge; functions that a constraint, default, generated column or index calls are frozen with their table in a migration.
    SELECT string_agg(p.oid::regprocedure::text, ', ' ORDER BY p.oid::regprocedure::text),
           string_agg(format('DROP ROUTINE %s;', p.oid::regprocedure), ' ' ORDER BY p.oid::regprocedure::text)
      INTO v_functions, v_drops
      FROM pg_proc AS p
     WHERE p.pronamespace = 'memvec'::regnamespace
       AND p.xmin <> pg_current_xact_id()::xid
       AND NOT EXISTS (
            SELECT FROM pg_depend AS d
             WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
       AND NOT EXISTS (
            SELECT FROM pg_depend AS d
             WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
               AND d.classid IN ('pg_attrdef'::regclass, 'pg_constraint'::regclass, 'pg_class'::regclass));
    IF v_functions IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'MV108',
            MESSAGE = format('the schema memvec has a function without a file: %s', v_functions),
            DETAIL = 'Every function of the schema comes from a file below db/functions.',
            HINT = format('If a release dropped it, its migration must say so; if somebody added it by hand, run: '
                          'SET ROLE memvec_owner; %s', v_drops);
    END IF;

    SELECT string_agg(format('%s (%s)', p.oid::regprocedure, pg_get_userbyid(p.proowner)), ', ') INTO v_functions
      FROM pg_proc AS p
     WHERE p.pronamespace = 'memvec'::regnamespace AND p.proowner <> 'memvec_owner'::regrole
       AND NOT EXISTS (
            SELECT FROM pg_depend AS d
             WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e');
    IF v_functions IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'MV106',
            MESSAGE = format('functions in the schema memvec belong to somebody else: %s', v_functions),
            DETAIL = 'They must belong to memvec_owner, as whom they run.',
            HINT = 'As a superuser drop them or run ALTER FUNCTION ... OWNER TO memvec_owner for each, then migrate again.';
    END IF;

    SELECT string_agg(DISTINCT p.oid::regprocedure::text, ', ') INTO v_functions
      FROM pg_proc AS p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
     WHERE p.pronamespace = 'memvec'::regnamespace AND a.grantee = 0
       AND NOT EXISTS (
            SELECT FROM pg_depend AS d
             WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e');
    IF v_functions IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'MV106',
            MESSAGE = format('PUBLIC may execute functions of the schema memvec: %s', v_functions),
            DETAIL = 'Each function file revokes that from PUBLIC.',
            HINT = 'Add REVOKE ALL ON FUNCTION ... FROM PUBLIC to the file of each.';
    END IF;

    -- defaclnamespace 0 = global. PUBLIC is grantee 0.
    IF (SELECT count(*)
          FROM pg_default_acl AS d
         WHERE d.defaclrole = 'memvec_owner'::regrole AND d.defaclnamespace = 0 AND d.defaclobjtype IN ('f', 'T')) <> 2
       OR EXISTS (
            SELECT FROM pg_default_acl AS d, aclexplode(d.defaclacl) AS a
             WHERE d.defaclrole = 'memvec_owner'::regrole AND a.grantee = 0) THEN
        RAISE EXCEPTION USING ERRCODE = 'MV106',
            MESSAGE = 'the default privileges of memvec_owner give something to PUBLIC',
            DETAIL = 'New objects of memvec_owner must be closed to everybody else.',
            HINT = 'Look with \ddp in psql, and take away what memvec_owner grants to PUBLIC with ALTER DEFAULT PRIVILEGES '
                   'FOR ROLE memvec_owner ... REVOKE ... FROM PUBLIC;';
    END IF;
END
$verify$;
