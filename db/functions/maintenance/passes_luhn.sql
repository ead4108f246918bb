CREATE OR REPLACE FUNCTION memvec.passes_luhn(p_digits text)
RETURNS boolean
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN (
    SELECT sum(CASE WHEN d.place % 2 = 1 THEN d.digit ELSE 2 * d.digit - CASE WHEN d.digit > 4 THEN 9 ELSE 0 END END) % 10 = 0
           AND count(DISTINCT d.digit) > 1
      FROM (SELECT n AS place, substr(reverse(p_digits), n, 1)::integer AS digit
              FROM generate_series(1, length(p_digits)) AS n) AS d
);

COMMENT ON FUNCTION memvec.passes_luhn IS
'Returns whether a string of digits ends in its Luhn check digit, as numbers of payment cards do; one digit repeated does not count. Internal.';
REVOKE ALL ON FUNCTION memvec.passes_luhn FROM public;
