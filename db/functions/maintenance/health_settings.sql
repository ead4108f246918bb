CREATE OR REPLACE FUNCTION memvec.health_settings()
RETURNS SETOF memvec.finding
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
AS $$
DECLARE
    v_bad text;
    v_fix text;
    -- NULL when the setting is no number, which is said above
    v_version integer := substring(memvec.setting('search_version') FROM '^[0-9]{1,9}$')::integer;
    v_stale boolean;
BEGIN
    SELECT string_agg(format('%s = %s', s.name, coalesce(quote_literal(left(s.value, 40)), 'NULL')), ', ' ORDER BY s.name),
           string_agg(format('SELECT memvec.set_setting(%L, %L);', s.name, CASE
                          WHEN s.kind = 'boolean' THEN 'false'
                          WHEN s.choices IS NOT NULL THEN s.choices[1]
                          WHEN s.name = 'search_language' THEN 'english'
                          WHEN s.value ~ '^[+-]?[0-9]{1,18}(\.[0-9]{1,18})?$'
                          THEN trim_scale(least(greatest(s.value::numeric, s.minimum), s.maximum))::text
                          ELSE trim_scale(s.minimum)::text END), ' ' ORDER BY s.name)
      INTO v_bad, v_fix
      FROM memvec.settings AS s
     WHERE memvec.checked_setting(s, s.value) IS NULL;
    RETURN QUERY SELECT 'settings', 'values',
        CASE WHEN v_bad IS NULL THEN 'ok' ELSE 'failure' END,
        coalesce('out of range or of another kind: ' || v_bad, 'every setting has a value that is allowed'),
        v_fix, NULL::jsonb;

    v_stale := EXISTS (SELECT FROM memvec.memory_entries AS m WHERE m.search_version < v_version OR m.search_version > v_version)
            OR EXISTS (SELECT FROM memvec.conversations AS c WHERE c.search_version < v_version OR c.search_version > v_version);
    RETURN QUERY SELECT 'settings', 'search language',
        CASE WHEN v_stale THEN 'warning' ELSE 'ok' END,
        CASE WHEN v_stale THEN 'rows were prepared for another search language and may not be found by words'
             ELSE format('rows are prepared for search_language %s', memvec.setting('search_language')) END,
        'hermes-pgsql reindex --admin-dsn DSN', NULL::jsonb;
END;
$$;

COMMENT ON FUNCTION memvec.health_settings IS
'Returns what memvec.health says of settings: values that do not fit, and rows prepared for another search language. Internal.';
REVOKE ALL ON FUNCTION memvec.health_settings FROM public;
