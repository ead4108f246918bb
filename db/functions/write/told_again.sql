-- Whoever sends an operation again learns what became of it. An op_id is no proof of who sent it first, so a hash, which
-- would confirm a text, goes only to whom the row belongs.
CREATE OR REPLACE FUNCTION memvec.told_again(p_done memvec.applied_ops, p_agent_identity text, p_person_key uuid)
RETURNS memvec.applied_ops
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_told memvec.applied_ops := p_done;
BEGIN
    IF p_done.content_hash IS NOT NULL AND NOT EXISTS (
        SELECT FROM memvec.memory_entries AS m
         WHERE m.id = p_done.row_id
           AND m.agent_identity = p_agent_identity
           AND m.person_key IS NOT DISTINCT FROM p_person_key
           AND memvec.vector_hash(m.content_hash, m.person_key) = p_done.content_hash
        UNION ALL
        SELECT FROM memvec.conversations AS c
         WHERE c.id = p_done.row_id
           AND c.agent_identity = p_agent_identity
           AND c.person_key IS NOT DISTINCT FROM p_person_key
           AND memvec.vector_hash(c.content_hash, c.person_key) = p_done.content_hash
    ) THEN
        v_told.content_hash := NULL;
    END IF;
    IF p_done.detail ? 'rows' THEN
        v_told.detail := p_done.detail || jsonb_build_object('rows', coalesce(
            (SELECT jsonb_agg(r.row ORDER BY r.position)
               FROM jsonb_array_elements(p_done.detail -> 'rows') WITH ORDINALITY AS r (row, position)
               JOIN memvec.memory_entries AS m ON m.id = (r.row ->> 'id')::bigint
              WHERE memvec.may_act_as(m.agent_identity)),
            '[]'
        ));
    END IF;
    RETURN v_told;
END;
$$;

COMMENT ON FUNCTION memvec.told_again IS
'Returns an applied operation as it may be told to the theme and person that send it again: its content hash only if the row is theirs and still has that text, of a synchronised file only the rows in themes that the login role may act as. Internal.';
REVOKE ALL ON FUNCTION memvec.told_again FROM public;
