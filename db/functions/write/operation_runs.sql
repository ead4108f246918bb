CREATE OR REPLACE FUNCTION memvec.operation_runs(p_ops memvec.batch_op [])
RETURNS TABLE (run memvec.batch_op [])
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY
        WITH first AS (
            SELECT DISTINCT ON (o.op_id) o.ordinal, o.op
              FROM unnest(p_ops) AS o
             WHERE o.outcome IS NULL
             ORDER BY o.op_id, o.ordinal
        ), begun AS (
            SELECT f.ordinal,
                   f.op NOT IN ('append_turn', 'add_memory')
                       OR f.op IS DISTINCT FROM lag(f.op) OVER (ORDER BY f.ordinal) AS begins
              FROM first AS f
        ), numbered AS (
            SELECT b.ordinal, count(*) FILTER (WHERE b.begins IS NOT false) OVER (ORDER BY b.ordinal) AS number
              FROM begun AS b
        )
        SELECT array_agg(p_ops[n.ordinal] ORDER BY n.ordinal)
          FROM numbered AS n
         GROUP BY n.number
         ORDER BY n.number;
END;
$$;

COMMENT ON FUNCTION memvec.operation_runs IS
'Returns the operations of a batch that are still to be done, each op_id once, in order, cut into runs: neighbours that are all append_turn or all add_memory together, every other operation alone. Internal.';
REVOKE ALL ON FUNCTION memvec.operation_runs FROM public;
