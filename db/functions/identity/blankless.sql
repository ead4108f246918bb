-- What "blank" means, everywhere: text of nothing but the characters that Python's str.strip() removes.
CREATE OR REPLACE FUNCTION memvec.blankless(p_text text)
RETURNS text
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN nullif(
    btrim(
        p_text,
        U&'\0009\000A\000B\000C\000D\001C\001D\001E\001F\0020\0085\00A0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200A\2028\2029\202F\205F\3000'
    ),
    ''
);

COMMENT ON FUNCTION memvec.blankless IS
'Returns the text without white space at either end (the characters that Python''s str.strip() removes), or NULL when nothing is left. The one definition of "blank".';
REVOKE ALL ON FUNCTION memvec.blankless FROM public;
