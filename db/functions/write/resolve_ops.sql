CREATE OR REPLACE FUNCTION memvec.resolve_ops(p_ops jsonb)
RETURNS memvec.batch_op []
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (
        WITH given AS MATERIALIZED (
            SELECT o.ordinal::integer,
                   CASE WHEN pg_input_is_valid(o.op ->> 'op_id', 'uuid') THEN (o.op ->> 'op_id')::uuid END AS op_id,
                   o.op ->> 'op' AS op,
                   CASE jsonb_typeof(o.op -> 'identity') WHEN 'string' THEN o.op ->> 'identity' END AS identity,
                   CASE jsonb_typeof(o.op -> 'governance') WHEN 'object' THEN o.op -> 'governance' END AS governance,
                   o.op AS arguments
              FROM jsonb_array_elements(p_ops) WITH ORDINALITY AS o (op, ordinal)
        ), actors AS MATERIALIZED (
            SELECT k.identity, k.governance, a.agent_identity, a.person_key, memvec.may_act_as(a.agent_identity) AS allowed
              FROM (SELECT DISTINCT g.identity, g.governance FROM given AS g) AS k
             CROSS JOIN LATERAL memvec.governed_identity(k.identity, k.governance) AS a
        )
        SELECT coalesce(
                   array_agg(
                       CASE
                           WHEN g.op_id IS NULL THEN
                               ROW(g.ordinal, NULL, g.op, NULL, NULL, NULL, NULL, NULL, 'error', NULL, NULL, NULL, 'MV001',
                                   format('operation %s of the batch has no op_id, or not a uuid', g.ordinal))::memvec.batch_op
                           WHEN NOT a.allowed THEN
                               ROW(g.ordinal, g.op_id, g.op, NULL, NULL, NULL, NULL, NULL, 'error', NULL, NULL, NULL, 'MV002',
                                   format('login role %I may not act as theme "%s"', session_user, a.agent_identity)
                               )::memvec.batch_op
                           ELSE
                               ROW(g.ordinal, g.op_id, g.op, g.identity, g.governance, g.arguments, a.agent_identity,
                                   a.person_key, d.outcome, d.row_id,
                                   d.content_hash, d.detail, NULL, NULL)::memvec.batch_op
                       END
                       ORDER BY g.ordinal
                   ),
                   '{}'
               )
          FROM given AS g
          JOIN actors AS a
            ON coalesce(a.identity, '') = coalesce(g.identity, '')
           AND (a.identity IS NULL) = (g.identity IS NULL)
           AND a.governance IS NOT DISTINCT FROM g.governance
          LEFT JOIN LATERAL (
              SELECT t.*
                FROM memvec.applied_ops AS o
               CROSS JOIN LATERAL memvec.told_again(o, a.agent_identity, a.person_key) AS t
               WHERE o.op_id = g.op_id
          ) AS d ON true
    );
END;
$$;

COMMENT ON FUNCTION memvec.resolve_ops IS
'Returns the operations of a batch in order: each with the theme and person it acts as, with its recorded outcome if it was applied before, or with the error that keeps it from being applied. Internal.';
REVOKE ALL ON FUNCTION memvec.resolve_ops FROM public;
