CREATE VIEW memvec.v_memory_entries WITH (security_barrier = true) AS
SELECT
    id,
    agent_identity,
    person_key,
    target,
    content,
    metadata,
    embed,
    created_at,
    updated_at,
    array(SELECT s.source FROM memvec.entry_sources AS s WHERE s.entry_id = m.id ORDER BY s.source) AS sources
FROM memvec.memory_entries AS m;

COMMENT ON VIEW memvec.v_memory_entries IS 'The notes, with the homes whose files hold them. person_key tells the people of one sink apart without naming them.';
REVOKE ALL ON memvec.v_memory_entries FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT SELECT ON memvec.v_memory_entries TO memvec_admin;
