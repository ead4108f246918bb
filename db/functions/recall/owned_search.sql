-- The search indexes hold, besides a row's words, whose row it is, so that "this word in this theme" costs what the theme has
-- of it, however often the word stands in the database. Both are plain expressions that the planner puts in the place of the
-- call, where they equal the index's own: they must keep neither SECURITY DEFINER nor a SET clause. No word holds a space.
CREATE OR REPLACE FUNCTION memvec.owned_search(p_search tsvector, p_agent_identity text, p_person_key uuid)
RETURNS tsvector
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN p_search || array_to_tsvector(ARRAY[coalesce(p_person_key::text, 'theme ' || p_agent_identity)]);

COMMENT ON FUNCTION memvec.owned_search IS
'Returns a search vector with one lexeme more that names the row''s person, or else its theme: the expression of the indexes memory_entries_search and conversations_search. Internal.';
REVOKE ALL ON FUNCTION memvec.owned_search FROM public;
