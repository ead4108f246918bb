-- A hash of a short text is as good as the text to somebody who can try all short texts. What others may not read must not be
-- confirmed to them either, so the hash that goes out for a person's row is mixed with the person, whom only the database
-- and those who know the chat's key can name.
CREATE OR REPLACE FUNCTION memvec.vector_hash(p_content_hash bytea, p_person_key uuid)
RETURNS bytea
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN CASE WHEN p_person_key IS NULL THEN p_content_hash ELSE sha256(uuid_send(p_person_key) || p_content_hash) END;

COMMENT ON FUNCTION memvec.vector_hash IS
'Returns the content hash by which a vector names its row: the row''s own, or, for a person''s row, one that cannot be computed without the person. Internal.';
REVOKE ALL ON FUNCTION memvec.vector_hash FROM public;
