CREATE OR REPLACE FUNCTION memvec.vectors_as_json(p_kind text)
RETURNS text
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(
               '(SELECT json_object_agg(v.space, v.embedding) FROM ('
               || string_agg(
                   format(
                       'SELECT %s AS space, e.embedding::text::json AS embedding FROM memvec.%I AS e WHERE e.id = r.id',
                       s.id, CASE p_kind WHEN 'entry' THEN s.entry_table ELSE s.turn_table END
                   ),
                   ' UNION ALL ' ORDER BY s.id
               )
               || ') AS v)',
               'NULL::json'
           )
      FROM memvec.embedding_spaces AS s
$$;

COMMENT ON FUNCTION memvec.vectors_as_json IS
'Returns an SQL expression for the vectors of a row r of entries or turns: an object of space id to numbers, or NULL. Internal.';
REVOKE ALL ON FUNCTION memvec.vectors_as_json FROM public;
