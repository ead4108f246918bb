CREATE OR REPLACE FUNCTION memvec.resolve_import(p_rows jsonb)
RETURNS memvec.import_row []
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (
        WITH given AS MATERIALIZED (
            SELECT r.ordinal::integer, r.row, r.row ->> 'kind' AS kind,
                   r.row ->> 'identity' AS identity, r.row ->> 'raw_identity' AS raw_identity,
                   CASE WHEN pg_input_is_valid(r.row ->> 'person', 'uuid') THEN (r.row ->> 'person')::uuid END AS person,
                   memvec.import_fault(r.row) AS fault
              FROM jsonb_array_elements(p_rows) WITH ORDINALITY AS r (row, ordinal)
        ), owners AS MATERIALIZED (
            SELECT k.identity, k.raw_identity, k.person, i.agent_identity, i.person_key, i.reason
              FROM (SELECT DISTINCT g.identity, g.raw_identity, g.person FROM given AS g WHERE g.fault IS NULL) AS k
             CROSS JOIN LATERAL memvec.import_identity(k.identity, k.raw_identity, k.person) AS i
        )
        SELECT array_agg(
                   ROW(g.ordinal, g.kind, o.agent_identity, o.person_key, o.reason, g.row,
                       CASE WHEN g.fault IS NOT NULL THEN 'refused' END, NULL, g.fault)::memvec.import_row
                   ORDER BY g.ordinal
               )
          FROM given AS g
          LEFT JOIN owners AS o
            ON g.fault IS NULL
           AND o.identity = g.identity
           AND coalesce(o.raw_identity, '') = coalesce(g.raw_identity, '')
           AND coalesce(o.person, '00000000-0000-0000-0000-000000000000')
               = coalesce(g.person, '00000000-0000-0000-0000-000000000000')
    );
END;
$$;

COMMENT ON FUNCTION memvec.resolve_import IS
'Returns the rows of an import in order, each with the theme and person it belongs to, or refused with the reason. Internal.';
REVOKE ALL ON FUNCTION memvec.resolve_import FROM public;
