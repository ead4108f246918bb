CREATE OR REPLACE FUNCTION memvec.count_themes()
RETURNS bigint
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_counted bigint;
BEGIN
    WITH counted AS (
        SELECT 'entry' AS kind, m.agent_identity, m.target, count(*) AS rows
          FROM memvec.memory_entries AS m GROUP BY m.agent_identity, m.target
        UNION ALL
        SELECT 'turn', c.agent_identity, '', count(*)
          FROM memvec.conversations AS c GROUP BY c.agent_identity
    ), gone AS (
        DELETE FROM memvec.theme_counts AS t
         WHERE NOT EXISTS (SELECT FROM counted AS c
                            WHERE c.kind = t.kind AND c.agent_identity = t.agent_identity AND c.target = t.target)
    )
    INSERT INTO memvec.theme_counts AS t (kind, agent_identity, target, rows)
    SELECT c.kind, c.agent_identity, c.target, c.rows FROM counted AS c
    ON CONFLICT (kind, agent_identity, target) DO UPDATE SET rows = excluded.rows WHERE t.rows <> excluded.rows;
    SELECT count(*) INTO v_counted FROM memvec.theme_counts;
    RETURN v_counted;
END;
$$;

COMMENT ON FUNCTION memvec.count_themes IS
'Counts the rows of each theme and target into theme_counts and returns how many counts there are. Internal.';
REVOKE ALL ON FUNCTION memvec.count_themes FROM public;
