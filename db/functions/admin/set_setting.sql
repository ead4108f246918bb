CREATE OR REPLACE FUNCTION memvec.set_setting(p_name text, p_value text)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
AS $$
DECLARE
    v_setting memvec.settings;
    v_value text;
    v_fault text;
BEGIN
    SELECT * INTO v_setting FROM memvec.settings AS s WHERE s.name = p_name FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV007',
            MESSAGE = format('there is no setting "%s"', p_name),
            HINT = 'Settings: ' || (SELECT string_agg(s.name, ', ' ORDER BY s.name) FROM memvec.settings AS s) || '.';
    END IF;

    v_value := memvec.checked_setting(v_setting, p_value);
    IF v_value IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV007',
            MESSAGE = format('"%s" is not a value for setting %s', left(p_value, 80), p_name),
            DETAIL = v_setting.description,
            HINT = CASE
                WHEN v_setting.kind = 'boolean' THEN 'Use true or false.'
                WHEN v_setting.choices IS NOT NULL THEN 'Use one of: ' || array_to_string(v_setting.choices, ', ') || '.'
                WHEN p_name IN ('search_language', 'search_languages_before') THEN 'SELECT cfgname FROM pg_ts_config;'
                ELSE format('Use a %s from %s to %s.', CASE v_setting.kind WHEN 'integer' THEN 'whole number' ELSE v_setting.kind END,
                            v_setting.minimum, v_setting.maximum)
            END;
    END IF;
    v_fault := CASE
        WHEN p_name = 'search_version' AND v_value::numeric < substring(v_setting.value FROM '^[0-9]{1,9}$')::numeric
            THEN format('It may only be raised: rows are prepared for version %s, and those of a later one are never renewed.', v_setting.value)
        WHEN p_name IN ('rrf_weight_vector', 'rrf_weight_text') AND v_value::numeric = 0
             AND EXISTS (SELECT FROM memvec.settings AS s
                          WHERE s.name IN ('rrf_weight_vector', 'rrf_weight_text') AND s.name <> p_name AND s.value = '0')
            THEN 'The other leg has no weight either; give one of them a weight above 0.'
    END;
    IF v_fault IS NOT NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV007',
            MESSAGE = format('setting %s cannot become %s', p_name, v_value),
            DETAIL = v_setting.description,
            HINT = v_fault;
    END IF;

    UPDATE memvec.settings AS s SET value = v_value WHERE s.name = p_name;
    IF p_name IN ('search_language', 'turn_date_words') AND v_value <> v_setting.value THEN
        UPDATE memvec.settings AS s SET value = (s.value::integer + 1)::text WHERE s.name = 'search_version';
        RAISE NOTICE USING
            MESSAGE = format('rows keep the words of the former %s until they are renewed', p_name),
            HINT = 'Run: hermes-pgsql reindex, or SELECT memvec.reindex_search() until it returns 0.';
    END IF;
    IF p_name = 'search_language' AND v_value <> v_setting.value THEN
        -- Rows of the language before must be found until memvec.reindex_search has renewed them.
        UPDATE memvec.settings AS s
           SET value = array_to_string(
                   array_append(array_remove(string_to_array(s.value, ','), v_setting.value), v_setting.value), ','
               )
         WHERE s.name = 'search_languages_before';
    END IF;
    INSERT INTO memvec.maintenance_log (operation, table_name, rows, parameters)
    VALUES ('set_setting', 'settings', 1, jsonb_build_object('name', p_name, 'value', v_value, 'before', v_setting.value));
END;
$$;

COMMENT ON FUNCTION memvec.set_setting IS
'Changes a fleet-wide setting after checking its kind, range and choices; see table memvec.settings for all with their meaning. A change of search_language or turn_date_words counts for the rows that are there once they are renewed (memvec.reindex_search), as a notice says. Errors: MV007 unknown setting, a value that does not fit, a lower search_version, or no weight for either leg.';
REVOKE ALL ON FUNCTION memvec.set_setting FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.set_setting TO memvec_admin;
