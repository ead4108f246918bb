CREATE OR REPLACE FUNCTION memvec.resolve_ops(p_ops jsonb)
RETURNS memvec.pending_op []
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (
        WITH given AS MATERIALIZED (
            SELECT o.position::integer AS position,
                   CASE WHEN pg_input_is_valid(o.op ->> 'op_id', 'uuid') THEN (o.op ->> 'op_id')::uuid END AS op_id,
                   o.op ->> 'op' AS op,
                   CASE jsonb_typeof(o.op -> 'identity') WHEN 'string' THEN o.op ->> 'identity' END AS identity,
                   CASE jsonb_typeof(o.op -> 'governance') WHEN 'object' THEN o.op -> 'governance' END AS governance,
                   o.op AS arguments
              FROM jsonb_array_elements(p_ops) WITH ORDINALITY AS o (op, position)
        ), actors AS MATERIALIZED (
            SELECT k.identity, k.governance, g.agent_identity, g.person_key, memvec.may_act_as(g.agent_identity) AS allowed
              FROM (SELECT DISTINCT g.identity, g.governance FROM given AS g) AS k
             CROSS JOIN LATERAL memvec.governed_identity(k.identity, k.governance) AS g
        )
        SELECT coalesce(
                   array_agg(
                       ROW(
                           g.position, g.op_id, g.op, g.identity, g.governance, g.arguments,
                           CASE WHEN a.allowed THEN a.agent_identity END,
                           CASE WHEN a.allowed THEN a.person_key END,
                           CASE WHEN g.op_id IS NULL THEN 'MV001' WHEN NOT a.allowed THEN 'MV002' END,
                           CASE WHEN g.op_id IS NULL THEN format('operation %s of the batch has no op_id, or not a uuid', g.position)
                                WHEN NOT a.allowed
                                THEN format('login role %I may not act as theme "%s"', session_user, a.agent_identity)
                           END
                       )::memvec.pending_op
                       ORDER BY g.position
                   ),
                   '{}'
               )
          FROM given AS g
          JOIN actors AS a
            ON a.identity IS NOT DISTINCT FROM g.identity AND a.governance IS NOT DISTINCT FROM g.governance
    );
END;
$$;

COMMENT ON FUNCTION memvec.resolve_ops IS
'Returns the operations of a batch in order, each with the theme and person it acts as, or with the error that keeps it from being applied. Internal.';
REVOKE ALL ON FUNCTION memvec.resolve_ops FROM public;
