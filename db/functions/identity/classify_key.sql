-- The rules that keep people out of theme names. Order matters: a sink's own name, the host's agent:… form, a platform with a
-- chat type, a bare dm marker, personal data anywhere in the key, benchmarks; what is left is an ordinary theme.
CREATE OR REPLACE FUNCTION memvec.classify_key(p_key text)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
AS $$
DECLARE
    c_direct CONSTANT text[] := '{dm,direct,p2p,private}';
    c_group CONSTANT text[] :=
        '{group,groups,supergroup,channel,thread,forum,topic,room,space,webhook,broadcast,meeting}';
    c_platform CONSTANT text := '^(a2a|bluebubbles|buzz|dingtalk|discord|email|feishu|google_chat|googlechat|homeassistant'
        || '|imessage|instagram|irc|kakao|lark|line|mastodon|matrix|mattermost|messenger|msgraph_webhook|nostr|ntfy|photon'
        || '|qqbot|raft|relay|signal|simplex|skype|slack|sms|teams|telegram|threema|twitter|viber|wechat|wecom'
        || '|wecom_callback|weixin|whatsapp|whatsapp_cloud|whatsapp_business|xmpp|yuanbao|zulip)$';
    c_bench CONSTANT text := '^(_bench|(.+-)?bench(-ws)?)$';
    c_address CONSTANT text := '^(cell|mail|mailto|mobile|phone|tel)$';
    -- However a phone number is set: spaces, brackets, slashes, dots, dashes of any length.
    c_set CONSTANT text := '[ ()./\u2010-\u2015-]';
    c_number CONSTANT text := '([0-9]' || c_set || '*){7}';
    -- Digits of other scripts make a phone number too.
    v_key text := CASE
        WHEN octet_length(p_key) = char_length(p_key) THEN p_key
        ELSE translate(
            p_key,
            '٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹०१२३४५६७८९০১২৩৪৫৬৭৮৯',
            '0123456789012345678901234567890123456789'
        )
    END;
    v_segments text[];
    v_platform_at integer;
    v_next text;
    v_personal boolean;
BEGIN
    IF v_key IS NULL OR v_key = 'default' THEN
        RETURN 'default';
    END IF;
    IF v_key = 'whatsapp-dm' THEN
        RETURN 'direct';
    ELSIF v_key = 'external-group' THEN
        RETURN 'group';
    END IF;
    -- The common case, a plain name, needs none of the rules below: they all want a colon, an at sign or digits.
    IF v_key !~ ('[:@+]|([0-9]' || c_set || '*){6}') THEN
        RETURN CASE WHEN v_key ~ c_bench THEN 'bench' ELSE 'theme' END;
    END IF;

    SELECT array_agg(memvec.blankless(s.segment) ORDER BY s.position)
      INTO v_segments
      FROM unnest(string_to_array(v_key, ':')) WITH ORDINALITY AS s (segment, position);

    IF v_segments[1] = 'agent' AND cardinality(v_segments) >= 4 THEN
        RETURN CASE WHEN v_segments[4] = ANY (c_direct) THEN 'direct' ELSE 'group' END;
    END IF;

    SELECT min(s.position)
      INTO v_platform_at
      FROM unnest(v_segments) WITH ORDINALITY AS s (segment, position)
     WHERE s.segment ~ c_platform;
    v_next := v_segments[v_platform_at + 1];
    -- An ordinary name may hold a platform's name in the middle (desk:signal:main), not in front of a chat type.
    IF v_platform_at = 1 AND v_next = ANY (c_group) THEN
        RETURN 'group';
    END IF;
    IF v_next = ANY (c_direct) OR v_key ~ '(^|:) *dm *:' THEN
        RETURN 'direct';
    END IF;
    IF v_segments[1] ~ '^matrix$' AND v_next ~ '^!' OR v_segments[1] = 'slack' AND v_next ~ '^[cg](?=[a-z0-9]*[0-9])[a-z0-9]{6,}$'
        OR v_next ~ '^-[0-9]{5,}$' OR v_key ~ '@g\.us' THEN
        RETURN 'group';
    END IF;

    v_personal :=
        v_key ~ '[^\s:@]+@[^\s:@]+\.[^\s:@.]{2,}'
        OR v_key ~ '^[0-9]{9,15}$'
        OR v_key ~ '^(1[ .-]?)?[0-9]{3}[ .-][0-9]{3}[ .-][0-9]{4}$'
        OR v_key ~ ('\+ ?\(?' || c_number)
        OR v_key ~ ('^\(' || c_number)
        OR coalesce(v_next ~ '^\+?[0-9][0-9 ().-]{4,}$', false)
        OR coalesce(v_next ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$', false)
        OR v_segments[1] = 'slack' AND v_key ~ ': *[udw](?=[a-z0-9]*[0-9])[a-z0-9]{6,} *(:|$)'
        OR v_segments[1] = 'matrix' AND coalesce(v_next ~ '^@', false)
        OR v_segments[1] ~ c_address AND coalesce(v_segments[2] ~ '^\+?[0-9(][0-9 ().-]{4,}$', false);
    IF v_personal THEN
        RETURN CASE WHEN v_segments && c_group THEN 'group' ELSE 'direct' END;
    END IF;
    RETURN CASE WHEN v_key ~ c_bench THEN 'bench' ELSE 'theme' END;
END;
$$;

COMMENT ON FUNCTION memvec.classify_key IS
'Returns what a cleaned session key stands for: default, theme, direct (a person''s chat), group (a chat of several, also any unknown chat type of the host''s agent:<ns>:<platform>:<type> form) or bench. Internal.';
REVOKE ALL ON FUNCTION memvec.classify_key FROM public;
