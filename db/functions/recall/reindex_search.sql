-- After a change of search_language, of turn_date_words or of search_vector itself, rows are renewed a few at a time. Rows that are not yet are
-- found all the same: until the last one is renewed, questions are also put in the languages before (query_terms).
CREATE OR REPLACE FUNCTION memvec.reindex_search(p_limit integer DEFAULT 1000)
RETURNS bigint
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_version integer := memvec.setting('search_version')::integer;
    v_date_words text := memvec.setting('turn_date_words');
    v_asked CONSTANT integer := greatest(0, coalesce(p_limit, 1000));
    v_left integer := v_asked;
    v_entries integer;
    v_turns integer;
    v_remaining bigint;
BEGIN
    PERFORM memvec.assert_read_committed();
    PERFORM pg_advisory_xact_lock_shared(memvec.reindex_lock());
    WITH older AS (
        SELECT m.id FROM memvec.memory_entries AS m WHERE m.search_version < v_version LIMIT v_left FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE memvec.memory_entries AS m
       SET search = memvec.search_vector(m.content), search_version = v_version
      FROM older AS o
     WHERE m.id = o.id;
    GET DIAGNOSTICS v_entries = ROW_COUNT;
    v_left := v_left - v_entries;
    WITH older AS (
        SELECT c.id FROM memvec.conversations AS c WHERE c.search_version < v_version LIMIT v_left FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE memvec.conversations AS c
       SET search = memvec.turn_vector(c.content, c.ts, NULL, v_date_words), search_version = v_version
      FROM older AS o
     WHERE c.id = o.id;
    GET DIAGNOSTICS v_turns = ROW_COUNT;
    IF v_entries + v_turns > 0 THEN
        INSERT INTO memvec.maintenance_log (operation, rows, parameters)
        VALUES ('reindex_search', v_entries + v_turns, jsonb_build_object('version', v_version));
    END IF;

    v_remaining := memvec.count_older(v_version);
    IF v_remaining > 0 OR v_asked = 0 OR memvec.setting('search_languages_before') = '' THEN
        RETURN v_remaining;
    END IF;
    -- Before the former languages are forgotten, every row must be of today's: no other change may have come meanwhile, nor come
    -- now, and whoever began to write by the settings of before must have ended.
    PERFORM FROM memvec.settings AS s WHERE s.name = 'search_version' AND s.value = v_version::text FOR SHARE;
    IF NOT FOUND THEN
        RETURN memvec.reindex_search(0);
    END IF;
    IF NOT memvec.outwait_writers() THEN
        RETURN 1;
    END IF;
    v_remaining := memvec.count_older(v_version);
    IF v_remaining = 0 THEN
        UPDATE memvec.settings AS s SET value = '' WHERE s.name = 'search_languages_before';
    END IF;
    RETURN v_remaining;
END;
$$;

COMMENT ON FUNCTION memvec.reindex_search IS
'Renews the search vectors of up to p_limit entries and turns whose search_version is older than setting search_version, and returns how many are left; with p_limit 0 only counts. Call it until it returns 0, each time in a transaction of its own; rows that others are writing are left for the next call, and while a transaction is open that began to write before (waited for setting lock_seconds at most) at least 1 is. Errors: MV006.';
REVOKE ALL ON FUNCTION memvec.reindex_search FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.reindex_search TO memvec_admin;
