CREATE OR REPLACE FUNCTION memvec.as_object(p_value jsonb)
RETURNS jsonb
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN CASE coalesce(jsonb_typeof(p_value), 'null')
    WHEN 'object' THEN p_value
    WHEN 'null' THEN '{}'::jsonb
    ELSE jsonb_build_object('value', p_value)
END;

COMMENT ON FUNCTION memvec.as_object IS
'Returns metadata as an object: an object as it is, NULL as {}, anything else under the key "value". Internal.';
REVOKE ALL ON FUNCTION memvec.as_object FROM public;
