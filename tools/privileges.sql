-- The objects of schema memvec, each with what other roles than its owner may do with it; see privileges.py.
WITH object (class, name, acl, owner, kind) AS (
    SELECT 1, 'schema memvec', n.nspacl, n.nspowner, 'n'::"char" FROM pg_namespace AS n WHERE n.nspname = 'memvec'
    UNION ALL
    SELECT 2, CASE c.relkind WHEN 'v' THEN 'view ' WHEN 'S' THEN 'sequence ' WHEN 'r' THEN 'table ' ELSE 'relation ' END
              || c.relname
              || CASE WHEN c.relkind IN ('r', 'p') AND NOT c.relrowsecurity THEN ' (no row security)' ELSE '' END,
           c.relacl, c.relowner, CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char"
      FROM pg_class AS c
     WHERE c.relnamespace = 'memvec'::regnamespace AND c.relkind NOT IN ('i', 'I', 't', 'c')
    UNION ALL
    SELECT 3, format('column %s.%s', c.relname, a.attname), a.attacl, c.relowner, 'c'::"char"
      FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
     WHERE c.relnamespace = 'memvec'::regnamespace AND a.attacl IS NOT NULL
    UNION ALL
    SELECT 4, 'type ' || t.typname, t.typacl, t.typowner, 'T'::"char"
      FROM pg_type AS t LEFT JOIN pg_class AS c ON c.oid = t.typrelid
     WHERE t.typnamespace = 'memvec'::regnamespace AND t.typelem = 0 AND (c.oid IS NULL OR c.relkind = 'c')
    UNION ALL
    SELECT 5, format('function %s(%s)', p.proname, oidvectortypes(p.proargtypes))
              || CASE WHEN p.prosecdef THEN '' ELSE ' (runs as its caller)' END,
           p.proacl, p.proowner, 'f'::"char"
      FROM pg_proc AS p WHERE p.pronamespace = 'memvec'::regnamespace
    UNION ALL
    SELECT 6, format('new %s of memvec_owner', CASE d.defaclobjtype WHEN 'f' THEN 'functions' WHEN 'T' THEN 'types'
                                                    WHEN 'r' THEN 'tables' WHEN 'S' THEN 'sequences' ELSE 'schemas' END)
              || CASE WHEN d.defaclnamespace = 0 THEN '' ELSE ' in ' || d.defaclnamespace::regnamespace END,
           d.defaclacl, d.defaclrole, d.defaclobjtype
      FROM pg_default_acl AS d WHERE d.defaclrole = 'memvec_owner'::regrole
), granted AS (
    SELECT o.class, o.name, o.owner,
           CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE regexp_replace(a.grantee::regrole::text, '^memvec_', '') END AS grantee,
           string_agg(CASE a.privilege_type WHEN 'EXECUTE' THEN 'X' WHEN 'USAGE' THEN 'U' WHEN 'CREATE' THEN 'C'
                           WHEN 'SELECT' THEN 'r' WHEN 'INSERT' THEN 'a' WHEN 'UPDATE' THEN 'w' WHEN 'DELETE' THEN 'd'
                           WHEN 'TRUNCATE' THEN 'D' WHEN 'REFERENCES' THEN 'x' WHEN 'TRIGGER' THEN 't'
                           WHEN 'MAINTAIN' THEN 'm' ELSE a.privilege_type END
                      || CASE WHEN a.is_grantable THEN '*' ELSE '' END, '' ORDER BY a.privilege_type) AS rights
      FROM object AS o
      LEFT JOIN LATERAL aclexplode(coalesce(o.acl, acldefault(o.kind, o.owner))) AS a ON a.grantee <> o.owner
     GROUP BY 1, 2, 3, 4
)
SELECT g.name || CASE WHEN g.owner = 'memvec_owner'::regrole THEN '' ELSE ' owned by ' || g.owner::regrole END,
       jsonb_object_agg(g.grantee, g.rights) FILTER (WHERE g.grantee IS NOT NULL)
  FROM granted AS g
 GROUP BY g.class, g.name, g.owner
 ORDER BY g.class, g.name COLLATE "C";
