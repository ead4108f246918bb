BEGIN;
SELECT plan(20);

-- Contract

SELECT is(
    pg_get_function_arguments('memvec.search_vector'::regproc), 'p_text text, p_language regconfig DEFAULT NULL::regconfig',
    'takes a text and a language'
);
SELECT is(pg_get_function_result('memvec.search_vector'::regproc), 'tsvector', 'returns a tsvector');
SELECT volatility_is('memvec', 'search_vector', 'stable', 'is stable: it reads a setting');
SELECT is_definer('memvec', 'search_vector', 'runs as its owner');
SELECT is(
    memvec_tests.callers('memvec.search_vector'), '{hermes,tap_admin,tap_reader}',
    'runtime, reader and admin may call it'
);

-- What a text is found by

SELECT memvec_tests.act_as('hermes');

SELECT is_empty(
    $$ SELECT t.content, t.question
       FROM (VALUES
           ('See docs/setup.md first', 'setup'),
           ('See docs/setup.md first', 'docs/setup.md'),
           ('edit app.config.yaml', 'config'),
           ('edit app.config.yaml', 'app.config.yaml'),
           ('db-01.internal.example.com:5432 refuses', 'db-01.internal.example.com:5432'),
           ('db-01.internal.example.com:5432 refuses', 'internal'),
           ('db-01.internal.example.com:5432 refuses', '5432'),
           ('db-01.internal.example.com:5432 refuses', 'db'),
           ('write to ops@example.org', 'ops@example.org'),
           ('write to ops@example.org', 'example'),
           ('poseidon-1234 is down', 'poseidon'),
           ('poseidon-1234 is down', '1234'),
           ('poseidon-1234 is down', 'POSEIDON-1234'),
           ('call parseHTTPResponse twice', 'parse'),
           ('call parseHTTPResponse twice', 'http response'),
           ('call parseHTTPResponse twice', 'parseHTTPResponse'),
           ('set max_retry_count', 'retry'),
           ('set max_retry_count', 'max_retry_count'),
           ('MAX_RETRY_COUNT=3', 'retry count'),
           ('never rm -rf here', 'rm -rf'),
           ('pass --verbose', 'verbose'),
           ('Frau Müller wohnt in Köln', 'Muller Koln'),
           ('Frau Muller', 'Müller'),
           ('ｆｕｌｌ width', 'full'),
           ('error E4711', 'e4711'),
           ('error E4711', '4711'),
           ('see CVE-2024-3094', 'CVE-2024-3094'),
           ('see CVE-2024-3094', '2024'),
           ('ticket #12345 (closed)', '12345'),
           ('the (quoted) word', 'quoted'),
           ('deployments were rolled back', 'deployment rolling'),
           ('Сервер стоит в Москве', 'МОСКВЕ'),
           ('quotes '' and \ survive', 'survive'),
           (U&'\200F\05E9\05DC\05D5\05DD\200E, world', U&'\05E9\05DC\05D5\05DD'),
           (U&'call \202A+1 555 0199\202C', '0199'),
           (U&'\FEFFFirst line', 'first'),
           (U&'Donau\00ADdampfer', 'Donaudampfer'),
           (U&'\05E9\05B8\05C1\05DC\05D5\05B9\05DD', U&'\05E9\05DC\05D5\05DD'),
           (U&'\0642\064F\0631\0652\0622\0646', U&'\0642\0631\0622\0646'),
           ('ΟΔΟΣ ΑΘΗΝΑΣ', 'οδος'),
           ('Hauptstraße 5', 'HAUPTSTRASSE'),
           ('primary→replica', 'replica'),
           ('it costs €100', '100'),
           ('5×7 sheets', '7'),
           (U&'one\2028two', 'two'),
           ('deployed🎉 at last', 'deployed'),
           ('deployed🎉 at last', '🎉'),
           (U&'done \2705\FE0F', U&'\2705')
       ) AS t (content, question)
       WHERE NOT tsvector_to_array(memvec.search_vector(t.content))
           @> tsvector_to_array(memvec.search_vector(t.question)) $$,
    'words, identifiers and their parts are found, whatever their case, accents and punctuation'
);
SELECT set_eq(
    $$ SELECT unnest(tsvector_to_array(memvec.search_vector('🎉👩‍💻 🎉'))) $$, '{🎉,👩,💻}'::text[],
    'emoji are words, each by itself'
);
SELECT ok(
    NOT tsvector_to_array(memvec.search_vector('a row about nothing else')) && ARRAY['a', 'about'],
    'stop words are not indexed'
);
SELECT set_eq(
    $$ SELECT unnest(tsvector_to_array(memvec.search_vector('我们的记忆'))) $$,
    ARRAY['我们', '们的', '的记', '记忆', '忆'],
    'a run of Chinese is indexed by its character pairs and its last character'
);
SELECT ok(
    tsvector_to_array(memvec.search_vector('배포는 금요일에 한다')) @> ARRAY['배포', '금요', '요일'],
    'Hangul too'
);
SELECT ok(
    tsvector_to_array(memvec.search_vector('桌面后端watchdog误杀')) @> ARRAY['watchdog', '桌面', '误杀'],
    'Latin words inside a CJK run stay whole'
);

SELECT is(memvec.search_vector(NULL), ''::tsvector, 'NULL gives an empty vector');
SELECT is(memvec.search_vector(U&' \3000\00A0 -- '), ''::tsvector, 'nothing but blanks and punctuation too');

-- Language

SELECT isnt(
    memvec.search_vector('Häuser', 'german'), memvec.search_vector('Häuser', 'simple'),
    'the language decides how words are stemmed'
);
SELECT throws_ok(
    $$ SELECT memvec.search_vector('house', 'klingon') $$, '42704', NULL,
    'an unknown language is refused'
);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.set_setting('search_language', 'simple');
SELECT is(
    memvec.search_vector('running'), '''running'':1'::tsvector,
    'without one, setting search_language decides'
);
SELECT memvec.set_setting('search_language', 'english');

-- Size

SELECT ok(
    (SELECT v.search @@ 'alpha'::tsquery AND NOT v.search @@ 'omega'::tsquery
     FROM memvec.search_vector('alpha ' || repeat('filling words here ', 20000) || ' omega') AS v (search)),
    'a long text is indexed at its beginning'
);
SELECT is(
    (SELECT count(*) FROM unnest(memvec.search_vector(repeat('f0', 150) || ' ' || repeat('ä', 300)))), 2::bigint, 'a word of 300 characters is one'
);
SELECT ok(
    (SELECT v.search @@ 'blob'::tsquery AND v.search @@ '''blob-text'''::tsquery
     FROM memvec.search_vector(
         'blob-text ' || (SELECT string_agg(encode(sha256(i::text::bytea), 'base64'), '') FROM generate_series(1, 40000) AS i)
     ) AS v (search)),
    'a huge text of one word too'
);
SELECT ok(
    (SELECT v.search @@ 'alpha'::tsquery
     FROM memvec.search_vector(
         'alpha ' || (SELECT string_agg(chr(19968 + (i * 7919) % 20000) || chr(19968 + ((i * 104729::bigint) % 19997)::int), '')
                      FROM generate_series(1, 130000) AS i)
     ) AS v (search)),
    'what a tsvector cannot hold is cut, not refused'
);

SELECT * FROM finish();
ROLLBACK;
