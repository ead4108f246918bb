CREATE OR REPLACE FUNCTION memvec.health_roles()
RETURNS SETOF memvec.finding
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_admin boolean := pg_has_role(session_user, 'memvec_admin', 'MEMBER');
    v_super boolean := (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = session_user);
    v_unlimited text;
    v_bound text[] := (SELECT array_agg(r.agent_identity ORDER BY r.agent_identity)
                         FROM memvec.role_identities AS r WHERE r.role_name = session_user);
    v_lost text;
    v_unfit text;
BEGIN
    RETURN QUERY SELECT 'roles', 'login',
        CASE WHEN v_super OR pg_has_role(session_user, 'memvec_owner', 'MEMBER') THEN 'warning'
             WHEN v_admin OR pg_has_role(session_user, 'memvec_embedder', 'MEMBER') THEN 'warning'
             WHEN NOT pg_has_role(session_user, 'memvec_runtime', 'USAGE') THEN 'warning'
             ELSE 'ok' END,
        CASE WHEN v_super OR pg_has_role(session_user, 'memvec_owner', 'MEMBER')
             THEN format('%I, who asks, is bound by no rule of the database; agents need a login of their own', session_user)
             WHEN v_admin OR pg_has_role(session_user, 'memvec_embedder', 'MEMBER')
             THEN format('%I, who asks, may read the text of every theme; agents need a login of their own', session_user)
             WHEN NOT pg_has_role(session_user, 'memvec_runtime', 'USAGE')
             THEN format('%I may not write: it is no member of memvec_runtime', session_user)
             ELSE format('%I executes functions and reads no table', session_user) END,
        CASE WHEN v_super OR v_admin OR pg_has_role(session_user, 'memvec_owner', 'MEMBER')
             THEN 'hermes-pgsql migrate --admin-dsn DSN --runtime-role hermes   (then name that role in the dsn)'
             WHEN pg_has_role(session_user, 'memvec_embedder', 'MEMBER')
             THEN format('REVOKE memvec_embedder FROM %I;', session_user)
             ELSE format('hermes-pgsql migrate --admin-dsn DSN --runtime-role %s', quote_ident(session_user)) END,
        to_jsonb(session_user::text);

    SELECT string_agg(t.name, ', ') INTO v_unlimited
      FROM unnest('{statement_timeout,lock_timeout,idle_in_transaction_session_timeout}'::text[]) AS t (name)
     WHERE current_setting(t.name) = '0';
    RETURN QUERY SELECT 'roles', 'timeouts',
        CASE WHEN v_unlimited IS NULL OR v_super THEN 'ok' ELSE 'warning' END,
        CASE WHEN v_unlimited IS NULL THEN 'statements, locks and idle transactions of the login have limits'
             ELSE format('without a limit for %I: %s', session_user, v_unlimited) END,
        format('hermes-pgsql migrate --admin-dsn DSN --runtime-role %s', quote_ident(session_user)), NULL::jsonb;

    RETURN QUERY SELECT 'roles', 'binding',
        CASE WHEN v_bound IS NULL AND NOT v_admin AND NOT memvec.may_act_as('default') THEN 'failure' ELSE 'ok' END,
        CASE WHEN v_bound IS NOT NULL THEN format('%I acts as %s', session_user, array_to_string(v_bound, ', '))
             WHEN v_admin OR memvec.may_act_as('default')
             THEN format('%I is bound to no theme and may act as any, as a gateway does', session_user)
             ELSE format('%I is bound to no theme, and the setting require_binding refuses such logins', session_user) END,
        format('hermes-pgsql bind-role %s THEME --admin-dsn DSN', quote_ident(session_user)), NULL::jsonb;

    SELECT string_agg(b.agent_identity, ', ') INTO v_unfit
      FROM unnest(v_bound) AS b (agent_identity)
     WHERE (memvec.canonical_identity(b.agent_identity)).reason IN ('not-in-allowlist', 'bench-reject');
    RETURN QUERY SELECT 'roles', 'bound themes',
        CASE WHEN v_unfit IS NULL THEN 'ok' ELSE 'failure' END,
        coalesce(quote_ident(session_user) || ' is bound to what the setting allowed_themes no longer allows: ' || v_unfit,
                 'what the login is bound to is allowed'),
        format('SELECT memvec.set_setting(''allowed_themes'', %L);',
               concat_ws(', ', nullif(memvec.setting('allowed_themes'), ''), v_unfit)), NULL::jsonb;

    IF NOT v_admin THEN
        RETURN NEXT ROW('roles', 'bindings of others', 'unknown', 'only an administrator is told of other logins',
                        'hermes-pgsql doctor --admin-dsn DSN', NULL)::memvec.finding;
        RETURN;
    END IF;
    SELECT string_agg(DISTINCT r.role_name, ', ') INTO v_lost
      FROM memvec.role_identities AS r
     WHERE NOT EXISTS (SELECT FROM pg_roles AS g WHERE g.rolname = r.role_name);
    RETURN QUERY SELECT 'roles', 'bindings of others',
        CASE WHEN v_lost IS NULL THEN 'ok' ELSE 'warning' END,
        coalesce('bound logins that do not exist (renamed or dropped): ' || v_lost, 'every bound login exists'),
        format('hermes-pgsql unbind-role %s --admin-dsn DSN', split_part(v_lost, ',', 1)), NULL::jsonb;
END;
$$;

COMMENT ON FUNCTION memvec.health_roles IS
'Returns what memvec.health says of the login role: groups, timeouts, binding; to administrators also of bindings that lead nowhere. Internal.';
REVOKE ALL ON FUNCTION memvec.health_roles FROM public;
