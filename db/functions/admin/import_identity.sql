-- Whose is a row that comes from elsewhere? Its identity is a raw key, read as any other. Where the older system had already
-- collected chats under a sink's name, the key of the chat may have been kept beside it, or an export names the person; a row
-- of a sink without either belongs to nobody. Such a key can only tell whose row of a sink it is, never take it out of one.
CREATE OR REPLACE FUNCTION memvec.import_identity(
    p_identity text,
    p_raw_identity text,
    p_person uuid,
    OUT agent_identity text,
    OUT person_key uuid,
    OUT kind text,
    OUT reason text
)
RETURNS record
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_raw record;
    v_from_sink boolean := coalesce(memvec.is_sink(memvec.clean_key(p_identity)), false);
BEGIN
    -- Benchmark rows stay apart also where new ones are refused.
    SELECT c.agent_identity, c.person_key, c.kind, c.reason
      INTO agent_identity, person_key, kind, reason
      FROM memvec.canonical_identity(p_identity, p_bench_mode => 'bucket') AS c;
    IF kind NOT IN ('direct', 'group') OR NOT v_from_sink THEN
        RETURN;
    END IF;
    IF p_person IS NOT NULL THEN
        person_key := p_person;
        reason := 'person';
        RETURN;
    END IF;
    SELECT * INTO v_raw FROM memvec.canonical_identity(p_raw_identity);
    IF v_raw.kind IN ('direct', 'group') AND NOT memvec.is_sink(memvec.clean_key(p_raw_identity)) THEN
        agent_identity := v_raw.agent_identity;
        person_key := v_raw.person_key;
        kind := v_raw.kind;
        reason := v_raw.reason;
        RETURN;
    END IF;
    person_key := NULL;
    reason := 'nobody';
END;
$$;

COMMENT ON FUNCTION memvec.import_identity IS
'Returns the theme and person that an imported row belongs to, with kind and reason as in canonical_identity, or reason person (named by p_person, for rows of a sink only) or nobody (a sink''s row whose chat is not known: kept, never recalled). p_raw_identity: the chat key that was noted beside a sink''s name. Internal.';
REVOKE ALL ON FUNCTION memvec.import_identity FROM public;
