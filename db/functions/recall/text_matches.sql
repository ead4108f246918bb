-- Two ways: ask the words' index for every row that matches, or read the newest rows until p_most match. The latter pays where
-- many rows match: it passes over a row in a tenth of the time that the index fetches one, and stops at p_most. Words come in
-- waves, so it may go back four times as far as it should have to. One person's rows are few. A bound in time may leave too
-- little of the newest rows, so then it must cost little to have tried.
CREATE OR REPLACE FUNCTION memvec.text_matches(
    p_kind text,
    p_filter memvec.recall_filter,
    p_match tsquery,
    p_most bigint,
    p_expected bigint,
    p_total bigint,
    OUT ids bigint [],
    OUT vectors tsvector [],
    OUT seen timestamptz []
)
RETURNS record
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_dated boolean := p_filter.since IS NOT NULL OR p_filter.until IS NOT NULL;
    v_passed_over integer := CASE WHEN v_dated THEN 1 ELSE 10 END;
    v_match tsquery := p_match;
    v_look bigint;
BEGIN
    IF (p_filter.person_key IS NULL OR p_filter.others)
        AND p_most::double precision * p_total <= v_passed_over::double precision * p_expected * p_expected THEN
        v_look := 4::numeric * p_most * p_total / p_expected;
        IF p_filter.others THEN
            SELECT * INTO ids, vectors, seen FROM memvec.text_newest(p_kind, p_filter, p_match, p_most, v_look);
        ELSE
            SELECT * INTO ids, vectors, seen FROM memvec.text_newest_own(p_kind, p_filter, p_match, p_most, v_look);
        END IF;
        IF cardinality(ids) = p_most THEN
            RETURN;
        END IF;
    END IF;
    IF NOT p_filter.others THEN
        v_match := memvec.term_query(coalesce(p_filter.person_key::text, 'theme ' || p_filter.own)) && p_match;
    END IF;
    -- A theme has few rows of a session, and often of a target. Rare words lead to few rows, whatever the dates; where the words
    -- are common, the dates may be the shorter way.
    IF p_filter.others OR p_filter.session_id IS NOT NULL OR p_filter.target IS NOT NULL OR p_most IS NOT NULL AND v_dated THEN
        SELECT * INTO ids, vectors, seen FROM memvec.text_planned(p_kind, p_filter, v_match, p_most);
    ELSE
        SELECT * INTO ids, vectors, seen FROM memvec.text_own(p_kind, p_filter, v_match, p_most);
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.text_matches IS
'Returns the rows of a filter that match p_match: ids, search vectors and dates, NULL for none; of more than p_most (NULL for no bound) the newest. p_expected: how many are expected among the p_total rows of the theme, or of all for a filter with others (NULL for unknown); a wrong number costs time. Internal.';
REVOKE ALL ON FUNCTION memvec.text_matches FROM public;
