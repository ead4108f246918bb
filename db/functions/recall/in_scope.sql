-- The isolation predicate, the only one: every read of entries, turns and vectors goes through it. A plain SQL expression
-- so that the planner inlines it and finds the indexes; it must keep neither SECURITY DEFINER nor a SET clause.
CREATE OR REPLACE FUNCTION memvec.in_scope(
    p_agent_identity text,
    p_row_person uuid,
    p_own text,
    p_person uuid,
    p_others boolean,
    p_themes text []
)
RETURNS boolean
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN (
    p_agent_identity = p_own
    AND ((p_person IS NULL AND p_row_person IS NULL) OR p_row_person = p_person)
    AND NOT (p_person IS NULL AND p_own IN ('whatsapp-dm', 'external-group'))
) OR (
    p_others
    AND p_row_person IS NULL
    AND p_agent_identity NOT IN ('whatsapp-dm', 'external-group', '_bench')
    AND (p_themes IS NULL OR p_agent_identity = ANY (p_themes))
);

COMMENT ON FUNCTION memvec.in_scope IS
'Returns whether a row of (p_agent_identity, p_row_person) may be seen by a caller who acts as p_own and p_person, and, with p_others, also sees ordinary themes: those in p_themes, or all when that is NULL. Rows of a person are seen by that person only. Internal.';
REVOKE ALL ON FUNCTION memvec.in_scope FROM public;
