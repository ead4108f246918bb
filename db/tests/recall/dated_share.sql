BEGIN;
SELECT plan(6);
SELECT memvec_tests.alone();

SELECT is(memvec_tests.callers('memvec.dated_share'), '{}', 'internal');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.dated_share('turn', NULL, NULL) $$, '42501', NULL, 'the runtime login may not call it');
DO $$
BEGIN
    FOR i IN 1..100 LOOP
        PERFORM memvec.append_turn(
            'dated_share', 's', 'user', 'turn ' || i, p_ts => '2001-01-01'::timestamptz + i * interval '1 day'
        );
        PERFORM memvec.add_memory('dated_share', 'memory', 'note ' || i);
    END LOOP;
END
$$;
RESET SESSION AUTHORIZATION;
UPDATE memvec.memory_entries SET updated_at = '2001-01-01'::timestamptz + substring(content FROM '[0-9]+')::int * interval '1 day'
 WHERE agent_identity = 'dated_share';
ANALYZE memvec.conversations, memvec.memory_entries;

SELECT results_eq(
    $$ SELECT memvec.dated_share(k.kind, NULL, NULL), memvec.dated_share(k.kind, '-infinity', 'infinity') > 0.9
       FROM unnest('{entry,turn}'::text[]) AS k (kind) $$,
    $$ VALUES (1::float8, true), (1, true) $$,
    'without bounds it is all'
);
SELECT is_empty(
    $$ SELECT k.kind, b.days, memvec.dated_share(k.kind, '2001-01-01', '2001-01-01'::timestamptz + make_interval(days => b.days)) AS share, t.rows
       FROM unnest('{entry,turn}'::text[]) AS k (kind), unnest('{0,1,10,50,100}'::int[]) AS b (days),
           LATERAL (SELECT count(*) AS rows, count(*) FILTER (WHERE m.seen < '2001-01-01'::timestamptz + make_interval(days => b.days)) AS held
                    FROM (SELECT updated_at AS seen FROM memvec.memory_entries WHERE k.kind = 'entry'
                          UNION ALL
                          SELECT ts FROM memvec.conversations WHERE k.kind = 'turn') AS m) AS t
       WHERE abs(memvec.dated_share(k.kind, '2001-01-01', '2001-01-01'::timestamptz + make_interval(days => b.days))
                 - t.held / t.rows::float8) > 0.05 $$,
    'it is near the true part'
);
SELECT is_empty(
    $$ SELECT k.kind, b.* FROM unnest('{entry,turn}'::text[]) AS k (kind),
           (VALUES (timestamptz 'infinity', timestamptz '-infinity'), ('2001-02-01', '2001-01-01'), ('infinity', NULL),
                   (NULL, '-infinity'), ('1901-01-01', '1901-01-02'), ('2901-01-01', NULL)) AS b (since, until)
       WHERE memvec.dated_share(k.kind, b.since, b.until) <> 0 $$,
    'bounds that nothing passes leave nothing'
);

-- One date for all of them is no step between bounds.
UPDATE memvec.memory_entries SET updated_at = '2001-01-01';
ANALYZE memvec.memory_entries;
SELECT ok(
    memvec.dated_share('entry', '2001-01-01', NULL) > 0.95 AND memvec.dated_share('entry', '2001-01-02', NULL) < 0.05,
    'nor does it matter how often a date comes'
);

SELECT * FROM finish();
ROLLBACK;
