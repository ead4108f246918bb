-- What looks like personal data or a secret in a text. What is found is taken out of the text before the next kind is looked for,
-- and so are the shapes that numbers of other kinds have (UUIDs, dates, times, addresses of machines, versions, hashes), so that
-- what is left as a phone number most likely is one. Every repetition is cheap for the regular expression engine: no text makes
-- it slow.
CREATE OR REPLACE FUNCTION memvec.find_pii(p_text text, p_kinds text [], p_pattern text, p_name boolean)
RETURNS TABLE (pii text, sample text, matches integer)
LANGUAGE plpgsql
IMMUTABLE
SECURITY DEFINER
ROWS 1
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
AS $$
DECLARE
    c_private_key CONSTANT text := '-----BEGIN [A-Z0-9 ]*PRIVATE KEY';
    c_password_in_url CONSTANT text := '[a-z][a-z0-9+.-]+://[^\s:/?#@"''<>]*:(?!\[redacted|\*{3}|\$|\{|<)[^\s"''<>/@]+@';
    -- What a token cannot be without: much cheaper to look for.
    c_hint CONSTANT text := 'sk-|k_(?:live|test)_|whsec_|gh[pousr]_|github_pat_|gl(?:pat|dt|rt|cbt|ptt|ft|soat)-|xox|xapp-|AKIA|ASIA|ABIA'
        || '|ACCA|AIza|ya29|GOCSPX-|npm_|pypi-|hf_|gsk_|fw_|r8_|lin_api_|ntn_|xai-|nvapi-|pplx-|tvly-|_v1_|dckr_|shp(?:at|ca|pa|ss)_|SG\.'
        || '|hv[sbr]\.|AGE-SECRET|eyJ|:AA';
    c_token CONSTANT text := '(?<![A-Za-z0-9])(?:'
        || 'sk-[A-Za-z0-9_-]{16,}|[srp]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{16,}'
        || '|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{16,}'
        || '|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])'
        || '|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{30,}'
        || '|pypi-[A-Za-z0-9_-]{40,}|(?:hf|gsk|fw|r8|lin_api|ntn)_[A-Za-z0-9]{20,}|(?:xai|nvapi|pplx|tvly)-[A-Za-z0-9_-]{16,}'
        || '|do[op]_v1_[a-f0-9]{40,}|dckr_pat_[A-Za-z0-9_-]{20,}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{20,}'
        || '|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|hv[sbr]\.[A-Za-z0-9_-]{20,}|AGE-SECRET-KEY-1[A-Z0-9]{40,}'
        || '|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}|[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-]))';
    c_secret_word CONSTANT text := 'pass|pwd|secret|key|token|credential|kennwort|contraseña|пароль|bearer|authorization';
    -- A name of a secret, then a value that stands for itself: with a digit, and neither masked nor a reference.
    c_assignment CONSTANT text := '(?:pass(?:word|wd|phrase)?|pwd|secret|api[-_ ]?key|access[-_ ]?key|private[-_ ]?key|token'
        || '|credentials?|passwort|kennwort|contraseña|пароль|bearer|authorization)["''`*_]{0,3}\s{0,4}(?:[:=]|\m(?:is|ist|es|lautet)\M|(?<=bearer))'
        || '\s{0,4}["''`]?(?:(?:bearer|basic|token)\s+)?(?!\[redacted|\*{3}|\.{3}|<|\$|\{|%|env|os\.)(?=[^\s"''`,;]*[0-9])[^\s"''`,;<>]{6,}';
    c_email CONSTANT text := '(?<![\w.%+/-])[\w.%+-]+@(?:[\w-]+\.)+[a-z]{2,}(?![\w-]|[.:][\w/~])';
    -- Addresses of chats are numbers, "files" with an @ are no addresses.
    c_no_email CONSTANT text := '@(?:s\.whatsapp\.net|c\.us|g\.us|lid)$|^git@'
        || '|\.(?:png|jpe?g|gif|svg|webp|ico|css|js|mjs|ts|tsx|json|py|md|txt|html?|ya?ml|toml|sql|sh|conf|service|timer|socket|target|mount|local)$';
    c_card CONSTANT text := '(?<![\w.,+/-])(?:[3-6][0-9]{15}|[3-6][0-9]{3}(?:(?: [0-9]{4}){3}|(?:-[0-9]{4}){3})|3[47][0-9]{2}(?:[0-9]{11}| [0-9]{6} [0-9]{5}|-[0-9]{6}-[0-9]{5}))(?![\w]|[.,-][0-9])';
    c_innocent CONSTANT text := '[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}'
        || '|(?<![0-9])(?:19|20)[0-9]{2}[-./_][0-9]{1,2}[-./_][0-9]{1,2}(?![0-9])(?:[ t_-]{1,2}[0-9]{1,2}[:.-]?[0-9]{2}(?:[:.-]?[0-9]{2}(?:[.,][0-9]+)?)?)?(?:z|[+-][0-9]{2}:?[0-9]{2})?'
        || '|(?<![0-9])[0-9]{1,2}[-./][0-9]{1,2}[-./](?:19|20)[0-9]{2}(?![0-9])'
        || '|(?<![0-9])(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:[ t_-]?[0-9]{4}(?:[0-9]{2}(?:[0-9]{3,6})?)?)?z?(?![0-9])'
        || '|(?<![0-9.])v?[0-9]+(?:\.[0-9]+){3,}(?![0-9])|(?<![0-9.])v?[0-9]{1,2}(?:\.[0-9]+){2}(?![0-9])|[0-9]+[.,][0-9]{5,}'
        || '|(?<![0-9a-z])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,}(?![0-9a-z])|[0-9]{16,}'
        || '|(?<![0-9])1[0-9]{9}(?:[0-9]{3})?(?![0-9])|0x[0-9a-f]+';
    c_separator CONSTANT text := '[ ()./\u2010-\u2015-]';
    c_number CONSTANT text := '\(?\+? ?\(?[0-9](?:' || c_separator || '{0,3}[0-9]){6,14}(?![0-9])';
    c_marked CONSTANT text := '(?:(?<![[:alpha:]])(?:tel|telephone|phone|mobile|fax|sms|whatsapp|imessage|viber|telefon|telefono|teléfono|téléphone|handy|handynummer|mobil'
        || '|телефон|(?:my|his|her|their|our|the) (?:cell|number))(?: ?(?:number|numbers|no|nr|nummer|is|ist|at))*[^[:alnum:]]{0,5}'
        || '|(?:signal|telegram) ?: ?|(?:call|text|ring|reach|dial|message)(?: (?:me|him|her|us|them))? (?:at|on|under) )';
    c_international CONSTANT text := '(?<![0-9a-z])\+ ?\(?[1-9](?:' || c_separator || '{0,3}[0-9]){8,14}(?![0-9])'
        || '|(?<![\w.,])00[1-9][0-9]{0,2}[ -][0-9](?:[ -]?[0-9]){6,11}(?![0-9])';
    c_national CONSTANT text := '(?<![\w.,+/-])(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[ .-])[0-9]{3}[ .-][0-9]{4}(?!\w|[.,-][0-9])'
        || '|(?<![\w.,/-])\(?0[1-9][0-9]{1,4}\)?[ /-]{1,3}[0-9]{3,4}[ -]?[0-9]{3,6}(?!\w|[.,/-][0-9])'
        || '|(?<![\w.,/-])0[1-9](?:[ .][0-9]{2}){4}(?!\w|[.,/-][0-9])';
    c_unit CONSTANT text := ' ?(?:[kmgt]?i?b|bytes?|rows?|lines?|tokens?|records?|requests?|hits?|[mnuµ]?s|seconds?|items?|users?|times|cycles|%)\M';
    c_bare CONSTANT text := '(?<![\w.,/=#+])(?:1[2-9][0-9]{9}|[2-9][0-9]{11,12}|0[1-9][0-9]{8,9}|00[1-9][0-9]{9,12})(?!\w|[.,/-][0-9]|' || c_unit || ')';
    c_in_name CONSTANT text := '(?<![0-9.])[0-9](?:[ .-]?[0-9]){8,14}(?![0-9])';
    c_plain CONSTANT text := CASE WHEN p_name THEN c_in_name ELSE c_bare END;
    v_text text := p_text;
    v_found text[];
    v_marked text[];
BEGIN
    IF p_pattern IS NOT NULL AND (p_kinds IS NULL OR 'pattern' = ANY (p_kinds)) THEN
        SELECT array_agg(m.match) INTO v_found
          FROM (SELECT regexp_substr(p_text, p_pattern, 1, n, 'i') AS match
                  FROM generate_series(1, regexp_count(p_text, p_pattern, 1, 'i')) AS n) AS m
         WHERE m.match <> '';
        IF v_found IS NOT NULL THEN
            RETURN QUERY VALUES (
                'pattern', CASE WHEN length(v_found[1]) > 4 THEN left(v_found[1], 1) ELSE '' END || '***', cardinality(v_found)
            );
        END IF;
    END IF;
    IF p_kinds <@ '{pattern}' THEN
        RETURN;
    END IF;
    IF octet_length(v_text) <> char_length(v_text) THEN
        v_text := translate(normalize(v_text, NFKC), '٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹', '01234567890123456789');
    END IF;

    IF v_text ~ '[0-9]|://|PRIVATE KEY|[_-][A-Za-z]{10}' THEN
        v_found := NULL;
        IF v_text ~ c_private_key OR v_text ~ c_hint THEN
            SELECT array_agg(m.match[1]) INTO v_found
              FROM regexp_matches(v_text, '(' || c_private_key || '|' || c_token || ')', 'g') AS m (match);
        END IF;
        IF position('://' IN v_text) > 0 THEN
            SELECT v_found || array_agg(m.match[1]) INTO v_found
              FROM regexp_matches(v_text, '(' || c_password_in_url || ')', 'gi') AS m (match);
        END IF;
        IF v_text ~* c_secret_word THEN
            SELECT v_found || array_agg(m.match[1]) INTO v_found
              FROM regexp_matches(v_text, '(' || c_assignment || ')', 'gi') AS m (match)
             WHERE m.match[1] !~ c_token;
        END IF;
        IF v_found IS NOT NULL THEN
            IF p_kinds IS NULL OR 'key' = ANY (p_kinds) THEN
                RETURN QUERY VALUES ('key', coalesce(
                    CASE WHEN v_found[1] ~ c_private_key THEN 'private key' END,
                    substring(v_found[1] FROM '^[a-z]+://') || '***',
                    substring(v_found[1] FROM '(?i)^[[:alpha:]_ -]{3,14}(?=["''`*_]{0,3}\s{0,4}(?:[:=]|is\M))') || '***',
                    substring(v_found[1] FROM '^[A-Za-z0-9]{2,6}[-_.](?:(?:live|test|pat)_)?') || '***',
                    left(v_found[1], 3) || '***'
                ), cardinality(v_found));
            END IF;
            FOR i IN 1..cardinality(v_found) LOOP
                v_text := replace(v_text, v_found[i], ' # ');
            END LOOP;
        END IF;
    END IF;

    IF position('@' IN v_text) > 0 THEN
        SELECT array_agg(m.match[1]) INTO v_found
          FROM regexp_matches(v_text, '(' || c_email || ')', 'gi') AS m (match)
         WHERE m.match[1] !~* c_no_email;
        IF v_found IS NOT NULL THEN
            IF p_kinds IS NULL OR 'email' = ANY (p_kinds) THEN
                RETURN QUERY VALUES (
                    'email', regexp_replace(v_found[1], '^(.)[^@]*@(.).*(\.[^.]+)$', '\1***@\2***\3'), cardinality(v_found)
                );
            END IF;
            v_text := regexp_replace(v_text, c_email, ' # ', 'gi');
        END IF;
    END IF;

    IF v_text !~ '(?:[0-9][^[:alpha:]0-9]{0,3}){7}' THEN
        RETURN;
    END IF;
    SELECT array_agg(m.match) INTO v_found
      FROM (SELECT regexp_substr(v_text, c_card, 1, n) AS match FROM generate_series(1, regexp_count(v_text, c_card)) AS n) AS m
     WHERE memvec.passes_luhn(regexp_replace(m.match, '[^0-9]', '', 'g'));
    IF v_found IS NOT NULL THEN
        IF p_kinds IS NULL OR 'card' = ANY (p_kinds) THEN
            RETURN QUERY VALUES ('card', '************' || right(v_found[1], 4), cardinality(v_found));
        END IF;
        FOR i IN 1..cardinality(v_found) LOOP
            v_text := replace(v_text, v_found[i], ' # ');
        END LOOP;
    END IF;
    IF p_kinds IS NOT NULL AND 'phone' <> ALL (p_kinds) THEN
        RETURN;
    END IF;

    -- What says that it is a number comes first: it may have the shape of something else.
    IF v_text ~ c_number AND v_text ~* c_marked THEN
        SELECT array_agg(m.match[1]) INTO v_marked
          FROM regexp_matches(v_text, c_marked || '(' || c_number || ')', 'gi') AS m (match);
        FOR i IN 1..coalesce(cardinality(v_marked), 0) LOOP
            v_text := replace(v_text, v_marked[i], ' # ');
        END LOOP;
    END IF;
    IF v_text ~ c_international OR v_text ~ c_national OR v_text ~ c_plain THEN
        SELECT array_agg(m.match[1]) INTO v_found
          FROM regexp_matches(
                   regexp_replace(v_text, c_innocent, ' # ', 'gi'),
                   '(' || c_international || '|' || c_national || '|' || c_plain || ')', 'gi'
               ) AS m (match);
    ELSE
        v_found := NULL;
    END IF;
    v_found := v_marked || v_found;
    IF v_found IS NOT NULL THEN
        RETURN QUERY VALUES ('phone', regexp_replace(left(v_found[1], -2), '[0-9]', '*', 'g') || right(v_found[1], 2),
                             cardinality(v_found));
    END IF;
END;
$$;

COMMENT ON FUNCTION memvec.find_pii IS
'Returns a row for each kind of personal data or secret in a text: pii (phone, email, card, key, or pattern for p_pattern), a sample in which the value is masked, and how many there are. p_kinds: only these, NULL for all. p_name: the text is a name or an id, in which any long number counts. Internal.';
REVOKE ALL ON FUNCTION memvec.find_pii FROM public;
