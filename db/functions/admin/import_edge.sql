CREATE OR REPLACE FUNCTION memvec.import_edge(p_row memvec.import_row, p_dry_run boolean)
RETURNS memvec.import_row
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_row memvec.import_row := p_row;
BEGIN
    IF p_dry_run THEN
        SELECT e.id INTO v_row.row_id
          FROM memvec.memory_agent_edges AS e
         WHERE e.parent_identity = p_row.agent_identity
           AND e.parent_person IS NOT DISTINCT FROM p_row.person_key
           AND e.parent_session_id = coalesce(memvec.clean_session(p_row.arguments ->> 'session_id'), 'default')
           AND e.child_session_id = memvec.clean_session(p_row.arguments ->> 'child_session_id');
        v_row.outcome := CASE WHEN v_row.row_id IS NULL THEN 'added' ELSE 'duplicate' END;
        RETURN v_row;
    END IF;
    SELECT e.id, e.outcome
      INTO v_row.row_id, v_row.outcome
      FROM memvec.put_edge(
          p_row.agent_identity, p_row.person_key, p_row.arguments ->> 'session_id', p_row.arguments ->> 'child_session_id',
          p_row.arguments ->> 'child_identity', p_row.arguments -> 'attrs'
      ) AS e;
    IF v_row.outcome = 'added' THEN
        UPDATE memvec.memory_agent_edges AS e
           SET created_at = memvec.import_moment(p_row.arguments ->> 'created_at', e.created_at)
         WHERE e.id = v_row.row_id;
    END IF;
    RETURN v_row;
END;
$$;

COMMENT ON FUNCTION memvec.import_edge IS
'Stores a delegation of an import with the time it had and returns it with its outcome (added or duplicate). Internal.';
REVOKE ALL ON FUNCTION memvec.import_edge FROM public;
