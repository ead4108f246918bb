CREATE OR REPLACE FUNCTION memvec.apply_turns(p_run memvec.batch_op [])
RETURNS memvec.batch_op []
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_turns memvec.new_turn[];
BEGIN
    SELECT array_agg(
               ROW(o.ordinal, o.agent_identity, o.person_key, o.arguments ->> 'session_id', o.arguments ->> 'role',
                   o.arguments ->> 'content', o.arguments ->> 'parent_session_id', (o.arguments ->> 'ts')::timestamptz,
                   o.arguments -> 'metadata', (o.arguments ->> 'embed')::boolean)::memvec.new_turn
           )
      INTO v_turns
      FROM unnest(p_run) AS o;
    RETURN (
        SELECT array_agg(
                   ROW(o.ordinal, o.op_id, o.op, NULL, NULL, NULL, o.agent_identity, o.person_key,
                       r.outcome, r.id, r.content_hash, NULL, NULL, NULL)::memvec.batch_op
               )
          FROM unnest(p_run) AS o
          JOIN memvec.put_turns(v_turns) AS r ON r.ordinal = o.ordinal
    );
END;
$$;

COMMENT ON FUNCTION memvec.apply_turns IS
'Applies a run of append_turn operations and returns them with their outcomes. Errors: those of put_turns. Internal.';
REVOKE ALL ON FUNCTION memvec.apply_turns FROM public;
