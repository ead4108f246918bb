CREATE OR REPLACE FUNCTION memvec.import_fault(p_row jsonb)
RETURNS text
LANGUAGE plpgsql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_kind text := CASE jsonb_typeof(p_row) WHEN 'object' THEN coalesce(p_row ->> 'kind', '') END;
    v_field text;
BEGIN
    IF v_kind IS NULL THEN
        RETURN 'a row is an object';
    END IF;
    IF v_kind NOT IN ('entry', 'turn', 'edge', 'agent') THEN
        RETURN format('the kind of a row is entry, turn, edge or agent, not "%s"', left(v_kind, 40));
    END IF;
    IF jsonb_typeof(p_row -> 'identity') IS DISTINCT FROM 'string' THEN
        RETURN 'it has no identity';
    END IF;
    IF v_kind IN ('entry', 'turn') THEN
        IF jsonb_typeof(p_row -> 'content') IS DISTINCT FROM 'string' OR memvec.blankless(p_row ->> 'content') IS NULL THEN
            RETURN 'it has no content';
        END IF;
        IF jsonb_typeof(coalesce(p_row -> 'embed', 'null')) NOT IN ('boolean', 'null') THEN
            RETURN 'embed is true or false';
        END IF;
    END IF;
    IF v_kind = 'entry' AND coalesce(p_row ->> 'target', '') NOT IN ('memory', 'user') THEN
        RETURN 'the target of an entry is memory or user';
    END IF;
    IF v_kind = 'turn' AND coalesce(p_row ->> 'role', '') NOT IN ('user', 'assistant', 'system', 'tool') THEN
        RETURN 'the role of a turn is user, assistant, system or tool';
    END IF;
    IF v_kind = 'edge' AND memvec.blankless(p_row ->> 'child_session_id') IS NULL THEN
        RETURN 'an edge needs the session that was delegated to';
    END IF;
    IF p_row ->> 'person' IS NOT NULL AND NOT pg_input_is_valid(p_row ->> 'person', 'uuid') THEN
        RETURN 'person is not a uuid';
    END IF;
    FOREACH v_field IN ARRAY '{created_at,updated_at,ts,first_seen,last_seen}'::text[] LOOP
        IF p_row ->> v_field IS NOT NULL AND NOT pg_input_is_valid(p_row ->> v_field, 'timestamptz') THEN
            RETURN format('%s is not a time', v_field);
        END IF;
    END LOOP;
    IF p_row -> 'sources' IS NOT NULL
        AND (jsonb_typeof(p_row -> 'sources') <> 'array'
             OR EXISTS (SELECT FROM jsonb_array_elements_text(p_row -> 'sources') AS s (source)
                         WHERE s.source IS NULL OR NOT pg_input_is_valid(s.source, 'uuid'))) THEN
        RETURN 'sources is not a list of uuids';
    END IF;
    RETURN NULL;
END;
$$;

COMMENT ON FUNCTION memvec.import_fault IS
'Returns what is wrong with a row to be imported, as part of a sentence that repeats none of its content, or NULL. Internal.';
REVOKE ALL ON FUNCTION memvec.import_fault FROM public;
