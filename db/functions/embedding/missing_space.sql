CREATE OR REPLACE FUNCTION memvec.missing_space(p_model text, p_dim integer, p_query_prefix text, p_document_prefix text)
RETURNS text
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_way text := format(
        'An administrator can add it, with "hermes-pgsql model add" and then "hermes-pgsql backfill", or in psql: '
        'SELECT memvec.add_embedding_space(%L, %s, %L, %L);',
        p_model, p_dim, coalesce(p_query_prefix, ''), coalesce(p_document_prefix, '')
    );
    v_prefixes text := (
        SELECT string_agg(format('"%s" and "%s"', s.query_prefix, s.document_prefix), ', or ' ORDER BY s.id)
          FROM memvec.embedding_spaces AS s
         WHERE s.model = p_model AND s.dim = p_dim
    );
BEGIN
    IF v_prefixes IS NOT NULL THEN
        RETURN format(
            'The vectors of model %s with %s dimensions here were made with other task prefixes (before questions and before text: %s) '
            'than this host uses ("%s" and "%s"), so they cannot be compared: rows are stored without vectors and found by words. '
            'Either this host uses theirs, by embed_query_prefix and embed_document_prefix in its configuration '
            '("none" stands for an empty one), or it gets a space of its own. %s',
            p_model, p_dim, v_prefixes, p_query_prefix, p_document_prefix, v_way
        );
    END IF;
    RETURN format(
        'Model %s with %s dimensions has no embedding space here%s: rows are stored without vectors and found by words. %s',
        p_model, p_dim,
        (SELECT format(' (there %s %s)', CASE WHEN count(*) = 1 THEN 'is' ELSE 'are' END,
                       string_agg(format('%s with %s dimensions', s.model, s.dim), ', ' ORDER BY s.id))
           FROM memvec.embedding_spaces AS s
         HAVING count(*) > 0),
        v_way
    );
END;
$$;

COMMENT ON FUNCTION memvec.missing_space IS
'Returns a warning for the operator of a host whose model, width and task prefixes have no embedding space: what there is instead, and the ways out. Internal.';
REVOKE ALL ON FUNCTION memvec.missing_space FROM public;
