CREATE OR REPLACE FUNCTION memvec.merge_entries(p_twins memvec.twin [])
RETURNS void
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF p_twins IS NULL THEN
        RETURN;
    END IF;
    UPDATE memvec.memory_entries AS k
       SET metadata = CASE WHEN d.updated_at > k.updated_at THEN k.metadata || d.metadata ELSE d.metadata || k.metadata END,
           created_at = least(k.created_at, d.created_at),
           updated_at = greatest(k.updated_at, d.updated_at),
           embed = k.embed OR d.embed
      FROM unnest(p_twins) AS t
      JOIN memvec.memory_entries AS d ON d.id = t.dropped
     WHERE k.id = t.kept;
    INSERT INTO memvec.entry_sources AS k (entry_id, source, guessed)
    SELECT t.kept, s.source, s.guessed FROM unnest(p_twins) AS t JOIN memvec.entry_sources AS s ON s.entry_id = t.dropped
    ON CONFLICT (entry_id, source) DO UPDATE SET guessed = k.guessed AND excluded.guessed;
    UPDATE memvec.memory_history AS h SET entry_id = t.kept FROM unnest(p_twins) AS t WHERE h.entry_id = t.dropped;
    PERFORM memvec.keep_vectors('entry', p_twins);
    DELETE FROM memvec.memory_entries AS m WHERE m.id = ANY (ARRAY(SELECT t.dropped FROM unnest(p_twins) AS t));
END;
$$;

COMMENT ON FUNCTION memvec.merge_entries IS
'Makes one entry of each pair: the kept one takes the newer metadata over the older, the earliest and latest times, all sources, the history, and the vectors it lacks. Internal.';
REVOKE ALL ON FUNCTION memvec.merge_entries FROM public;
