CREATE OR REPLACE FUNCTION memvec.merge_turns(p_twins memvec.twin [])
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
    UPDATE memvec.conversations AS k
       SET metadata = CASE WHEN d.ts > k.ts THEN k.metadata || d.metadata ELSE d.metadata || k.metadata END,
           parent_session_id = coalesce(k.parent_session_id, d.parent_session_id),
           embed = k.embed OR d.embed
      FROM unnest(p_twins) AS t
      JOIN memvec.conversations AS d ON d.id = t.dropped
     WHERE k.id = t.kept;
    PERFORM memvec.keep_vectors('turn', p_twins);
    DELETE FROM memvec.conversations AS c WHERE c.id = ANY (ARRAY(SELECT t.dropped FROM unnest(p_twins) AS t));
END;
$$;

COMMENT ON FUNCTION memvec.merge_turns IS
'Makes one turn of each pair: the kept one takes the newer metadata over the older and the vectors it lacks. Internal.';
REVOKE ALL ON FUNCTION memvec.merge_turns FROM public;
