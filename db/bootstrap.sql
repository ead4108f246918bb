-- What a migration needs before its tables: settings of the transaction, checks of the server, roles, the extension,
-- the schema, a collation that folds Unicode, the ledger. Run by an administrator, first, inside the migration's
-- transaction; it may run any number of times and changes only what is missing.
--
-- The checks live here rather than in a runner, so that Python and psql give the same messages. Failures carry an
-- SQLSTATE MV1xx and a HINT with the command to run. What was created or granted is told by NOTICEs of SQLSTATE MV100.
--
-- Settings that the runner may give with set_config(..., true) beforehand:
--   memvec.runtime_role   login role that gets memvec_runtime; blank = none
--   memvec.embedder_role  login role that gets memvec_embedder; blank = none
--   memvec.migrations     the migration files, a line each: SHA-256, two blanks, file name; then
--                         memvec.pending_migrations is set to the versions to apply, as an int[] literal
--
-- This file is plain ASCII: a database of another encoding must get as far as the check that refuses it.

-- One migration at a time. The lock comes first, so that every later statement sees what the one before it committed.
SET LOCAL lock_timeout = '5min';
SELECT pg_catalog.pg_advisory_xact_lock(7236547101);

-- Waiting longer for a table would stop its readers and writers, who queue behind the waiting ALTER TABLE.
SET LOCAL lock_timeout = '10s';
SET LOCAL statement_timeout = 0;
SET LOCAL client_min_messages = notice;
SET LOCAL search_path = pg_catalog, pg_temp;

-- Server and encoding.
DO $bootstrap$
DECLARE
    v_encoding text := getdatabaseencoding();
BEGIN
    IF current_setting('server_version_num')::int < 160000 THEN
        RAISE EXCEPTION USING ERRCODE = 'MV103',
            MESSAGE = format('PostgreSQL %s is too old', current_setting('server_version')),
            DETAIL = 'PostgreSQL 16 or newer is needed.',
            HINT = 'Upgrade the server, or use a database on another one.';
    END IF;
    IF v_encoding <> 'UTF8' THEN
        RAISE EXCEPTION USING ERRCODE = 'MV101',
            MESSAGE = format('database "%s" has the encoding %s', current_database(), v_encoding),
            DETAIL = 'Text of every language is stored, which needs the encoding UTF8.',
            HINT = 'Use another database: CREATE DATABASE memvec ENCODING ''UTF8'' TEMPLATE template0;';
    END IF;
END
$bootstrap$;

-- Group roles. Roles belong to the whole cluster, so another database may have made them already.
DO $bootstrap$
DECLARE
    v_missing text[];
    v_commands text;
    v_role text;
    v_open text;
BEGIN
    SELECT array_agg(r.name ORDER BY r.place), string_agg(format('CREATE ROLE %I NOLOGIN;', r.name), ' ' ORDER BY r.place)
      INTO v_missing, v_commands
      FROM unnest(ARRAY['memvec_owner', 'memvec_runtime', 'memvec_embedder', 'memvec_reader', 'memvec_admin'])
           WITH ORDINALITY AS r (name, place)
     WHERE to_regrole(r.name) IS NULL;

    FOREACH v_role IN ARRAY coalesce(v_missing, '{}') LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', v_role);
            RAISE NOTICE USING ERRCODE = 'MV100', MESSAGE = format('created role %I', v_role);
        EXCEPTION
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION USING ERRCODE = 'MV104',
                    MESSAGE = format('roles are missing and "%s" may not create them: %s', current_user,
                                     array_to_string(v_missing, ', ')),
                    DETAIL = 'Creating roles needs a superuser or a role with CREATEROLE.',
                    HINT = 'As such a role run: ' || v_commands
                           || format(' GRANT memvec_owner TO %I WITH SET TRUE, INHERIT FALSE;', current_user);
            WHEN duplicate_object OR unique_violation THEN
                NULL;  -- a migration of another database was faster
        END;
    END LOOP;

    SELECT concat_ws(', ', CASE WHEN r.rolcanlogin THEN 'LOGIN' END, CASE WHEN r.rolsuper THEN 'SUPERUSER' END,
                     CASE WHEN r.rolbypassrls THEN 'BYPASSRLS' END)
      INTO v_open
      FROM pg_roles AS r
     WHERE r.rolname = 'memvec_owner' AND (r.rolcanlogin OR r.rolsuper OR r.rolbypassrls);
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'MV106',
            MESSAGE = format('role memvec_owner must not have %s', v_open),
            DETAIL = 'Functions run as it, so nobody logs in as it and it has no rights beyond its own objects.',
            HINT = 'As a superuser run: ALTER ROLE memvec_owner NOLOGIN NOSUPERUSER NOBYPASSRLS;';
    END IF;

    SELECT r.name INTO v_open
      FROM unnest(ARRAY['memvec_runtime', 'memvec_embedder', 'memvec_reader', 'memvec_admin']) AS r (name)
     WHERE pg_has_role(r.name, 'memvec_owner', 'MEMBER')
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'MV106',
            MESSAGE = format('role %I is a member of memvec_owner', v_open),
            DETAIL = 'Its members could read and change every table.',
            HINT = format('Run: REVOKE memvec_owner FROM %I;', v_open);
    END IF;
END
$bootstrap$;

-- An administrator with CREATEROLE may create memvec_owner but not yet act as it (PostgreSQL 16 and newer).
DO $bootstrap$
BEGIN
    IF pg_has_role(current_user, 'memvec_owner', 'SET') THEN
        RETURN;
    END IF;
    GRANT memvec_owner TO CURRENT_USER WITH SET TRUE, INHERIT FALSE;
    RAISE NOTICE USING ERRCODE = 'MV100',
        MESSAGE = format('granted memvec_owner to %I (SET only, needed to migrate)', current_user);
EXCEPTION WHEN insufficient_privilege THEN
    RAISE EXCEPTION USING ERRCODE = 'MV105',
        MESSAGE = format('"%s" may not act as memvec_owner', current_user),
        DETAIL = 'Everything in the schema memvec is created as the role memvec_owner.',
        HINT = format('As a superuser run: GRANT memvec_owner TO %I WITH SET TRUE, INHERIT FALSE;', current_user);
END
$bootstrap$;

-- The extension.
DO $bootstrap$
DECLARE
    v_oldest constant int[] := ARRAY[0, 8, 0];
    v_advised constant int[] := ARRAY[0, 8, 4];
    v_text text;
    v_version int[];
    v_schema text;
    v_packaged text;
    v_role text;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') THEN
        SELECT default_version INTO v_packaged FROM pg_available_extensions WHERE name = 'vector';
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'MV102',
                MESSAGE = 'the extension vector (pgvector) is not installed on the server',
                DETAIL = 'pgvector 0.8.0 or newer is needed, 0.8.4 or newer advised.',
                HINT = format('Install the package postgresql-%s-pgvector (Debian, Ubuntu) or pgvector_%1$s (RPM), '
                              'or use an image such as pgvector/pgvector:pg%1$s; then migrate again.',
                              current_setting('server_version_num')::int / 10000);
        END IF;
        IF to_regnamespace('public') IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'MV102',
                MESSAGE = 'the extension vector is missing and there is no schema public to create it in',
                DETAIL = format('Database "%s".', current_database()),
                HINT = 'As a superuser, in this database, run: CREATE SCHEMA extensions; '
                       'CREATE EXTENSION vector SCHEMA extensions;';
        END IF;
        BEGIN
            CREATE EXTENSION vector SCHEMA public;
            RAISE NOTICE USING ERRCODE = 'MV100', MESSAGE = format('created extension vector %s in schema public', v_packaged);
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE EXCEPTION USING ERRCODE = 'MV102',
                MESSAGE = format('the extension vector is missing and "%s" may not create it', current_user),
                DETAIL = format('Database "%s"; creating it needs a superuser.', current_database()),
                HINT = format('As a superuser, in database %I, run: CREATE EXTENSION vector SCHEMA public;', current_database());
        END;
    END IF;

    SELECT e.extversion, n.nspname INTO v_text, v_schema
      FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
     WHERE e.extname = 'vector';
    v_version := regexp_match(v_text, '^(\d+)\.(\d+)\.?(\d*)');
    IF v_version IS NOT NULL AND v_version < v_oldest THEN
        SELECT default_version INTO v_packaged FROM pg_available_extensions WHERE name = 'vector';
        RAISE EXCEPTION USING ERRCODE = 'MV103',
            MESSAGE = format('the extension vector has version %s, which is too old', v_text),
            DETAIL = format('0.8.0 or newer is needed, 0.8.4 or newer advised; the server offers %s.', v_packaged),
            HINT = format('Install a newer package postgresql-%s-pgvector if the server offers none, then, as a superuser, '
                          'run: ALTER EXTENSION vector UPDATE;', current_setting('server_version_num')::int / 10000);
    END IF;
    IF v_version IS NOT NULL AND v_version < v_advised THEN
        RAISE WARNING USING
            MESSAGE = format('the extension vector has version %s; 0.8.4 fixed faults of its HNSW indexes', v_text),
            HINT = 'Update the package, then run: ALTER EXTENSION vector UPDATE;';
    END IF;

    -- The runner writes this name into every file in place of "public".
    IF v_schema ~ '[^A-Za-z0-9_ -]' OR v_schema = 'memvec' THEN
        RAISE EXCEPTION USING ERRCODE = 'MV102',
            MESSAGE = format('the extension vector lives in schema "%s", which cannot be used', v_schema),
            DETAIL = 'Its schema may be any but memvec whose name has only letters, digits, blanks, _ and -.',
            HINT = 'As a superuser run: CREATE SCHEMA extensions; ALTER EXTENSION vector SET SCHEMA extensions;';
    END IF;

    FOREACH v_role IN ARRAY ARRAY['memvec_owner', 'memvec_runtime', 'memvec_embedder', 'memvec_reader', 'memvec_admin'] LOOP
        IF v_role <> 'memvec_owner' AND has_schema_privilege(v_role, v_schema, 'CREATE') THEN
            RAISE EXCEPTION USING ERRCODE = 'MV106',
                MESSAGE = format('role %I may create objects in schema "%s", where the extension vector lives', v_role, v_schema),
                DETAIL = 'Functions name types and operators of that schema: who may create some there could have them used.',
                HINT = format('Run: REVOKE CREATE ON SCHEMA %I FROM PUBLIC, %I; or move the extension into a schema of its own.',
                              v_schema, v_role);
        END IF;
        CONTINUE WHEN has_schema_privilege(v_role, v_schema, 'USAGE');
        BEGIN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', v_schema, v_role);
        EXCEPTION WHEN insufficient_privilege THEN
            NULL;  -- told below
        END;
        IF NOT has_schema_privilege(v_role, v_schema, 'USAGE') THEN
            RAISE EXCEPTION USING ERRCODE = 'MV105',
                MESSAGE = format('role %I may not use schema "%s", where the extension vector lives', v_role, v_schema),
                DETAIL = format('"%s" may not grant it.', current_user),
                HINT = format('As the owner of the schema run: GRANT USAGE ON SCHEMA %I TO memvec_owner, memvec_runtime, '
                              'memvec_embedder, memvec_reader, memvec_admin;', v_schema);
        END IF;
        RAISE NOTICE USING ERRCODE = 'MV100', MESSAGE = format('granted USAGE on schema %I to %I', v_schema, v_role);
    END LOOP;
END
$bootstrap$;

-- The schema: nobody else may create anything in it, PUBLIC has nothing.
DO $bootstrap$
DECLARE
    v_owner text;
    v_grantee text;
BEGIN
    SELECT pg_get_userbyid(nspowner) INTO v_owner FROM pg_namespace WHERE nspname = 'memvec';
    IF NOT FOUND THEN
        BEGIN
            CREATE SCHEMA memvec AUTHORIZATION memvec_owner;
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE EXCEPTION USING ERRCODE = 'MV105',
                MESSAGE = format('"%s" may not create the schema memvec in database "%s"', current_user, current_database()),
                DETAIL = 'Creating a schema needs the privilege CREATE on the database.',
                HINT = format('As the owner of the database run: GRANT CREATE ON DATABASE %I TO %I;', current_database(),
                              current_user);
        END;
        RAISE NOTICE USING ERRCODE = 'MV100', MESSAGE = 'created schema memvec, owned by memvec_owner';
    ELSIF v_owner <> 'memvec_owner' THEN
        RAISE EXCEPTION USING ERRCODE = 'MV106',
            MESSAGE = format('the schema memvec exists and belongs to "%s"', v_owner),
            DETAIL = 'It must belong to memvec_owner: whoever owns it could replace the functions.',
            HINT = 'If somebody else uses it, run: ALTER SCHEMA memvec RENAME TO memvec_old; '
                   'if it is empty, run: ALTER SCHEMA memvec OWNER TO memvec_owner;';
    END IF;

    SET LOCAL ROLE memvec_owner;
    REVOKE ALL ON SCHEMA memvec FROM PUBLIC;
    SELECT pg_get_userbyid(a.grantee) INTO v_grantee
      FROM pg_namespace AS n, aclexplode(n.nspacl) AS a
     WHERE n.nspname = 'memvec' AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'MV106',
            MESSAGE = format('role "%s" may create objects in the schema memvec', v_grantee),
            DETAIL = 'Only memvec_owner may.',
            HINT = format('Run: SET ROLE memvec_owner; REVOKE CREATE ON SCHEMA memvec FROM %I;', v_grantee);
    END IF;

    -- Global on purpose: a per-schema revoke takes nothing away from the built-in grant to PUBLIC. Asserted at each
    -- migration, because a dump of one database does not carry it.
    ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
    ALTER DEFAULT PRIVILEGES REVOKE USAGE ON TYPES FROM PUBLIC;
    RESET ROLE;
END
$bootstrap$;

-- The groups may connect and see the schema.
DO $bootstrap$
DECLARE
    v_role text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY['memvec_runtime', 'memvec_embedder', 'memvec_reader', 'memvec_admin'] LOOP
        IF NOT has_database_privilege(v_role, current_database(), 'CONNECT') THEN
            BEGIN
                EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), v_role);
            EXCEPTION WHEN insufficient_privilege THEN
                NULL;  -- told below
            END;
            IF NOT has_database_privilege(v_role, current_database(), 'CONNECT') THEN
                RAISE EXCEPTION USING ERRCODE = 'MV105',
                    MESSAGE = format('role %I may not connect to database "%s"', v_role, current_database()),
                    DETAIL = format('"%s" may not grant it.', current_user),
                    HINT = format('As the owner of the database run: GRANT CONNECT ON DATABASE %I TO memvec_runtime, '
                                  'memvec_embedder, memvec_reader, memvec_admin;', current_database());
            END IF;
            RAISE NOTICE USING ERRCODE = 'MV100',
                MESSAGE = format('granted CONNECT on database %I to %I', current_database(), v_role);
        END IF;
        IF NOT has_schema_privilege(v_role, 'memvec', 'USAGE') THEN
            SET LOCAL ROLE memvec_owner;
            EXECUTE format('GRANT USAGE ON SCHEMA memvec TO %I', v_role);
            RESET ROLE;
            RAISE NOTICE USING ERRCODE = 'MV100', MESSAGE = format('granted USAGE on schema memvec to %I', v_role);
        END IF;
    END LOOP;
END
$bootstrap$;

-- The login roles that the runner was told to serve.
DO $bootstrap$
DECLARE
    v_role text;
    v_group text;
    v_attributes pg_roles%ROWTYPE;
    v_name text;
    v_value text;
BEGIN
    FOR v_role, v_group IN
        SELECT btrim(r.login), r.grp
          FROM (VALUES (current_setting('memvec.runtime_role', true), 'memvec_runtime'),
                       (current_setting('memvec.embedder_role', true), 'memvec_embedder')) AS r (login, grp)
         WHERE btrim(r.login) <> ''
    LOOP
        IF v_role IN ('memvec_owner', 'memvec_runtime', 'memvec_embedder', 'memvec_reader', 'memvec_admin') THEN
            RAISE EXCEPTION USING ERRCODE = 'MV104',
                MESSAGE = format('"%s" is one of the group roles, not a login role', v_role),
                DETAIL = format('A login role becomes a member of %I.', v_group),
                HINT = 'Name another role, such as hermes.';
        END IF;

        SELECT * INTO v_attributes FROM pg_roles WHERE rolname = v_role;
        IF NOT FOUND THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I LOGIN', v_role);
                RAISE NOTICE USING ERRCODE = 'MV100',
                    MESSAGE = format('created login role %I, without a password', v_role);
            EXCEPTION
                WHEN insufficient_privilege THEN
                    RAISE EXCEPTION USING ERRCODE = 'MV104',
                        MESSAGE = format('the login role "%s" is missing and "%s" may not create it', v_role, current_user),
                        DETAIL = 'Creating roles needs a superuser or a role with CREATEROLE.',
                        HINT = format('As such a role run: CREATE ROLE %I LOGIN; GRANT %I TO %1$I;', v_role, v_group);
                WHEN duplicate_object OR unique_violation THEN
                    NULL;  -- a migration of another database was faster
            END;
            SELECT * INTO v_attributes FROM pg_roles WHERE rolname = v_role;
        END IF;

        -- Each of these opens more than the group is meant to, which is the administrator's choice to make.
        IF v_attributes.rolsuper OR v_attributes.rolbypassrls THEN
            RAISE WARNING USING
                MESSAGE = format('the login role "%s" has %s: no access rule of the schema memvec binds it', v_role,
                                 CASE WHEN v_attributes.rolsuper THEN 'SUPERUSER' ELSE 'BYPASSRLS' END),
                HINT = 'Let agents log in with an ordinary role.';
        ELSIF pg_has_role(v_role, 'memvec_owner', 'MEMBER') THEN
            RAISE WARNING USING
                MESSAGE = format('the login role "%s" is a member of memvec_owner: it can read and change every table', v_role),
                HINT = 'Let agents log in with a role of their own, not the one that migrates.';
        END IF;
        IF NOT v_attributes.rolcanlogin THEN
            RAISE WARNING USING MESSAGE = format('the role "%s" cannot log in', v_role),
                HINT = format('To let it, run: ALTER ROLE %I LOGIN;', v_role);
        END IF;

        -- A superuser passes every membership test, so the catalogue is asked.
        IF (CASE WHEN v_attributes.rolsuper
                THEN NOT EXISTS (SELECT FROM pg_auth_members AS m
                                  WHERE m.roleid = v_group::regrole AND m.member = v_attributes.oid)
                ELSE NOT pg_has_role(v_role, v_group, 'USAGE') END) THEN
            BEGIN
                -- spelled out, because a NOINHERIT login would otherwise be a member without the rights
                EXECUTE format('GRANT %I TO %I WITH INHERIT TRUE', v_group, v_role);
                RAISE NOTICE USING ERRCODE = 'MV100', MESSAGE = format('granted %I to %I', v_group, v_role);
            EXCEPTION
                WHEN insufficient_privilege THEN
                    RAISE EXCEPTION USING ERRCODE = 'MV105',
                        MESSAGE = format('"%s" may not grant %I to the login role "%s"', current_user, v_group, v_role),
                        DETAIL = format('The login role needs to be a member of %I.', v_group),
                        HINT = format('As a superuser run: GRANT %I TO %I WITH INHERIT TRUE;', v_group, v_role);
                WHEN unique_violation THEN
                    NULL;  -- a migration of another database was faster
            END;
        END IF;

        -- A stuck agent must not hold its locks for ever. What an administrator has set stays.
        FOR v_name, v_value IN
            SELECT t.name, t.value
              FROM (VALUES ('statement_timeout', '30s'), ('lock_timeout', '5s'),
                           ('idle_in_transaction_session_timeout', '60s')) AS t (name, value)
             WHERE NOT EXISTS (
                    SELECT FROM pg_db_role_setting AS s, unnest(s.setconfig) AS c (pair)
                     WHERE s.setrole = v_attributes.oid
                       AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
                       AND starts_with(c.pair, t.name || '='))
        LOOP
            BEGIN
                EXECUTE format('ALTER ROLE %I IN DATABASE %I SET %I = %L', v_role, current_database(), v_name, v_value);
                RAISE NOTICE USING ERRCODE = 'MV100',
                    MESSAGE = format('set %s = %s for %I in database %I', v_name, v_value, v_role, current_database());
            EXCEPTION WHEN insufficient_privilege THEN
                RAISE WARNING USING
                    MESSAGE = format('"%s" may not set %s for the login role "%s"', current_user, v_name, v_role),
                    HINT = format('As a superuser run: ALTER ROLE %I IN DATABASE %I SET %I = %L;', v_role, current_database(),
                                  v_name, v_value);
            END;
        END LOOP;
    END LOOP;
END
$bootstrap$;

-- memvec.folding: lower(x COLLATE memvec.folding) folds every script, whatever the database's own ctype does.
DO $bootstrap$
DECLARE
    -- Russian ZHE, A with grave, and I, which a Turkish locale folds to a dotless i
    v_test constant text :=
        $q$SELECT lower((chr(1046) || chr(192) || 'I') COLLATE memvec.folding) = chr(1078) || chr(224) || 'i'$q$;
    v_folds boolean := false;
    v_provider text;
    v_locale text;
BEGIN
    SET LOCAL ROLE memvec_owner;
    IF EXISTS (SELECT FROM pg_collation WHERE collname = 'folding' AND collnamespace = 'memvec'::regnamespace) THEN
        BEGIN
            EXECUTE v_test INTO v_folds;
        EXCEPTION WHEN OTHERS THEN
            v_folds := false;  -- its locale is gone from the system
        END;
        IF NOT v_folds THEN
            RAISE EXCEPTION USING ERRCODE = 'MV109',
                MESSAGE = 'the collation memvec.folding no longer folds Unicode on this server',
                DETAIL = 'The operating system''s locales differ from those it was made with.',
                HINT = 'Install the locale C.UTF-8 on the server (Debian: package locales), or run, for another choice: '
                       'SET ROLE memvec_owner; ALTER COLLATION memvec.folding RENAME TO folding_old;';
        END IF;
        RESET ROLE;
        RETURN;
    END IF;

    FOR v_provider, v_locale IN
        SELECT c.provider, c.locale
          FROM (VALUES (1, 'builtin', 'C.UTF-8'),
                       (2, 'libc', 'C.utf8'),
                       (3, 'libc', 'C.UTF-8'),
                       (4, 'icu', 'und'),
                       (5, 'libc', 'en_US.utf8'),
                       (6, 'libc', 'en_US.UTF-8')
                UNION ALL
                SELECT 7, CASE d.datlocprovider WHEN 'i' THEN 'icu' WHEN 'b' THEN 'builtin' ELSE 'libc' END,
                       CASE d.datlocprovider WHEN 'c' THEN d.datctype
                            ELSE coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale') END
                  FROM pg_database AS d
                 WHERE d.datname = current_database()) AS c (place, provider, locale)
         WHERE c.locale IS NOT NULL
           AND (c.provider <> 'builtin' OR current_setting('server_version_num')::int >= 170000)
         ORDER BY c.place
    LOOP
        BEGIN
            EXECUTE format('CREATE COLLATION memvec.folding (provider = %s, locale = %L)', v_provider, v_locale);
            EXECUTE v_test INTO v_folds;
            IF NOT v_folds THEN
                RAISE EXCEPTION 'does not fold';  -- undoes the CREATE
            END IF;
        EXCEPTION WHEN OTHERS THEN
            v_folds := false;
        END;
        EXIT WHEN v_folds;
    END LOOP;
    IF NOT v_folds THEN
        RAISE EXCEPTION USING ERRCODE = 'MV109',
            MESSAGE = 'the server has no collation that folds Unicode',
            DETAIL = 'Tried the built-in C.UTF-8 (PostgreSQL 17 and newer), the system''s C.UTF-8 and en_US.UTF-8, ICU, '
                     'and the database''s own.',
            HINT = 'Install a locale on the server (Debian: apt-get install locales && locale-gen en_US.UTF-8), restart '
                   'PostgreSQL, and migrate again.';
    END IF;
    COMMENT ON COLLATION memvec.folding IS 'Folds letters of every script with lower(), whatever the ctype of the database.';
    RESET ROLE;
END
$bootstrap$;

-- The ledger, and what it says about the files.
DO $bootstrap$
DECLARE
    v_files text := current_setting('memvec.migrations', true);
    v_found record;
    v_pending text;
BEGIN
    SET LOCAL ROLE memvec_owner;
    IF to_regclass('memvec.schema_migrations') IS NULL THEN
        CREATE TABLE memvec.schema_migrations (
            version    integer PRIMARY KEY CHECK (version > 0),
            name       text NOT NULL,
            sha256     text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
            applied_at timestamptz NOT NULL DEFAULT now()
        );
        COMMENT ON TABLE memvec.schema_migrations IS 'The migration files that were applied, with the SHA-256 of each.';
        ALTER TABLE memvec.schema_migrations ENABLE ROW LEVEL SECURITY;
    END IF;

    -- CREATE FUNCTION ... SET hnsw.x is refused to an ordinary role until the library is loaded in the session.
    EXECUTE (SELECT format('SELECT %L::%I.vector', '[0]', n.nspname)
               FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
              WHERE e.extname = 'vector');

    IF coalesce(v_files, '') = '' THEN
        RESET ROLE;
        RETURN;
    END IF;

    FOR v_found IN
        WITH file AS MATERIALIZED (
            SELECT l.line, (regexp_match(l.line, '^[0-9a-f]{64}  (.*)$'))[1] AS name, left(l.line, 64) AS sha256,
                   (regexp_match(l.line, '^[0-9a-f]{64}  ([0-9]{4})_[a-z0-9_]+\.sql$'))[1]::int AS version
              FROM regexp_split_to_table(v_files, '\n') AS l (line)
             WHERE l.line <> ''
        ), newest AS (
            SELECT coalesce(max(version), 0) AS version FROM file
        )
        SELECT 1 AS place, 'MV107' AS code,
               format('the file "%s" among the migrations has no proper name', coalesce(name, line)) AS message,
               'Migrations are named NNNN_name.sql, of lower-case letters, digits and _.' AS detail,
               'Rename the file or remove it.' AS hint
          FROM file WHERE version IS NULL OR version = 0
        UNION ALL
        SELECT 2, 'MV107', format('two migrations have the number %s', to_char(version, 'FM0000')),
               string_agg(name, ', ' ORDER BY name), 'Give the newer file the next free number.'
          FROM file WHERE version IS NOT NULL GROUP BY version HAVING count(*) > 1
        UNION ALL
        SELECT 3, 'MV110', format('the database is newer than this package: it has migration %s, the package ends at %s',
                                  to_char(max(l.version), 'FM0000'), to_char(n.version, 'FM0000')),
               string_agg(l.name, ', ' ORDER BY l.version), 'Upgrade the package hermes-pgsql on this host, then migrate again.'
          FROM memvec.schema_migrations AS l, newest AS n
         WHERE l.version > n.version
         GROUP BY n.version
        UNION ALL
        SELECT 4, 'MV107', format('migration %s is missing among the files', to_char(min(g.version), 'FM0000')),
               'Migrations are numbered from 0001 without gaps.',
               'Put the file back, for instance by installing the package again.'
          FROM newest AS n, generate_series(1, n.version) AS g (version)
         WHERE NOT EXISTS (SELECT FROM file AS f WHERE f.version = g.version)
        HAVING min(g.version) IS NOT NULL
        UNION ALL
        SELECT 5, 'MV107', format('migration %s was changed after it was applied', f.name),
               format('Applied as %s on %s with SHA-256 %s; the file now has %s.', l.name, l.applied_at::date, l.sha256,
                      f.sha256),
               format('Put the released file back, for instance by installing the package again. A change belongs in a new '
                      'migration %s.', to_char(n.version + 1, 'FM0000'))
          FROM newest AS n, memvec.schema_migrations AS l JOIN file AS f USING (version)
         WHERE l.sha256 <> f.sha256
         ORDER BY place, message
         LIMIT 1
    LOOP
        RAISE EXCEPTION USING ERRCODE = v_found.code, MESSAGE = v_found.message, DETAIL = v_found.detail, HINT = v_found.hint;
    END LOOP;

    SELECT coalesce(array_agg(f.version ORDER BY f.version), '{}')::text INTO v_pending
      FROM (SELECT (regexp_match(l.line, '^[0-9a-f]{64}  ([0-9]{4})_'))[1]::int AS version
              FROM regexp_split_to_table(v_files, '\n') AS l (line)) AS f
     WHERE f.version IS NOT NULL
       AND NOT EXISTS (SELECT FROM memvec.schema_migrations AS l WHERE l.version = f.version);
    PERFORM set_config('memvec.pending_migrations', v_pending, true);
    RESET ROLE;
END
$bootstrap$;

-- Views are made anew each time, after the functions: while they stand, no migration can change a column that they show.
DO $bootstrap$
DECLARE
    v_view regclass;
BEGIN
    SET LOCAL ROLE memvec_owner;
    FOR v_view IN
        SELECT c.oid FROM pg_class AS c
         WHERE c.relnamespace = 'memvec'::regnamespace AND c.relkind = 'v'
         ORDER BY c.relname
    LOOP
        EXECUTE format('DROP VIEW %s', v_view);
    END LOOP;
    RESET ROLE;
EXCEPTION WHEN dependent_objects_still_exist THEN
    RAISE EXCEPTION USING ERRCODE = 'MV106',
        MESSAGE = format('something of your own is built on the view %s, which is about to be made anew', v_view),
        DETAIL = SQLERRM,
        HINT = 'Drop it, migrate, and make it again; or build it on what the functions return.';
END
$bootstrap$;
