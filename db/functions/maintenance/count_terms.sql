-- Only common words of large tables matter: in a small filter rarity is counted on the spot. A sample of at most some 20,000
-- ordinary rows tells which words are common; words of chats and benchmarks never enter, so that this table says nothing
-- about anybody.
CREATE OR REPLACE FUNCTION memvec.count_terms()
RETURNS bigint
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c_sample CONSTANT double precision := 20000;
    v_kind text;
    v_table text;
    v_total double precision;
    v_percent double precision;
    v_counted bigint;
BEGIN
    DELETE FROM memvec.term_statistics;
    FOREACH v_kind IN ARRAY '{entry,turn}'::text[] LOOP
        SELECT sum(t.rows) INTO v_total
          FROM memvec.theme_counts AS t
         WHERE t.kind = v_kind AND NOT memvec.is_sink(t.agent_identity);
        CONTINUE WHEN v_total IS NULL OR v_total <= memvec.setting('text_all_terms_rows')::double precision;
        v_table := CASE v_kind WHEN 'entry' THEN 'memory_entries' ELSE 'conversations' END;
        v_percent := least(100, 100 * c_sample / v_total);
        INSERT INTO memvec.term_statistics (kind, lexeme, rows)
        SELECT v_kind, s.word, ceil(s.ndoc * 100 / v_percent)::bigint
          FROM ts_stat(format(
                   'SELECT search FROM memvec.%I TABLESAMPLE SYSTEM (%s) REPEATABLE (1) '
                   'WHERE person_key IS NULL AND NOT memvec.is_sink(agent_identity)',
                   v_table, v_percent
               )) AS s
         WHERE s.ndoc >= 10 AND length(s.word) <= 255;
    END LOOP;
    SELECT count(*) INTO v_counted FROM memvec.term_statistics;
    RETURN v_counted;
END;
$$;

COMMENT ON FUNCTION memvec.count_terms IS
'Counts the common words of ordinary rows (in 10 or more rows of a sample of about 20,000) into term_statistics and returns how many there are. Tables of up to setting text_all_terms_rows rows have none. Internal.';
REVOKE ALL ON FUNCTION memvec.count_terms FROM public;
