-- Which way is cheaper depends on how many rows pass the filter. theme_counts knows roughly; a theme it has not heard of yet
-- is counted, but no further than the answer matters. One person's rows are counted too: the count of a sink is that of everybody
-- in it, and nothing that a person is shown may depend on the others.
CREATE OR REPLACE FUNCTION memvec.estimate_rows(p_kind text, p_filter memvec.recall_filter, p_enough bigint)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_person memvec.recall_filter := p_filter;
    v_rows bigint;
BEGIN
    -- Two statements, so that for one theme the key of theme_counts is used.
    IF p_filter.others THEN
        SELECT sum(c.rows) INTO v_rows
          FROM memvec.theme_counts AS c
         WHERE c.kind = p_kind
           AND (p_filter.target IS NULL OR c.target = p_filter.target)
           AND (c.agent_identity = p_filter.own AND p_filter.person_key IS NULL
                OR NOT memvec.is_sink(c.agent_identity)
                   AND (p_filter.themes IS NULL OR c.agent_identity = ANY (p_filter.themes)));
    ELSIF p_filter.person_key IS NULL THEN
        SELECT sum(c.rows) INTO v_rows
          FROM memvec.theme_counts AS c
         WHERE c.kind = p_kind
           AND c.agent_identity = p_filter.own
           AND (p_filter.target IS NULL OR c.target = p_filter.target);
    END IF;
    IF v_rows IS NULL OR v_rows <= 0 THEN
        RETURN memvec.count_rows(p_kind, p_filter, p_enough + 1);
    END IF;
    IF p_filter.person_key IS NOT NULL THEN
        v_person.others := false;
        v_rows := v_rows + memvec.count_rows(p_kind, v_person, p_enough + 1);
    END IF;
    RETURN v_rows;
END;
$$;

COMMENT ON FUNCTION memvec.estimate_rows IS
'Returns about how many entries or turns a filter''s theme, person and target hold: from theme_counts, or counted up to p_enough + 1 for a person and where those say nothing. Session and time bounds are not looked at. Internal.';
REVOKE ALL ON FUNCTION memvec.estimate_rows FROM public;
