CREATE OR REPLACE FUNCTION memvec.text_matches(
    p_kind text,
    p_filter memvec.recall_filter,
    p_match tsquery,
    p_most bigint,
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
    v_match tsquery := p_match;
BEGIN
    IF NOT p_filter.others THEN
        v_match := memvec.term_query(coalesce(p_filter.person_key::text, 'theme ' || p_filter.own)) && p_match;
    END IF;
    IF p_filter.others OR p_filter.session_id IS NOT NULL OR p_most IS NOT NULL THEN
        SELECT * INTO ids, vectors, seen FROM memvec.text_planned(p_kind, p_filter, v_match, p_most);
    ELSE
        SELECT * INTO ids, vectors, seen FROM memvec.text_own(p_kind, p_filter, v_match);
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.text_matches IS
'Returns the rows of a filter that match p_match: ids, search vectors and dates, NULL for none; of more than p_most (NULL for no bound) the newest. Internal.';
REVOKE ALL ON FUNCTION memvec.text_matches FROM public;
