-- Session keys reach us in every spelling: full-width letters, composed and decomposed accents, invisible characters.
-- Two spellings of one name must be one theme, so all comparisons happen on the cleaned key. Invisible characters go first:
-- one between a letter and its accent would keep the two from being composed.
CREATE OR REPLACE FUNCTION memvec.clean_key(p_raw text)
RETURNS text
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN memvec.blankless(
    lower(
        normalize(
            regexp_replace(
                p_raw,
                '[\u0001-\u001f\u007f-\u009f\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]',
                '',
                'g'
            ),
            NFKC
        ) COLLATE memvec.folding
    )
);

COMMENT ON FUNCTION memvec.clean_key IS
'Returns a session key or theme name in the form that is compared: NFKC, without control and zero-width characters, trimmed, lower-cased; NULL when blank.';
REVOKE ALL ON FUNCTION memvec.clean_key FROM public;
