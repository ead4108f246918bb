CREATE OR REPLACE FUNCTION memvec.export_rows(
    p_kind text,
    p_after bigint DEFAULT 0,
    p_limit integer DEFAULT 500,
    p_identity text DEFAULT NULL,
    p_vectors boolean DEFAULT false
)
RETURNS TABLE (id bigint, line json)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_who record;
    v_limit integer := greatest(1, least(coalesce(p_limit, 500), 10000));
    v_rows text;
BEGIN
    v_rows := CASE p_kind
        WHEN 'agent' THEN
            'SELECT r.id, json_build_object(
                 ''kind'', ''agent'', ''identity'', r.agent_identity, ''first_seen'', r.first_seen, ''last_seen'', r.last_seen,
                 ''attrs'', r.attrs)
               FROM (SELECT a.*, NULL::uuid AS person_key, row_number() OVER (ORDER BY a.agent_identity) AS id
                       FROM memvec.memory_agents AS a) AS r'
        WHEN 'entry' THEN
            'SELECT r.id, json_build_object(
                 ''kind'', ''entry'', ''identity'', r.agent_identity, ''person'', r.person_key, ''target'', r.target,
                 ''content'', r.content, ''created_at'', r.created_at, ''updated_at'', r.updated_at, ''embed'', r.embed,
                 ''metadata'', r.metadata,
                 ''sources'', (SELECT coalesce(json_agg(s.source), ''[]'') FROM memvec.entry_sources AS s WHERE s.entry_id = r.id),
                 ''vectors'', %s)
               FROM memvec.memory_entries AS r'
        WHEN 'turn' THEN
            'SELECT r.id, json_build_object(
                 ''kind'', ''turn'', ''identity'', r.agent_identity, ''person'', r.person_key, ''session_id'', r.session_id,
                 ''parent_session_id'', r.parent_session_id, ''role'', r.role, ''content'', r.content, ''ts'', r.ts,
                 ''embed'', r.embed, ''metadata'', r.metadata, ''vectors'', %s)
               FROM memvec.conversations AS r'
        WHEN 'edge' THEN
            'SELECT r.id, json_build_object(
                 ''kind'', ''edge'', ''identity'', r.agent_identity, ''person'', r.person_key, ''session_id'', r.parent_session_id,
                 ''child_identity'', r.child_identity, ''child_session_id'', r.child_session_id, ''created_at'', r.created_at,
                 ''attrs'', r.attrs)
               FROM (SELECT e.*, e.parent_identity AS agent_identity, e.parent_person AS person_key
                       FROM memvec.memory_agent_edges AS e) AS r'
    END;
    IF v_rows IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('there are no rows of kind "%s"', p_kind),
            HINT = 'Use agent, entry, turn or edge.';
    END IF;
    SELECT * INTO v_who FROM memvec.export_scope(p_identity);
    RETURN QUERY EXECUTE
        replace(v_rows, '%s', CASE WHEN p_vectors THEN memvec.vectors_as_json(p_kind) ELSE 'NULL::json' END)
        || ' WHERE r.id > $1 AND ($2 IS NULL OR r.agent_identity = $2) AND ($3 IS NULL OR r.person_key = $3)
             ORDER BY r.id LIMIT $4'
        USING coalesce(p_after, 0), v_who.agent_identity, v_who.person_key, v_limit;
END;
$$;

COMMENT ON FUNCTION memvec.export_rows IS
'Returns rows with an id above p_after in that order, at most p_limit (10000), each as a line that import_rows takes: call it again with the last id until nothing comes. p_kind: agent, entry, turn or edge. p_identity: only the rows of that raw key''s theme, and with a chat''s key of that person; the name of a sink takes the whole sink; NULL takes everything. p_vectors: with the vectors, an object of space id to numbers (the header says which model a space is). Persons of sinks are named by uuid, which only means them where memvec.persons_mark is the same. Settings, aliases, bindings and history are not rows: pg_dump moves those too. Errors: MV001 unknown kind.';
REVOKE ALL ON FUNCTION memvec.export_rows FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.export_rows TO memvec_admin;
