-- What answers a question is seldom one turn alone: the question before it and the reply after it speak of the same thing. So a
-- turn is lifted by those that were found near it. Only turns of the leg at hand count, and no other is looked for: whatever a
-- filter has removed lifts nothing. The order within a session is that of time, then of storing, however many sessions are
-- written at once.
CREATE OR REPLACE FUNCTION memvec.lifted_turns(p_ids bigint [], p_scores double precision [], p_weight double precision)
RETURNS TABLE (id bigint, score double precision, seen timestamptz)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
ROWS 200
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
BEGIN
    RETURN QUERY
        SELECT c.id,
               f.score + p_weight * coalesce(sum(f.score) OVER (
                   PARTITION BY c.agent_identity, c.person_key, c.session_id
                       ORDER BY c.ts, c.id
                        ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW
               ), 0),
               c.ts
          FROM unnest(p_ids, p_scores) AS f (id, score)
          JOIN memvec.conversations AS c ON c.id = f.id;
END;
$$;

COMMENT ON FUNCTION memvec.lifted_turns IS
'Returns the turns of a leg, each with its score plus p_weight times the scores of the two before it and the two after it, among these turns in their session, and its date. Internal.';
REVOKE ALL ON FUNCTION memvec.lifted_turns FROM public;
