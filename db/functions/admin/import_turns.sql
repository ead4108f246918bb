CREATE OR REPLACE FUNCTION memvec.import_turns(p_rows memvec.import_row [], p_dry_run boolean)
RETURNS memvec.import_row []
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_turns memvec.new_turn[];
BEGIN
    IF p_dry_run THEN
        RETURN (
            SELECT array_agg(
                       ROW(r.ordinal, r.kind, r.agent_identity, r.person_key, r.reason, r.arguments,
                           CASE WHEN r.id IS NULL AND r.nth = 1 THEN 'added' ELSE 'duplicate' END, r.id, NULL)::memvec.import_row
                   )
              FROM (SELECT g.*, c.id,
                           row_number() OVER (
                               PARTITION BY g.agent_identity, g.person_key, g.session_id, g.content_hash, g.arguments ->> 'role'
                               ORDER BY g.ordinal
                           ) AS nth
                      FROM (SELECT r.*, coalesce(memvec.clean_session(r.arguments ->> 'session_id'), 'default') AS session_id,
                                   memvec.content_hash(memvec.blankless(r.arguments ->> 'content')) AS content_hash
                              FROM unnest(p_rows) AS r) AS g
                      LEFT JOIN memvec.conversations AS c
                        ON c.agent_identity = g.agent_identity
                       AND c.session_id = g.session_id
                       AND c.content_hash = g.content_hash
                       AND c.role = g.arguments ->> 'role'
                       AND c.person_key IS NOT DISTINCT FROM g.person_key) AS r
        );
    END IF;
    SELECT array_agg(
               ROW(r.ordinal, r.agent_identity, r.person_key, r.arguments ->> 'session_id', r.arguments ->> 'role',
                   r.arguments ->> 'content', r.arguments ->> 'parent_session_id', (r.arguments ->> 'ts')::timestamptz,
                   memvec.as_object(r.arguments -> 'metadata') - 'raw_identity', (r.arguments ->> 'embed')::boolean
               )::memvec.new_turn
               ORDER BY r.ordinal
           )
      INTO v_turns
      FROM unnest(p_rows) AS r;
    RETURN (
        SELECT array_agg(
                   ROW(r.ordinal, r.kind, r.agent_identity, r.person_key, r.reason, r.arguments, p.outcome, p.id, NULL
                   )::memvec.import_row
               )
          FROM unnest(p_rows) AS r
          JOIN memvec.put_turns(v_turns) AS p ON p.ordinal = r.ordinal
    );
END;
$$;

COMMENT ON FUNCTION memvec.import_turns IS
'Stores the turns of an import and returns them with their outcome (added or duplicate) and row id; in a dry run nothing is stored. Internal.';
REVOKE ALL ON FUNCTION memvec.import_turns FROM public;
