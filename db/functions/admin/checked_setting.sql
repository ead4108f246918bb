CREATE OR REPLACE FUNCTION memvec.checked_setting(p_setting memvec.settings, p_value text)
RETURNS text
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
AS $$
DECLARE
    v_value text := coalesce(memvec.blankless(p_value), '');
BEGIN
    IF p_setting.kind = 'boolean' THEN
        RETURN CASE
            WHEN lower(v_value) IN ('true', 't', 'yes', 'on', '1') THEN 'true'
            WHEN lower(v_value) IN ('false', 'f', 'no', 'off', '0') THEN 'false'
        END;
    END IF;
    IF p_setting.kind IN ('integer', 'number') THEN
        IF v_value !~ (CASE p_setting.kind
                           WHEN 'integer' THEN '^[+-]?[0-9]{1,18}$'
                           ELSE '^[+-]?([0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18})$'
                       END) THEN
            RETURN NULL;
        END IF;
        IF v_value::numeric NOT BETWEEN coalesce(p_setting.minimum, '-infinity') AND coalesce(p_setting.maximum, 'infinity') THEN
            RETURN NULL;
        END IF;
        RETURN trim_scale(v_value::numeric)::text;
    END IF;
    IF p_setting.choices IS NOT NULL THEN
        RETURN CASE WHEN v_value = ANY (p_setting.choices) THEN v_value END;
    END IF;
    IF p_setting.name = 'search_language'
       AND NOT EXISTS (SELECT FROM pg_ts_config AS c
                        WHERE c.cfgname = v_value AND c.cfgnamespace = 'pg_catalog'::regnamespace) THEN
        RETURN NULL;
    END IF;
    IF p_setting.name = 'search_languages_before'
       AND EXISTS (SELECT FROM unnest(string_to_array(v_value, ',')) AS l (language)
                    WHERE NOT EXISTS (SELECT FROM pg_ts_config AS c
                                       WHERE c.cfgname = l.language AND c.cfgnamespace = 'pg_catalog'::regnamespace)) THEN
        RETURN NULL;
    END IF;
    RETURN v_value;
END;
$$;

COMMENT ON FUNCTION memvec.checked_setting IS
'Returns a value as a setting keeps it, or NULL when it is not of the setting''s kind, range or choices. Internal.';
REVOKE ALL ON FUNCTION memvec.checked_setting FROM public;
