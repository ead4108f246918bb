CREATE VIEW memvec.v_conversations WITH (security_barrier = true) AS
SELECT
    id,
    agent_identity,
    person_key,
    session_id,
    parent_session_id,
    role,
    content,
    metadata,
    embed,
    ts
FROM memvec.conversations;

COMMENT ON VIEW memvec.v_conversations IS 'The chat turns. person_key tells the people of one sink apart without naming them.';
REVOKE ALL ON memvec.v_conversations FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT SELECT ON memvec.v_conversations TO memvec_admin;
