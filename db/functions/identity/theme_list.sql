CREATE OR REPLACE FUNCTION memvec.theme_list(p_names text [])
RETURNS text []
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN (
    SELECT array_agg(memvec.bounded_name(memvec.clean_key(n.name))) FILTER (WHERE memvec.clean_key(n.name) IS NOT NULL)
      FROM unnest(p_names) AS n (name)
);

COMMENT ON FUNCTION memvec.theme_list IS
'Returns the names of an allow-list as themes are named, NULL when none is left, which means that the list allows all. Internal.';
REVOKE ALL ON FUNCTION memvec.theme_list FROM public;
