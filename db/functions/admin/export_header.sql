CREATE OR REPLACE FUNCTION memvec.export_header(p_identity text DEFAULT NULL)
RETURNS json
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_who record;
BEGIN
    SELECT * INTO v_who FROM memvec.export_scope(p_identity);
    IF p_identity IS NOT NULL THEN
        PERFORM memvec.assert_known(ARRAY[v_who.agent_identity]);
    END IF;
    -- Who took everything away is worth a line; a person is named by uuid, as everywhere in the log.
    INSERT INTO memvec.maintenance_log (operation, parameters)
    VALUES ('export', jsonb_strip_nulls(jsonb_build_object('theme', v_who.agent_identity, 'person', v_who.person_key)));
    RETURN json_build_object(
        'kind', 'header',
        'format', 'hermes-pgsql',
        'version', 1,
        'schema_version', memvec.schema_version(),
        'exported_at', now(),
        'theme', v_who.agent_identity,
        'persons', memvec.persons_mark(),
        'spaces', coalesce(
            (SELECT json_agg(
                        json_build_object(
                            'space', s.id, 'model', s.model, 'dim', s.dim, 'query_prefix', s.query_prefix,
                            'document_prefix', s.document_prefix, 'min_similarity', s.min_similarity
                        )
                        ORDER BY s.id
                    )
               FROM memvec.embedding_spaces AS s),
            '[]'
        )
    );
END;
$$;

COMMENT ON FUNCTION memvec.export_header IS
'Returns the first line of an export: its format, the embedding spaces that its vectors name, and the mark of the database''s persons; and logs that an export was taken. p_identity: see export_rows. Errors: MV001 a theme that is not there.';
REVOKE ALL ON FUNCTION memvec.export_header FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.export_header TO memvec_admin;
