-- Everything about the database that an operator should know, decided here, so that psql and every client say the same. It
-- tells nothing about anybody's rows but how many of the caller's own wait for a vector.
CREATE OR REPLACE FUNCTION memvec.health()
RETURNS TABLE (area text, name text, state text, message text, fix text, value jsonb)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_findings memvec.finding[];
BEGIN
    v_findings := array(SELECT f FROM memvec.health_server() AS f)
               || array(SELECT f FROM memvec.health_schema() AS f)
               || array(SELECT f FROM memvec.health_roles() AS f)
               || array(SELECT f FROM memvec.health_settings() AS f);
    BEGIN
        v_findings := v_findings
                   || array(SELECT f FROM memvec.health_tables() AS f)
                   || array(SELECT f FROM memvec.health_vectors() AS f);
    EXCEPTION WHEN data_exception THEN
        -- A setting that is no number: what is wrong with it was said above.
        v_findings := v_findings || ROW('vectors', 'spaces', 'unknown', 'not looked at, because a setting cannot be read',
                                        'Mend the settings first.', NULL)::memvec.finding;
    END;
    RETURN QUERY SELECT f.area, f.name, f.state, f.message,
                        CASE WHEN f.state <> 'ok' THEN f.fix END, f.value
                   FROM unnest(v_findings) WITH ORDINALITY AS f (area, name, state, message, fix, value, place)
                  ORDER BY f.place;
END;
$$;

COMMENT ON FUNCTION memvec.health IS
'Returns a row for each check of the database: area and name; state ok, warning, failure, or unknown where the caller is not told; a sentence; the command that mends it (SQL for an administrator, or hermes-pgsql ... with DSN for an administrator''s connection string), NULL when nothing is wrong; and a value for programs. It looks at server, schema, roles (of the calling login), settings, tables and vectors, and tells nothing of other themes.';
REVOKE ALL ON FUNCTION memvec.health FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.health TO memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
