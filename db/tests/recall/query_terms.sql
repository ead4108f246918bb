BEGIN;
SELECT plan(14);

SELECT is(memvec_tests.callers('memvec.query_terms'), '{}', 'internal');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.query_terms('words') $$, '42501', NULL, 'the runtime login may not call it');
RESET SESSION AUTHORIZATION;

SELECT is(memvec.query_terms('The rollback of the deployment'), '{rollback,deploy}', 'stop words are no terms, the rest is stemmed');
SELECT is(memvec.query_terms('rm -rf'), '{rm,rf}', 'a dash is not an operator');
SELECT is(memvec.query_terms('a & | ! ( ) : * <-> "build" NOT host'), '{build,host}', 'nothing is');
SELECT is(memvec.query_terms('what is it'), '{}', 'a question of stop words has no terms');
SELECT is(memvec.query_terms(NULL), '{}', 'no question neither');
SELECT is(memvec.query_terms(' %  \ -- '), '{}', 'punctuation neither');
SELECT is(memvec.query_terms('build build BUILD'), '{build}', 'a word counts once');
SELECT is(memvec.query_terms('记忆'), '{记忆}', 'the last character of a run is not asked for by itself');
SELECT is(memvec.query_terms('猫'), '{猫}', 'a single character is');
SELECT is(
    (SELECT cardinality(memvec.query_terms('build host ' || string_agg('word' || i, ' '))) FROM generate_series(1, 20000) AS i),
    64,
    'a paste of 20,000 words is cut to 64 terms'
);
SELECT is(
    memvec.query_terms('token ' || repeat('f0', 150)), ARRAY['token', repeat('f0', 150)], 'a long key is a term as any word'
);
SELECT ok(
    (SELECT memvec.query_terms('zebra apple ' || string_agg('word' || i, ' ')) @> '{zebra,appl}' FROM generate_series(1, 200) AS i),
    'the first words are kept'
);

SELECT * FROM finish();
ROLLBACK;
