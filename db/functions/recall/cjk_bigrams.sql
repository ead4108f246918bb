-- Chinese, Japanese and Korean are written without the spaces that the parser needs, so each run of their characters is
-- indexed by overlapping pairs. The last character of a run also stands alone: together with prefix search that makes every
-- single character findable.
CREATE OR REPLACE FUNCTION memvec.cjk_bigrams(p_text text)
RETURNS text []
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN (
    SELECT array_agg(DISTINCT p.pair)
      FROM (SELECT c.letter || coalesce(lead(c.letter) OVER (PARTITION BY r.position ORDER BY c.position), '') AS pair
              FROM regexp_matches(
                       p_text, '[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+', 'g'
                   ) WITH ORDINALITY AS r (run, position),
                   string_to_table(r.run[1], NULL) WITH ORDINALITY AS c (letter, position)) AS p
);

COMMENT ON FUNCTION memvec.cjk_bigrams IS
'Returns the overlapping character pairs of each run of CJK or Hangul characters, with the last character of each run alone; NULL when there are none. Internal.';
REVOKE ALL ON FUNCTION memvec.cjk_bigrams FROM public;
