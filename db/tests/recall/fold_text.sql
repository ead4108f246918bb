BEGIN;
SELECT plan(10);

SELECT is(memvec_tests.callers('memvec.fold_text'), '{}', 'internal');
SELECT memvec_tests.act_as('hermes');
SELECT throws_ok($$ SELECT memvec.fold_text('word') $$, '42501', NULL, 'the runtime login may not call it');
RESET SESSION AUTHORIZATION;

SELECT is(memvec.fold_text('Plain ASCII stays 1:1'), 'Plain ASCII stays 1:1', 'ASCII is left alone');
SELECT is(memvec.fold_text('Müller, São, naïve'), 'Muller, Sao, naive', 'accents are dropped, case is kept');
SELECT is(memvec.fold_text(U&'Mu\0308ller'), 'Muller', 'also when they are characters of their own');
SELECT is(memvec.fold_text('ｆｕｌｌ ① ﬁ'), 'full 1 fi', 'compatibility forms become ordinary characters');
SELECT is(memvec.fold_text('배포'), '배포', 'Hangul stays composed');
SELECT is(memvec.fold_text('ガが'), 'ガが', 'so do kana with a voiced mark');
SELECT is(memvec.fold_text('Й'), 'И', 'Cyrillic letters lose their marks like the Latin ones');
SELECT is(memvec.fold_text(NULL), NULL, 'NULL stays NULL');

SELECT * FROM finish();
ROLLBACK;
