CREATE OR REPLACE FUNCTION memvec.find_space(p_model text, p_dim integer, p_query_prefix text, p_document_prefix text)
RETURNS integer
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN (
    SELECT s.id
      FROM memvec.embedding_spaces AS s
     WHERE s.model = p_model
       AND s.dim = p_dim
       AND s.query_prefix = coalesce(p_query_prefix, '')
       AND s.document_prefix = coalesce(p_document_prefix, '')
);

COMMENT ON FUNCTION memvec.find_space IS
'Returns the id of the embedding space of a model, width and task prefixes, NULL when there is none. Internal.';
REVOKE ALL ON FUNCTION memvec.find_space FROM public;
