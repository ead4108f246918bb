-- The planner's statistics know it without reading a row, unlike counting, which would begin with the oldest rows: how often the
-- most frequent dates come, and bounds between which equally many of the other rows lie.
CREATE OR REPLACE FUNCTION memvec.dated_share(p_kind text, p_since timestamptz, p_until timestamptz)
RETURNS double precision
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET datestyle = 'ISO'
AS $$
DECLARE
    v_frequent timestamptz[];
    v_frequency real[];
    v_bounds timestamptz[];
    v_share double precision := 0;
    v_rest double precision := 1;
BEGIN
    IF p_since IS NULL AND p_until IS NULL THEN
        RETURN 1;
    END IF;
    SELECT s.most_common_vals::text::timestamptz[], s.most_common_freqs, s.histogram_bounds::text::timestamptz[]
      INTO v_frequent, v_frequency, v_bounds
      FROM pg_stats AS s
     WHERE s.schemaname = 'memvec'
       AND (s.tablename, s.attname) = (CASE p_kind WHEN 'entry' THEN 'memory_entries' ELSE 'conversations' END,
                                       CASE p_kind WHEN 'entry' THEN 'updated_at' ELSE 'ts' END);
    IF v_frequent IS NULL AND v_bounds IS NULL THEN
        RETURN 1;
    END IF;
    SELECT coalesce(sum(f.part) FILTER (WHERE f.date >= coalesce(p_since, '-infinity') AND f.date < coalesce(p_until, 'infinity')), 0),
           1 - coalesce(sum(f.part), 0)
      INTO v_share, v_rest
      FROM unnest(v_frequent, v_frequency) AS f (date, part);
    IF v_bounds IS NOT NULL THEN
        -- How far a date stands among the bounds, 0 to 1.
        SELECT v_share + v_rest * greatest(0, sum(e.sign * CASE
                   WHEN e.step = 0 THEN 0
                   WHEN e.step >= cardinality(v_bounds) THEN 1
                   WHEN NOT isfinite(v_bounds[e.step]) OR NOT isfinite(v_bounds[e.step + 1])
                       THEN (e.step - 1)::double precision / (cardinality(v_bounds) - 1)
                   ELSE (e.step - 1 + extract(epoch FROM e.date - v_bounds[e.step])
                                      / extract(epoch FROM v_bounds[e.step + 1] - v_bounds[e.step]))
                        / (cardinality(v_bounds) - 1)
               END))
          INTO v_share
          FROM (SELECT d.date, d.sign, width_bucket(d.date, v_bounds) AS step
                  FROM (VALUES (coalesce(p_until, 'infinity'), 1), (coalesce(p_since, '-infinity'), -1)) AS d (date, sign)) AS e;
    END IF;
    RETURN least(1, greatest(0, v_share));
END;
$$;

COMMENT ON FUNCTION memvec.dated_share IS
'Returns about what part of all entries (by updated_at) or turns (by ts) lies between two times, from 0 to 1, as the last ANALYZE saw it; 1 where there was none. Internal.';
REVOKE ALL ON FUNCTION memvec.dated_share FROM public;
