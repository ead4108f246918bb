-- One contact is one person however the host spells the key: the agent's namespace, the marker dm, WhatsApp's address and
-- device suffixes and the thread of a direct chat are not part of who somebody is. Where a platform's ids hold colons
-- themselves the thread is kept: two persons for one contact is a nuisance, one person for two contacts is a leak. So a
-- rule below applies only where what it takes away cannot be part of an id.
CREATE OR REPLACE FUNCTION memvec.person_key(p_key text, p_kind text)
RETURNS uuid
LANGUAGE plpgsql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
AS $$
DECLARE
    -- Platforms that know people by phone number, however it is set.
    c_phone CONSTANT text := '(whatsapp|whatsapp_cloud|whatsapp_business|sms|signal|imessage|bluebubbles|viber|phone|tel|mobile|cell|telegram)';
    v_person text := regexp_replace(p_key, '^agent *:[^:]*: *', '');
    v_marked boolean;
    v_secret bytea;
BEGIN
    IF p_kind NOT IN ('direct', 'group') THEN
        RETURN NULL;
    END IF;
    v_person := regexp_replace(v_person, ' *: *', ':', 'g');
    IF p_kind = 'direct' THEN
        v_person := regexp_replace(
            v_person, '(^|:)(\+?[0-9]+)(:[0-9]{1,3})?@(s\.whatsapp\.net|c\.us)(?=:|$)', '\1\2'
        );
        v_marked := v_person ~ '^[a-z0-9_]+:(dm|direct|p2p|private):';
        v_person := regexp_replace(v_person, '^([a-z0-9_]+):(dm|direct|p2p|private):', '\1:');
        v_person := regexp_replace(
            v_person,
            '^(whatsapp|whatsapp_cloud|whatsapp_business|signal|sms|imessage|bluebubbles|phone|tel|email)'
            || ':(\+?[0-9][0-9 ().-]{4,}|[^:@\s]+@[^:@\s]+):.*$',
            '\1:\2'
        );
        -- The host writes agent:<ns>:<platform>:dm:<chat>[:<thread>]. Without the marker the first id may be a server's.
        IF v_marked THEN
            v_person := regexp_replace(v_person, '^(telegram|discord):(\+?[0-9][0-9 ().-]{4,}):.*$', '\1:\2');
            v_person := regexp_replace(v_person, '^slack:([a-z](?=[a-z0-9]*[0-9])[a-z0-9]{6,}):.*$', 'slack:\1');
        END IF;
        IF v_person ~ ('^(' || c_phone || ':)?\+? ?\(?[0-9][0-9 ()./\u2010-\u2015-]*$') THEN
            v_person := regexp_replace(v_person, '[^0-9a-z_:]', '', 'g');
        END IF;
    END IF;
    SELECT s.value INTO STRICT v_secret FROM memvec.secrets AS s WHERE s.name = 'person_key';
    RETURN encode(
        substr(sha256(v_secret || sha256(v_secret || convert_to(v_person, 'UTF8'))), 1, 16), 'hex'
    )::uuid;
END;
$$;

COMMENT ON FUNCTION memvec.person_key IS
'Returns the person that a cleaned chat key of kind direct or group stands for: the first 16 bytes of a nested SHA-256 keyed with the database''s secret, as uuid; NULL for other kinds. The key itself is never stored. Internal.';
REVOKE ALL ON FUNCTION memvec.person_key FROM public;
