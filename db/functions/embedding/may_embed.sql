CREATE OR REPLACE FUNCTION memvec.may_embed(
    p_work memvec.embedding_work,
    p_content_hash bytea,
    p_failed_before timestamptz,
    p_max_attempts integer
)
RETURNS boolean
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN p_work.content_hash <> p_content_hash  -- other words are a new chance
    OR p_work.leased_until <= now()
   AND p_work.attempts < p_max_attempts
   AND CASE WHEN p_work.failed_at IS NULL THEN true
            WHEN p_failed_before IS NOT NULL THEN p_work.failed_at < p_failed_before
            ELSE p_work.failed_at <= now() - least(
                interval '1 day', interval '1 minute' * power(2, least(p_work.attempts - 1, 11))
            )
       END;

COMMENT ON FUNCTION memvec.may_embed IS
'Returns whether a row that was claimed before may be claimed again: its lease is over, it has not failed too often, and it failed before p_failed_before or (when that is NULL) its pause is over. The pause is a minute after the first failure and doubles with each, up to a day. Internal.';
REVOKE ALL ON FUNCTION memvec.may_embed FROM public;
