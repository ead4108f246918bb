-- Rules that hold for everything in the schema, also for what is added later. A failure lists the offenders.
BEGIN;
SELECT plan(25);
SELECT memvec_tests.alone();

-- The tables of an embedding space are made at run time: one is made here, so that the rules are seen to hold for them.
SELECT memvec_tests.act_as('tap_admin');
SELECT lives_ok(
    $$ SELECT memvec.add_embedding_space(p_model => 'catalogue', p_dim => 8) $$,
    'an admin can add an embedding space'
);
RESET SESSION AUTHORIZATION;

CREATE TEMP VIEW fn AS
SELECT
    p.*,
    format('%s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)) AS signature
FROM pg_proc AS p
WHERE p.pronamespace = 'memvec'::regnamespace;

CREATE TEMP VIEW rel AS
SELECT c.*
FROM pg_class AS c
WHERE c.relnamespace = 'memvec'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S');

SELECT cmp_ok((SELECT count(*) FROM fn), '>', 0::bigint, 'there are functions to check');
SELECT cmp_ok((SELECT count(*) FROM rel WHERE relkind = 'r'), '>', 0::bigint, 'there are tables to check');

-- Functions

SELECT is_empty(
    $$ SELECT signature FROM fn WHERE NOT prosecdef AND prosqlbody IS NULL $$,
    'a function runs as its owner, or is a helper with an SQL-standard body'
);
SELECT is_empty(
    $$ SELECT signature FROM fn
       WHERE prosecdef AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (proconfig), false) $$,
    'a function that runs as its owner pins its search_path to pg_catalog, pg_temp'
);
SELECT is_empty(
    $$ SELECT signature FROM fn WHERE proowner <> 'memvec_owner'::regrole $$,
    'memvec_owner owns every function'
);
SELECT is_empty(
    $$ SELECT signature FROM fn, aclexplode(coalesce(proacl, acldefault('f', proowner))) AS a WHERE a.grantee = 0 $$,
    'PUBLIC may execute no function'
);
SELECT is_empty(
    $$ SELECT signature, a.grantee::regrole FROM fn, aclexplode(proacl) AS a WHERE a.is_grantable AND a.grantee <> proowner $$,
    'nobody may pass on the right to execute a function'
);
SELECT is_empty(
    $$ SELECT signature FROM fn WHERE coalesce(btrim(obj_description(oid, 'pg_proc')), '') = '' $$,
    'every function has a comment'
);
SELECT is_empty(
    $$ SELECT proname, count(*) FROM fn GROUP BY proname HAVING count(*) > 1 $$,
    'no function name is overloaded'
);
SELECT is_empty(
    $$ SELECT f.signature, a.name
       FROM fn AS f
       CROSS JOIN unnest(f.proargnames, f.proargmodes) AS a (name, mode)
       WHERE coalesce(a.mode, 'i') IN ('i', 'b', 'v') AND a.name NOT LIKE 'p\_%' $$,
    'every argument has a name that begins with p_'
);

-- Who may execute what, and who may do what with every other object, is written down in db/privileges.txt.

SELECT is_empty(
    $$ SELECT signature FROM fn
       WHERE prosqlbody IS NULL AND prosrc ~ '\\' AND NOT coalesce('standard_conforming_strings=on' = ANY (proconfig), false) $$,
    'a function with a backslash in its body means the same whatever the session says about strings'
);

-- Tables, sequences, views

SELECT is_empty(
    $$ SELECT relname FROM rel WHERE relowner <> 'memvec_owner'::regrole $$,
    'memvec_owner owns every table, sequence and view'
);
SELECT is_empty(
    $$ SELECT relname FROM rel WHERE relkind IN ('r', 'p') AND NOT relrowsecurity $$,
    'row security is enabled on every table'
);
SELECT is_empty(
    $$ SELECT r.relname, a.grantee::regrole, a.privilege_type
       FROM rel AS r
       CROSS JOIN aclexplode(r.relacl) AS a
       WHERE a.grantee <> r.relowner
           AND NOT (r.relkind = 'v' AND a.grantee = 'memvec_admin'::regrole AND a.privilege_type = 'SELECT')
       UNION ALL
       SELECT r.relname || '.' || c.attname, a.grantee::regrole, a.privilege_type
       FROM rel AS r
       INNER JOIN pg_attribute AS c ON c.attrelid = r.oid
       CROSS JOIN aclexplode(c.attacl) AS a
       WHERE a.grantee <> r.relowner $$,
    'nobody but the owner holds a right on a table or sequence, and on a view only memvec_admin, to read it'
);
SELECT is_empty(
    $$ SELECT relname FROM rel WHERE relkind = 'v' AND NOT has_table_privilege('memvec_admin', oid, 'SELECT') $$,
    'memvec_admin may read every view'
);
SELECT is_empty(
    $$ SELECT relname FROM rel
       WHERE relkind = 'v' AND NOT coalesce('security_barrier=true' = ANY (reloptions), false) $$,
    'every view is a security barrier'
);
SELECT is_empty(
    $$ SELECT relname FROM rel
       WHERE relkind IN ('r', 'p', 'v', 'm')
           AND coalesce(btrim(obj_description(oid, 'pg_class')), '') = ''
           AND relname NOT IN (SELECT unnest(ARRAY[entry_table, turn_table]) FROM memvec.embedding_spaces) $$,
    'every table and view has a comment, but for those of the embedding spaces'
);
SELECT is_empty(
    $$ SELECT c.conrelid::regclass, c.conname
       FROM pg_constraint AS c
       WHERE c.connamespace = 'memvec'::regnamespace
           AND c.contype = 'f'
           AND NOT EXISTS (
               SELECT FROM pg_index AS i
               WHERE i.indrelid = c.conrelid
                   AND i.indpred IS NULL
                   AND (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey
           ) $$,
    'every foreign key has an index that begins with its columns'
);
SELECT is_empty(
    $$ SELECT pg_describe_object(d.classid, d.objid, d.objsubid), f.signature
       FROM pg_depend AS d
       INNER JOIN fn AS f ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = f.oid
       WHERE d.classid IN (
           'pg_class'::regclass, 'pg_attrdef'::regclass, 'pg_constraint'::regclass, 'pg_trigger'::regclass
       ) $$,
    'no index, default, generated column, constraint or trigger calls a function of ours: a dump would not restore it'
);

-- Schema and roles

SELECT is(
    (SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'memvec'), 'memvec_owner',
    'memvec_owner owns the schema'
);
SELECT is_empty(
    $$ SELECT a.grantee::regrole, a.privilege_type
       FROM pg_namespace AS n
       CROSS JOIN aclexplode(n.nspacl) AS a
       WHERE n.nspname = 'memvec'
           AND a.grantee <> n.nspowner
           AND NOT (
               a.privilege_type = 'USAGE'
               AND a.grantee IN (
                   'memvec_runtime'::regrole, 'memvec_embedder'::regrole, 'memvec_reader'::regrole, 'memvec_admin'::regrole
               )
           ) $$,
    'only the four groups may use the schema, and nobody but the owner may create in it'
);
SELECT is_empty(
    $$ SELECT rolname FROM pg_roles
       WHERE rolname IN ('memvec_owner', 'memvec_runtime', 'memvec_embedder', 'memvec_reader', 'memvec_admin')
           AND (rolcanlogin OR rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication) $$,
    'owner and groups cannot log in and have no special right'
);
SELECT is_empty(
    $$ SELECT g.rolname, t.rolname
       FROM pg_roles AS g
       CROSS JOIN pg_roles AS t
       WHERE g.rolname IN ('memvec_runtime', 'memvec_embedder', 'memvec_reader', 'memvec_admin')
           AND t.rolname <> g.rolname
           AND pg_has_role(g.oid, t.oid, 'MEMBER') $$,
    'no group is a member of another role'
);
SELECT is_empty(
    $$ SELECT 'functions of memvec_owner are born executable by PUBLIC'
       WHERE NOT EXISTS (
           SELECT FROM pg_default_acl
           WHERE defaclrole = 'memvec_owner'::regrole AND defaclnamespace = 0 AND defaclobjtype = 'f'
               AND NOT EXISTS (SELECT FROM aclexplode(defaclacl) AS a WHERE a.grantee = 0)
       ) $$,
    'the default privileges of memvec_owner give PUBLIC nothing, in every schema'
);

SELECT * FROM finish();
ROLLBACK;
