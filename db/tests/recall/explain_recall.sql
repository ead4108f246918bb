BEGIN;
SELECT plan(25);
SELECT memvec_tests.alone();

SELECT is(memvec_tests.callers('memvec.explain_recall'), '{hermes,tap_admin,tap_reader}', 'for whoever may recall');
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('explain_recall', 8) AS space \gset
SELECT set_config('explain.space', :'space', true);
SELECT memvec_tests.act_as('hermes');
DO $$
DECLARE
    v_space int := current_setting('explain.space');
BEGIN
    PERFORM set_config('explain.both', (memvec.add_memory('explain', 'memory', 'renewal period of the certificate',
                       p_embedding => memvec_tests.vec(1), p_space => v_space)).id::text, true);
    PERFORM set_config('explain.bare', (memvec.add_memory('explain', 'user', 'renewal only')).id::text, true);
    PERFORM set_config('explain.far', (memvec.add_memory('explain', 'memory', 'something else',
                       p_embedding => memvec_tests.vec_near(1, 0.2), p_space => v_space)).id::text, true);
    PERFORM set_config('explain.other', (memvec.add_memory('explain-other', 'memory', 'renewal period of the certificate')).id::text, true);
    PERFORM set_config('explain.mine', (memvec.add_memory('agent:main:telegram:dm:71', 'memory', 'renewal of mine')).id::text, true);
    PERFORM set_config('explain.theirs', (memvec.add_memory('agent:main:telegram:dm:72', 'memory', 'renewal of theirs')).id::text, true);
    PERFORM set_config('explain.turn', (memvec.append_turn('explain', 's1', 'user', 'renewal said aloud')).id::text, true);
END
$$;

CREATE FUNCTION pg_temp.why(
    p_row text, p_identity text = 'explain', p_kind text = 'entry', p_scope text = 'own', p_target text = NULL,
    p_floor real = NULL, p_exclude text = NULL, p_since timestamptz = NULL, p_query text = 'renewal period', p_limit int = 10
) RETURNS TABLE (step text, outcome text, rank int, score float8, candidates int, terms text[], detail text)
LANGUAGE sql
AS $$
    SELECT * FROM memvec.explain_recall(
        p_identity, current_setting('explain.' || p_row)::bigint, p_query, memvec_tests.vec(1),
        current_setting('explain.space')::int, p_kind, p_scope, p_target, p_limit, p_exclude_session => p_exclude,
        p_since => p_since, p_min_similarity => p_floor
    )
$$;

SELECT results_eq(
    $$ SELECT step, outcome, rank, candidates, terms FROM pg_temp.why('both') $$,
    $$ VALUES ('theme', 'passed', NULL::int, NULL::int, NULL::text[]), ('person', 'passed', NULL, NULL, NULL),
              ('target', 'passed', NULL, NULL, NULL), ('time', 'passed', NULL, NULL, NULL),
              ('vector', 'found', 1, 2, NULL), ('floor', 'not asked', NULL, NULL, NULL),
              ('words', 'found', 1, 2, '{renew,period}'), ('fused', 'found', 1, 3, NULL) $$,
    'a row that both legs found'
);
SELECT ok(
    (SELECT score > 0.99 FROM pg_temp.why('both') WHERE step = 'vector')
    AND (SELECT score FROM pg_temp.why('both') WHERE step = 'fused') = 2 / 11.0::float8, 'with its scores'
);
SELECT results_eq(
    $$ SELECT step, outcome, terms, detail FROM pg_temp.why('bare') WHERE step IN ('vector', 'words') $$,
    $$ VALUES ('vector', 'no vector', NULL::text[], 'the row has no vector in this space yet'),
              ('words', 'found', '{renew}', 'without period') $$,
    'a row without a vector, and the words that it lacks'
);
SELECT results_eq(
    $$ SELECT step, outcome, rank FROM pg_temp.why('far', p_floor => 0.5) WHERE step IN ('vector', 'floor', 'words', 'fused') $$,
    $$ VALUES ('vector', 'found', 2), ('floor', 'removed', NULL), ('words', 'missed', NULL), ('fused', 'missed', NULL) $$,
    'a row below the floor'
);
SELECT results_eq(
    $$ SELECT step, outcome FROM pg_temp.why('both', p_target => 'user') WHERE outcome = 'removed' $$,
    $$ VALUES ('target', 'removed'), ('vector', 'removed'), ('words', 'removed'), ('fused', 'removed') $$,
    'a row of the other target'
);
SELECT results_eq(
    $$ SELECT step FROM pg_temp.why('both', p_since => now() + interval '1 s') WHERE outcome = 'removed' LIMIT 1 $$,
    $$ VALUES ('time') $$, 'a row outside the time'
);
SELECT results_eq(
    $$ SELECT step FROM pg_temp.why('turn', p_kind => 'turn', p_exclude => 's1') WHERE outcome = 'removed' LIMIT 1 $$,
    $$ VALUES ('session') $$, 'a turn of a session that is left out'
);
SELECT results_eq(
    $$ SELECT step, outcome, rank FROM pg_temp.why('turn', p_kind => 'turn') WHERE step IN ('session', 'words', 'fused') $$,
    $$ VALUES ('session', 'passed', NULL::int), ('words', 'found', 1), ('fused', 'found', 1) $$, 'a turn'
);
SELECT results_eq(
    $$ SELECT step FROM pg_temp.why('other') WHERE outcome = 'removed' LIMIT 1 $$, $$ VALUES ('theme') $$,
    'a row of another theme that the caller may read'
);
SELECT results_eq(
    $$ SELECT outcome, rank, detail FROM pg_temp.why('other', p_scope => 'all') WHERE step = 'fused' $$,
    $$ VALUES ('copy found', 1, 'the same text is shown as row ' || current_setting('explain.both')) $$,
    'a text that another row stands for'
);
SELECT results_eq(
    $$ SELECT outcome, rank, detail FROM pg_temp.why('bare', p_limit => 1) WHERE step = 'fused' $$,
    $$ VALUES ('missed', 3, 'beyond the limit of 1') $$, 'a row beyond the limit'
);
SELECT results_eq(
    $$ SELECT step, outcome FROM memvec.explain_recall('explain', current_setting('explain.both')::bigint, 'what is it')
       WHERE step IN ('vector', 'words') $$,
    $$ VALUES ('vector', 'not asked'), ('words', 'not asked') $$, 'a question of nothing'
);

-- Rows that one leg hands over and the other does not (rrf_depth), and a row that stands for copies deeper in the leg

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.set_setting('rrf_depth', '10');
SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    FOR i IN 1..30 LOOP
        PERFORM memvec.add_memory('explain-deep', 'memory', repeat('renewal ', i) || i, p_embedding => memvec_tests.vec_near(1, 1 - i / 50.0),
                                  p_space => current_setting('explain.space')::int);
        PERFORM memvec.append_turn('explain-deep', 's' || i, 'user', 'renewal renewal of all');
    END LOOP;
    FOR i IN 1..3 LOOP
        PERFORM memvec.append_turn('explain-deep', 'last', 'user', 'renewal of much else ' || i);
    END LOOP;
END
$$;
CREATE FUNCTION pg_temp.agreement(p_limit int) RETURNS TABLE (place bigint, score float8, vector_rank int, text_rank int)
LANGUAGE sql
AS $$
    SELECT max(e.rank) FILTER (WHERE e.step = 'fused' AND e.outcome = 'found'), max(e.score) FILTER (WHERE e.step = 'fused'),
           min(e.rank) FILTER (WHERE e.step = 'vector'), min(e.rank) FILTER (WHERE e.step = 'words')
      FROM memvec.recall_memory('explain-deep', 'renewal period', memvec_tests.vec(1), current_setting('explain.space')::int, p_limit => p_limit)
           WITH ORDINALITY AS r (id, a, b, c, d, e, f, g, h, i, j, k, place),
           memvec.explain_recall('explain-deep', r.id, 'renewal period', memvec_tests.vec(1), current_setting('explain.space')::int,
                                 p_limit => p_limit) AS e
     GROUP BY r.place
     ORDER BY r.place
$$;
SELECT is(
    (SELECT array_agg(ROW(a.place, a.score, a.vector_rank, a.text_rank)::text) FROM pg_temp.agreement(10) AS a),
    (SELECT array_agg(ROW(r.place, r.rrf_score, r.vector_rank, r.text_rank)::text)
     FROM memvec.recall_memory('explain-deep', 'renewal period', memvec_tests.vec(1), current_setting('explain.space')::int)
          WITH ORDINALITY AS r (id, a, b, c, d, e, f, g, rrf_score, vector_rank, text_rank, k, place)),
    'place, score and ranks are those of the recall'
);
SELECT is(
    (SELECT count(*) FROM memvec.recall_conversation('explain-deep', 'renewal', p_limit => 4)), 4::bigint, 'turns beyond the copies are found'
);
SELECT results_eq(
    $$ SELECT e.step, e.outcome, e.score > 0
         FROM memvec.recall_conversation('explain-deep', 'renewal', p_limit => 4) AS r,
              memvec.explain_recall('explain-deep', r.id, 'renewal', p_kind => 'turn', p_limit => 4) AS e
        WHERE r.session_id = 'last' AND e.step IN ('words', 'fused') $$,
    $$ SELECT s.step, 'found', true FROM generate_series(1, 3), (VALUES ('words'), ('fused')) AS s (step) $$, 'and explained as found'
);
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.set_setting('rrf_depth', '200');
SELECT memvec_tests.act_as('hermes');

-- Who may not see a row

SELECT results_eq(
    $$ SELECT step, outcome FROM pg_temp.why('mine', 'agent:main:telegram:dm:71') WHERE step IN ('theme', 'person', 'words') $$,
    $$ VALUES ('theme', 'passed'), ('person', 'passed'), ('words', 'found') $$, 'one''s own row of a sink'
);
SELECT is_empty($$ SELECT * FROM pg_temp.why('theirs', 'agent:main:telegram:dm:71') $$, 'another person''s row is no row');
SELECT is_empty($$ SELECT * FROM pg_temp.why('theirs', 'whatsapp-dm') $$, 'nor is it one for the sink''s own name');
SELECT is_empty(
    $$ SELECT s.scope FROM unnest('{own,all,explain-other}'::text[]) AS s (scope), pg_temp.why('mine', p_scope => s.scope) $$,
    'nor for an ordinary theme in any scope'
);
SELECT is_empty(
    $$ SELECT * FROM memvec.explain_recall('explain', 0, 'renewal') $$, 'just as an id that nobody has'
);
SELECT throws_ok(
    $$ SELECT memvec.explain_recall('explain', 1, p_kind => 'note') $$, 'MV001', NULL, 'there are entries and turns'
);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.bind_role('tap_bound', 'explain-other');
SELECT memvec_tests.act_as('tap_bound');
SELECT throws_ok(
    $$ SELECT * FROM pg_temp.why('both') $$, 'MV002', NULL, 'a bound login asks as its own theme only'
);
SELECT is_empty($$ SELECT * FROM pg_temp.why('both', 'explain-other', p_scope => 'all') $$, 'and sees no other');
SELECT is(
    (SELECT w.outcome FROM pg_temp.why('other', 'explain-other') AS w WHERE w.step = 'words'), 'found', 'but its own'
);

SELECT * FROM finish();
ROLLBACK;
