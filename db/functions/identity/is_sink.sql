-- Sinks collect traffic that no other theme may read: direct messages, group chats, benchmarks.
CREATE OR REPLACE FUNCTION memvec.is_sink(p_agent_identity text)
RETURNS boolean
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN p_agent_identity IN ('whatsapp-dm', 'external-group', '_bench');

COMMENT ON FUNCTION memvec.is_sink IS
'Returns whether a theme is a sink: whatsapp-dm (direct messages of every platform), external-group (group chats), _bench (benchmarks).';
REVOKE ALL ON FUNCTION memvec.is_sink FROM public;
