CREATE OR REPLACE FUNCTION memvec.health_schema()
RETURNS SETOF memvec.finding
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
AS $$
DECLARE
    v_offenders text;
    v_fix text;
BEGIN
    RETURN QUERY SELECT 'schema', 'version', 'ok', format('the schema is at version %s', max(m.version)), NULL::text,
           jsonb_build_object('version', max(m.version), 'files', jsonb_object_agg(m.name, m.sha256))
      FROM memvec.schema_migrations AS m;

    SELECT string_agg(DISTINCT p.proname, ', ') INTO v_offenders
      FROM pg_proc AS p
      LEFT JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a ON a.grantee = 0
     WHERE p.pronamespace = 'memvec'::regnamespace
       AND (p.proowner <> 'memvec_owner'::regrole OR a.grantee IS NOT NULL);
    RETURN QUERY SELECT 'schema', 'function rights',
        CASE WHEN v_offenders IS NULL THEN 'ok' ELSE 'failure' END,
        coalesce('open to everybody, or of another owner than memvec_owner: ' || v_offenders,
                 'functions belong to memvec_owner and are closed to PUBLIC'),
        'hermes-pgsql migrate --admin-dsn DSN', NULL::jsonb;

    SELECT string_agg(DISTINCT format('%s to %s', r.relname, coalesce(g.rolname, 'PUBLIC')), ', '),
           string_agg(DISTINCT format('REVOKE ALL ON memvec.%I FROM %s;', r.relname, coalesce(quote_ident(g.rolname), 'PUBLIC')), ' ')
      INTO v_offenders, v_fix
      FROM pg_class AS r
     CROSS JOIN aclexplode(r.relacl) AS a
      LEFT JOIN pg_roles AS g ON g.oid = a.grantee
     WHERE r.relnamespace = 'memvec'::regnamespace AND r.relkind IN ('r', 'p', 'S') AND a.grantee <> r.relowner;
    RETURN QUERY SELECT 'schema', 'table rights',
        CASE WHEN v_offenders IS NULL THEN 'ok' ELSE 'failure' END,
        coalesce('tables are granted to others than their owner: ' || v_offenders, 'no table is granted to anybody'),
        v_fix, NULL::jsonb;

    SELECT string_agg(r.relname, ', ' ORDER BY r.relname),
           string_agg(format('ALTER TABLE memvec.%I ENABLE ROW LEVEL SECURITY;', r.relname), ' ' ORDER BY r.relname)
      INTO v_offenders, v_fix
      FROM pg_class AS r
     WHERE r.relnamespace = 'memvec'::regnamespace AND r.relkind IN ('r', 'p') AND NOT r.relrowsecurity;
    RETURN QUERY SELECT 'schema', 'row security',
        CASE WHEN v_offenders IS NULL THEN 'ok' ELSE 'failure' END,
        coalesce('row security is off on: ' || v_offenders, 'row security is on for every table'), v_fix, NULL::jsonb;

    SELECT string_agg(i.indexrelid::regclass::text, ', '),
           string_agg(format('REINDEX INDEX CONCURRENTLY %s;', i.indexrelid::regclass), ' ')
      INTO v_offenders, v_fix
      FROM pg_index AS i
      JOIN pg_class AS r ON r.oid = i.indexrelid
     WHERE r.relnamespace = 'memvec'::regnamespace AND NOT i.indisvalid AND r.relname NOT LIKE '%\_hnsw';
    RETURN QUERY SELECT 'schema', 'index validity',
        CASE WHEN v_offenders IS NULL THEN 'ok' ELSE 'failure' END,
        coalesce('indexes that answer nothing: ' || v_offenders, 'every index of a table is valid'), v_fix, NULL::jsonb;

    SELECT string_agg(x.name, ', ' ORDER BY x.name),
           string_agg(format('CREATE INDEX CONCURRENTLY %I ON memvec.%s;', x.name, x.definition), ' ' ORDER BY x.name)
      INTO v_offenders, v_fix
      FROM (VALUES
               -- as pg_get_indexdef writes them; a test compares
               ('applied_ops_applied_at', 'applied_ops USING brin (applied_at)'),
               ('conversations_content', 'conversations USING hash (content_hash)'),
               ('conversations_person', 'conversations USING btree (person_key) WHERE (person_key IS NOT NULL)'),
               ('conversations_search', 'conversations USING gin (((search || array_to_tsvector(ARRAY[COALESCE((person_key)::text, '
                                        '(''theme ''::text || agent_identity))])))) WITH (gin_pending_list_limit=''256'')'),
               ('conversations_search_version', 'conversations USING brin (search_version) WITH (pages_per_range=''32'', autosummarize=''on'')'),
               ('conversations_ts', 'conversations USING brin (ts) WITH (pages_per_range=''32'', autosummarize=''on'')'),
               ('conversations_theme', 'conversations USING btree (agent_identity, id) WHERE (person_key IS NULL)'),
               ('entry_sources_source', 'entry_sources USING btree (source)'),
               ('memory_entries_content', 'memory_entries USING hash (content_hash)'),
               ('memory_entries_person', 'memory_entries USING btree (person_key) WHERE (person_key IS NOT NULL)'),
               ('memory_entries_search', 'memory_entries USING gin (((search || array_to_tsvector(ARRAY[COALESCE((person_key)::text, '
                                         '(''theme ''::text || agent_identity))])))) WITH (gin_pending_list_limit=''256'')'),
               ('memory_entries_search_version', 'memory_entries USING brin (search_version) WITH (pages_per_range=''32'', autosummarize=''on'')'),
               ('memory_entries_theme', 'memory_entries USING btree (agent_identity, id) WHERE (person_key IS NULL)'),
               ('memory_entries_updated_at', 'memory_entries USING brin (updated_at) WITH (pages_per_range=''32'', autosummarize=''on'')'),
               ('memory_history_acted_at', 'memory_history USING btree (acted_at)'),
               ('memory_history_theme', 'memory_history USING btree (agent_identity, person_key)')
           ) AS x (name, definition)
     WHERE to_regclass(format('memvec.%I', x.name)) IS NULL;
    RETURN QUERY SELECT 'schema', 'indexes',
        CASE WHEN v_offenders IS NULL THEN 'ok' ELSE 'failure' END,
        coalesce('indexes are missing: ' || v_offenders, 'no index of a table is missing'), v_fix, NULL::jsonb;
END;
$$;

COMMENT ON FUNCTION memvec.health_schema IS
'Returns what memvec.health says of the schema: version and files, who owns and may use what, row security, ordinary indexes. Internal.';
REVOKE ALL ON FUNCTION memvec.health_schema FROM public;
