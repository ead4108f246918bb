CREATE OR REPLACE FUNCTION memvec.term_query(p_term text)
RETURNS tsquery
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN (
    '''' || replace(replace(p_term, '\', '\\'), '''', '''''') || ''''
    || CASE WHEN p_term ~ '^[\u2e80-\U0003ffff]$' THEN ':*' ELSE '' END
)::tsquery;

COMMENT ON FUNCTION memvec.term_query IS
'Returns the tsquery for one term as it stands in a search vector; a single CJK character also matches what begins with it. Internal.';
REVOKE ALL ON FUNCTION memvec.term_query FROM public;
