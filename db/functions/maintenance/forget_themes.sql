CREATE OR REPLACE FUNCTION memvec.forget_themes(p_themes text [], p_persons uuid [])
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM memvec.memory_agents AS a WHERE a.agent_identity = ANY (p_themes);
    DELETE FROM memvec.identity_aliases AS a WHERE a.alias IN (SELECT p.alias FROM memvec.person_aliases(p_persons) AS p);
    -- Words that only these rows held are in the counts, and samples of their columns in the planner's statistics.
    IF p_themes <> '{}' THEN
        DELETE FROM memvec.theme_counts AS t WHERE t.agent_identity = ANY (p_themes);
        PERFORM memvec.count_terms();
    END IF;
    PERFORM memvec.renew_samples();
END;
$$;

COMMENT ON FUNCTION memvec.forget_themes IS
'Deletes what is known of themes and of a person besides their rows: registry, counts, the person''s aliases; counts common words again and renews the planner''s samples; the caller holds the themes alone. Internal.';
REVOKE ALL ON FUNCTION memvec.forget_themes FROM public;
