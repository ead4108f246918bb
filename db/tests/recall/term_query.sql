BEGIN;
SELECT plan(8);

SELECT is(memvec_tests.callers('memvec.term_query'), '{}', 'internal');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.term_query('word') $$, '42501', NULL, 'the runtime login may not call it');
RESET SESSION AUTHORIZATION;

SELECT is(memvec.term_query('word'), '''word'''::tsquery, 'a term is taken as it stands');
SELECT is(memvec.term_query('a & b'), '''a & b'''::tsquery, 'an operator inside it is text');
SELECT ok(array_to_tsvector(ARRAY['it''s']) @@ memvec.term_query('it''s'), 'a quote is text');
SELECT ok(array_to_tsvector(ARRAY[E'c:\\temp']) @@ memvec.term_query(E'c:\\temp'), 'a backslash is text');
SELECT ok(array_to_tsvector(ARRAY['猫头']) @@ memvec.term_query('猫'), 'a single CJK character finds what begins with it');
SELECT ok(NOT array_to_tsvector(ARRAY['words']) @@ memvec.term_query('word'), 'anything else does not');

SELECT * FROM finish();
ROLLBACK;
