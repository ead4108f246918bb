CREATE OR REPLACE FUNCTION memvec.content_hash(p_content text)
RETURNS bytea
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN sha256(convert_to(p_content, 'UTF8'));

COMMENT ON FUNCTION memvec.content_hash IS
'Returns the SHA-256 of a text''s UTF-8 bytes: what rows are unique by. See also vector_hash. Internal.';
REVOKE ALL ON FUNCTION memvec.content_hash FROM public;
