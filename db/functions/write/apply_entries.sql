CREATE OR REPLACE FUNCTION memvec.apply_entries(p_run memvec.batch_op [])
RETURNS memvec.batch_op []
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_entries memvec.new_entry[];
BEGIN
    SELECT array_agg(
               ROW(o.ordinal, o.agent_identity, o.person_key, o.arguments ->> 'target', o.arguments ->> 'content',
                   o.arguments -> 'metadata', (o.arguments ->> 'source')::uuid, (o.arguments ->> 'embed')::boolean
               )::memvec.new_entry
           )
      INTO v_entries
      FROM unnest(p_run) AS o;
    RETURN (
        SELECT array_agg(
                   ROW(o.ordinal, o.op_id, o.op, NULL, NULL, NULL, o.agent_identity, o.person_key,
                       r.outcome, r.id, r.content_hash, NULL, NULL, NULL)::memvec.batch_op
               )
          FROM unnest(p_run) AS o
          JOIN memvec.put_entries(v_entries) AS r ON r.ordinal = o.ordinal
    );
END;
$$;

COMMENT ON FUNCTION memvec.apply_entries IS
'Applies a run of add_memory operations and returns them with their outcomes. Errors: those of put_entries. Internal.';
REVOKE ALL ON FUNCTION memvec.apply_entries FROM public;
