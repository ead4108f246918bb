CREATE OR REPLACE FUNCTION memvec.put_entry(p_entry memvec.new_entry, OUT id bigint, OUT outcome text, OUT content_hash bytea)
RETURNS record
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    SELECT p.id, p.outcome, p.content_hash
      INTO STRICT id, outcome, content_hash
      FROM memvec.put_entries(ARRAY[p_entry]) AS p;
END;
$$;

COMMENT ON FUNCTION memvec.put_entry IS
'Stores one entry; see put_entries. Internal.';
REVOKE ALL ON FUNCTION memvec.put_entry FROM public;
