BEGIN;
SELECT plan(8);

SELECT is(memvec_tests.callers('memvec.cjk_bigrams'), '{}', 'internal');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.cjk_bigrams('记忆') $$, '42501', NULL, 'the runtime login may not call it');
RESET SESSION AUTHORIZATION;

SELECT set_eq($$ SELECT unnest(memvec.cjk_bigrams('部署方案')) $$, '{部署,署方,方案,案}'::text[], 'pairs, and the last character');
SELECT set_eq(
    $$ SELECT unnest(memvec.cjk_bigrams('go 部署 and 배포!')) $$, '{部署,署,배포,포}'::text[],
    'each run by itself: no pair crosses a border'
);
SELECT set_eq($$ SELECT unnest(memvec.cjk_bigrams('猫')) $$, '{猫}'::text[], 'a single character is itself');
SELECT set_eq($$ SELECT unnest(memvec.cjk_bigrams('売上を')) $$, '{売上,上を,を}'::text[], 'kana and kanji are one run');
SELECT set_eq(
    $$ SELECT unnest(memvec.cjk_bigrams(U&'\+020000\+020001')) $$, ARRAY[U&'\+020000\+020001', U&'\+020001'],
    'rare characters beyond the basic plane too'
);
SELECT is(memvec.cjk_bigrams('no such characters, naïve'), NULL, 'NULL when there are none');

SELECT * FROM finish();
ROLLBACK;
