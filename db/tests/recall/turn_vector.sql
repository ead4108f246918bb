BEGIN;
SELECT plan(10);
SELECT memvec_tests.alone();

SELECT is(memvec_tests.callers('memvec.turn_vector'), '{}', 'internal');
SELECT is(
    tsvector_to_array(memvec.turn_vector('Running late', '2026-03-09 23:30-05', 'english', 'FMDD FMMonth YYYY')),
    '{10,2026,late,march,run}', 'the words of a turn and of its date in UTC'
);
SELECT is(
    tsvector_to_array(memvec.turn_vector('Running late', '2026-03-09 23:30-05', 'english', '')), '{late,run}', 'blank: no date'
);
SELECT is(
    (SELECT count(*) FROM unnest(memvec.turn_vector(repeat('many words ', 40000), '2026-03-09Z', 'english', 'FMMonth')) AS w
      WHERE w.lexeme = 'march'),
    1::bigint, 'a long text keeps its date'
);

SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    PERFORM memvec.append_turn('dated', 's1', 'user', 'We took the blue one.', p_ts => '2026-03-09 10:00Z');
    PERFORM memvec.append_turn('dated', 's2', 'user', 'We took the red one.', p_ts => '2026-07-20 10:00Z');
    PERFORM memvec.append_turn('dated', 's3', 'user', 'At the end of time', p_ts => 'infinity');
END
$$;
CREATE FUNCTION pg_temp.found(p_query text)
RETURNS text[]
LANGUAGE sql
AS $$ SELECT array_agg(r.content) FROM memvec.recall_conversation('dated', p_query) AS r $$;
SELECT is(pg_temp.found('What did we take in March?'), '{We took the blue one.}', 'a turn is found by its month');
SELECT is((pg_temp.found('20 July, which did we?'))[1], 'We took the red one.', 'or by its day');
SELECT is(
    pg_temp.found('in the year ' || to_char(now() AT TIME ZONE 'UTC', 'YYYY') || ' at the end of time?') @> '{At the end of time}', true,
    'a turn without a usable time has that of its arrival'
);

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.set_setting('turn_date_words', '');
SELECT cmp_ok(memvec.reindex_search(0), '>=', 3::bigint, 'a change of the setting makes rows old');
SELECT memvec.reindex_search(10000);
SELECT memvec_tests.act_as('hermes');
SELECT is(pg_temp.found('What happened in March?'), NULL, 'and renewed they are found without their dates');
SELECT is(pg_temp.found('blue'), '{We took the blue one.}', 'and by their words as before');

SELECT * FROM finish();
ROLLBACK;
