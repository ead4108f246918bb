CREATE OR REPLACE FUNCTION memvec.put_embeddings(
    p_space memvec.embedding_spaces,
    p_kind text,
    p_ids bigint [],
    p_embeddings public.halfvec []
)
RETURNS SETOF bigint
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        CASE p_kind
            WHEN 'entry' THEN
                'WITH given AS (
                     SELECT DISTINCT ON (g.id) g.id, g.embedding FROM unnest($1, $2) AS g (id, embedding)
                      WHERE public.l2_norm(g.embedding) > 0 ORDER BY g.id
                 ), put AS (
                     INSERT INTO memvec.%1$I AS e (id, agent_identity, person_key, target, embedding)
                     SELECT m.id, m.agent_identity, m.person_key, m.target, g.embedding
                       FROM given AS g JOIN memvec.memory_entries AS m ON m.id = g.id AND m.embed
                     ON CONFLICT (id) DO NOTHING
                     RETURNING e.id
                 ), done AS (
                     DELETE FROM memvec.embedding_work AS w USING put WHERE w.space_id = $3 AND w.kind = ''entry'' AND w.row_id = put.id
                 )
                 SELECT put.id FROM put'
            ELSE
                'WITH given AS (
                     SELECT DISTINCT ON (g.id) g.id, g.embedding FROM unnest($1, $2) AS g (id, embedding)
                      WHERE public.l2_norm(g.embedding) > 0 ORDER BY g.id
                 ), put AS (
                     INSERT INTO memvec.%2$I AS e (id, agent_identity, person_key, session_id, ts, embedding)
                     SELECT c.id, c.agent_identity, c.person_key, c.session_id, c.ts, g.embedding
                       FROM given AS g JOIN memvec.conversations AS c ON c.id = g.id AND c.embed
                     ON CONFLICT (id) DO NOTHING
                     RETURNING e.id
                 ), done AS (
                     DELETE FROM memvec.embedding_work AS w USING put WHERE w.space_id = $3 AND w.kind = ''turn'' AND w.row_id = put.id
                 )
                 SELECT put.id FROM put'
        END,
        p_space.entry_table, p_space.turn_table
    ) USING p_ids, p_embeddings, p_space.id;
END;
$$;

COMMENT ON FUNCTION memvec.put_embeddings IS
'Stores the vectors of entries or turns in a space where they have none yet, and returns the ids of the rows that got one. NULL and zero vectors, and rows never to be embedded, are passed over. The caller has checked the width. Internal.';
REVOKE ALL ON FUNCTION memvec.put_embeddings FROM public;
