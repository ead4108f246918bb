BEGIN;
SELECT plan(13);
SELECT memvec_tests.alone();

SELECT is(pg_get_function_arguments('memvec.stats'::regproc), '', 'takes nothing');
SELECT is(
    pg_get_function_result('memvec.stats'::regproc),
    'TABLE(agent_identity text, kind text, entries bigint, turns bigint, entries_embedded bigint, turns_embedded bigint, '
    'redacted bigint, last_write timestamp with time zone)', 'returns these columns'
);
SELECT volatility_is('memvec', 'stats', 'stable', 'is stable');
SELECT is_definer('memvec', 'stats', 'runs as its owner');
SELECT is(memvec_tests.callers('memvec.stats'), '{hermes,tap_admin,tap_reader}', 'runtime, reader and admin may call it');

SELECT memvec_tests.act_as('tap_embedder');
SELECT throws_ok($$ SELECT * FROM memvec.stats() $$, '42501', NULL, 'an embedder is refused');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('stats', 8) AS space \gset
SELECT memvec.add_embedding_space('stats other', 8) AS other \gset
RESET SESSION AUTHORIZATION;
SELECT set_config('stats.space', :'space', true), set_config('stats.other', :'other', true);
SELECT memvec_tests.act_as('hermes');
DO $$
BEGIN
    PERFORM memvec.add_memory('stats', 'memory', 'one', p_embedding => memvec_tests.vec(1), p_space => current_setting('stats.space')::int);
    PERFORM memvec.add_memory('stats', 'memory', 'one', p_embedding => memvec_tests.vec(1), p_space => current_setting('stats.other')::int);
    PERFORM memvec.add_memory('stats', 'user', 'two [redacted], password=[redacted], redacted');
    PERFORM memvec.append_turn('stats', 's', 'user', 'old turn', p_ts => '2026-01-01Z');
    PERFORM memvec.append_turn('stats-turns', 's', 'user', 'old turn', p_ts => '2026-01-01Z', p_embedding => memvec_tests.vec(1),
                               p_space => current_setting('stats.other')::int);
    PERFORM memvec.add_memory('agent:main:telegram:dm:stats1', 'memory', 'private');
    PERFORM memvec.add_memory('agent:main:telegram:dm:stats2', 'memory', 'private');
    PERFORM memvec.register_agent('stats-silent');
END
$$;
SELECT results_eq(
    $$ SELECT * FROM memvec.stats() WHERE agent_identity LIKE 'stats%' OR agent_identity = 'whatsapp-dm' $$,
    $$ VALUES ('stats', 'theme', 2::bigint, 1::bigint, 1::bigint, 0::bigint, 2::bigint, now()),
              ('stats-silent', 'theme', 0, 0, 0, 0, 0, NULL),
              ('stats-turns', 'theme', 0, 1, 0, 1, 0, '2026-01-01Z'),
              ('whatsapp-dm', 'direct', 2, 0, 0, 0, 0, now()) $$,
    'a row for each theme; a row with vectors in two spaces counts once; masked secrets are counted; a sink is one row'
);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_reader');
SELECT is((SELECT entries FROM memvec.stats() WHERE agent_identity = 'stats'), 2::bigint, 'a reader sees the same');
RESET SESSION AUTHORIZATION;

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.bind_role('tap_bound', 'stats');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT results_eq($$ SELECT agent_identity FROM memvec.stats() $$, $$ VALUES ('stats') $$, 'a bound role sees its own themes');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.bind_role('tap_bound', 'stats', true);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT ok((SELECT count(*) >= 4 FROM memvec.stats()), 'or all, when it may read all');
RESET SESSION AUTHORIZATION;

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.set_setting('require_binding', 'true');
SELECT ok((SELECT count(*) >= 4 FROM memvec.stats()), 'with require_binding an administrator still sees all');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_bound');
SELECT ok((SELECT count(*) >= 4 FROM memvec.stats()), 'a bound role that may read all too');
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');
SELECT is((SELECT count(*) FROM memvec.stats()), 0::bigint, 'but an unbound one nothing');

SELECT * FROM finish();
ROLLBACK;
