-- People stay apart: what is written through a chat or a benchmark key is recalled by that key only. Holds for all three
-- recall functions, every scope and both legs, so it is tested here once for all of them (case R21).
BEGIN;
SELECT plan(17);
SELECT memvec_tests.alone();

SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.add_embedding_space('sinks', 8) AS space \gset
SELECT set_config('sinks.space', :'space', true);
RESET SESSION AUTHORIZATION;
SELECT memvec_tests.act_as('hermes');

CREATE TEMP TABLE key (n int GENERATED ALWAYS AS IDENTITY, key text, theme text);
INSERT INTO key (key, theme) VALUES
('agent:main:whatsapp:dm:15550100123', 'whatsapp-dm'),
('agent:main:telegram:dm:42', 'whatsapp-dm'),
('agent:main:signal:dm', 'whatsapp-dm'),
('agent:main:webui:dm:user-42', 'whatsapp-dm'),
('agent:main:discord:group:77', 'external-group'),
('agent:main:discord:thread:88', 'external-group'),
('agent:main:slack:channel:C1', 'external-group'),
('agent:main:telegram:forum:-100200:17', 'external-group'),
('agent:main:line:room:Rabc', 'external-group'),
('agent:main:webhook:ci:delivery-9', 'external-group'),
('agent:main:matrix:space:!x:example.org', 'external-group'),
('AGENT:Main:WhatsApp:DM:15550100123', 'whatsapp-dm'),
('15550100123', 'whatsapp-dm'),
('user@example.org', 'whatsapp-dm'),
('Marketing', 'marketing'),
(' marketing ', 'marketing'),
('signal:alerts', 'signal:alerts'),
('intraday-trading', 'intraday-trading'),
('', 'default'),
(NULL, 'default'),
('skill-bench', '_bench'),
(U&'mark\0435ting', U&'mark\0435ting'),
('whatsapp-dm', 'whatsapp-dm'),
('external-group', 'external-group');

DO $$
DECLARE
    v_key record;
BEGIN
    FOR v_key IN SELECT * FROM key ORDER BY n LOOP
        PERFORM memvec.add_memory(v_key.key, 'memory', 'secret of row ' || v_key.n, p_embedding => memvec_tests.vec(v_key.n),
                                  p_space => current_setting('sinks.space')::int);
        PERFORM memvec.append_turn(v_key.key, 'session', 'user', 'secret of row ' || v_key.n, p_embedding => memvec_tests.vec(v_key.n),
                                   p_space => current_setting('sinks.space')::int);
    END LOOP;
END
$$;

-- What a key sees in a scope: the numbers behind its rows, from each function, by words, by meaning and by both.
CREATE FUNCTION pg_temp.seen(p_key text, p_scope text) RETURNS TABLE (way text, seen int[])
LANGUAGE sql
AS $$
    SELECT f.name || ' by ' || l.name, coalesce(s.seen, '{}')
    FROM (VALUES ('entries'), ('turns'), ('session'), ('prefetch')) AS f (name)
    CROSS JOIN (VALUES ('words', 'secret of row', NULL), ('meaning', NULL, memvec_tests.vec(5)), ('both', 'secret of row', memvec_tests.vec(5)))
               AS l (name, query, vector)
    CROSS JOIN LATERAL (
        SELECT array_agg(r.n ORDER BY r.n)
        FROM (
            SELECT substring(e.content FROM '[0-9]+')::int AS n
            FROM memvec.recall_memory(p_key, l.query, l.vector, current_setting('sinks.space')::int, p_scope, p_limit => 100) AS e
            WHERE f.name = 'entries'
            UNION ALL
            SELECT substring(c.content FROM '[0-9]+')::int
            FROM memvec.recall_conversation(p_key, l.query, l.vector, current_setting('sinks.space')::int, p_scope, p_limit => 100) AS c
            WHERE f.name = 'turns'
            UNION ALL
            SELECT substring(c.content FROM '[0-9]+')::int
            FROM memvec.recall_conversation(p_key, l.query, l.vector, current_setting('sinks.space')::int, 'session', p_limit => 100,
                                            p_session_id => 'session') AS c
            WHERE f.name = 'session' AND p_scope = 'own'
            UNION ALL
            SELECT substring(p.content FROM '[0-9]+')::int
            FROM memvec.prefetch(p_key, l.query, l.vector, current_setting('sinks.space')::int, 50, -1) AS p
            WHERE f.name = 'prefetch' AND p_scope = 'own'
        ) AS r (n)
    ) AS s (seen)
    WHERE p_scope = 'own' OR f.name IN ('entries', 'turns')
$$;

SELECT is_empty(
    $$ SELECT k.key, c.agent_identity FROM key AS k, memvec.canonical_identity(k.key) AS c WHERE c.agent_identity <> k.theme $$,
    'each key stands for its theme'
);

-- From an ordinary theme

SELECT is_empty(
    $$ SELECT s.* FROM pg_temp.seen('marketing', 'own') AS s WHERE s.seen <> '{15,16}' $$, 'marketing, own: its own rows'
);
SELECT is_empty(
    $$ SELECT scope, s.* FROM unnest(ARRAY['', NULL, 'current', 'Marketing']) AS scope, pg_temp.seen('marketing', scope) AS s
       WHERE s.seen <> '{15,16}' $$,
    'a blank scope, NULL and its own name mean the same'
);
SELECT is_empty(
    $$ SELECT s.* FROM pg_temp.seen('marketing', 'all') AS s WHERE s.seen <> '{15,16,17,18,19,20,22}' $$,
    'marketing, all: the ordinary themes, and no row of a chat or benchmark'
);
SELECT is_empty(
    $$ SELECT scope, s.* FROM unnest(ARRAY['%', '*', '.*', 'whatsapp', 'dm']) AS scope, pg_temp.seen('marketing', scope) AS s
       WHERE s.seen <> '{}' $$,
    'a wildcard is an unknown theme'
);
SELECT is_empty(
    $$ SELECT s.* FROM pg_temp.seen('marketing', 'default') AS s WHERE s.seen <> '{19,20}' $$, 'a named theme: its rows'
);

-- Refused with a message, not silently empty

CREATE FUNCTION pg_temp.refusal(p_key text, p_function text, p_scope text) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    v_detail text;
    v_hint text;
BEGIN
    EXECUTE format('SELECT count(*) FROM memvec.%I(p_identity => $1, p_query => ''secret'', p_scope => $2)', p_function) USING p_key, p_scope;
    RETURN 'answered';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL, v_hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' ', sqlstate, sqlerrm, v_detail, v_hint);
END
$$;
CREATE TEMP TABLE refusal AS
SELECT s.scope, f.name, pg_temp.refusal('marketing', f.name, s.scope) AS told
FROM (
    SELECT unnest(ARRAY['whatsapp-dm', 'WHATSAPP-DM', 'external-group', 'External-Group', '_bench', '_BENCH', ' whatsapp-dm '])
    UNION ALL
    SELECT key FROM key WHERE theme IN ('whatsapp-dm', 'external-group', '_bench')
) AS s (scope)
CROSS JOIN unnest(ARRAY['recall_memory', 'recall_conversation']) AS f (name);
SELECT is_empty(
    $$ SELECT * FROM refusal WHERE told !~ '^MV003' $$, 'naming a sink in any spelling, or a chat key, is refused'
);
SELECT is_empty(
    $$ SELECT * FROM refusal WHERE told ~ '1555|42|user@|C1|Rabc|delivery' $$, 'and no message shows a number, an address or a chat'
);

-- From inside a sink

SELECT is_empty(
    $$ SELECT k.key, o.* FROM key AS k
       CROSS JOIN pg_temp.seen(k.key, 'own') AS o
       CROSS JOIN LATERAL (
           SELECT array_agg(b.n ORDER BY b.n) AS allowed FROM key AS b
           WHERE (SELECT (c.agent_identity, c.person_key) FROM memvec.canonical_identity(b.key) AS c)
               IS NOT DISTINCT FROM (SELECT (c.agent_identity, c.person_key) FROM memvec.canonical_identity(k.key) AS c)
       ) AS a
       WHERE k.theme IN ('whatsapp-dm', 'external-group', '_bench') AND o.seen <> a.allowed $$,
    'each person sees their own rows, in every function'
);
SELECT ok(
    (SELECT count(DISTINCT c.person_key) >= 14 FROM key AS k, memvec.canonical_identity(k.key) AS c WHERE c.person_key IS NOT NULL),
    'they are many persons'
);
SELECT is_empty(
    $$ SELECT k.key, o.* FROM key AS k, pg_temp.seen(k.key, 'all') AS o
       CROSS JOIN LATERAL (
           SELECT array_agg(b.n ORDER BY b.n) AS allowed FROM key AS b
           WHERE b.theme NOT IN ('whatsapp-dm', 'external-group', '_bench')
               OR (SELECT (c.agent_identity, c.person_key) FROM memvec.canonical_identity(b.key) AS c)
                  IS NOT DISTINCT FROM (SELECT (c.agent_identity, c.person_key) FROM memvec.canonical_identity(k.key) AS c)
       ) AS a
       WHERE k.theme IN ('whatsapp-dm', 'external-group', '_bench') AND o.seen <> a.allowed $$,
    'scope all from inside a sink: one''s own rows and the ordinary themes'
);
SELECT is_empty(
    $$ SELECT s.scope, o.*
       FROM unnest(ARRAY['agent:main:telegram:dm:42', '15550100123', 'whatsapp-dm', 'WhatsApp-DM']) AS s (scope),
           pg_temp.seen('agent:main:signal:dm', s.scope) AS o
       WHERE o.seen <> '{3}' $$,
    'naming one''s own sink, or another person in it, gives one''s own rows'
);
SELECT is_empty(
    $$ SELECT s.* FROM pg_temp.seen('agent:main:signal:dm', 'marketing') AS s WHERE s.seen <> '{15,16}' $$,
    'naming an ordinary theme from a sink gives that theme'
);
SELECT alike(
    pg_temp.refusal('agent:main:signal:dm', 'recall_memory', 'external-group'), 'MV003%', 'naming another sink is refused there too'
);

-- Rows of a sink without a person, as an import may leave them, belong to nobody.

RESET SESSION AUTHORIZATION;
DO $$
DECLARE
    v_theme text;
BEGIN
    FOREACH v_theme IN ARRAY '{whatsapp-dm,external-group}'::text[] LOOP
        INSERT INTO memvec.memory_entries (agent_identity, target, content, content_hash, search, search_version)
        VALUES (v_theme, 'memory', 'secret of row 900', sha256(v_theme::bytea), memvec.search_vector('secret of row 900'), 1);
        INSERT INTO memvec.conversations (agent_identity, session_id, role, content, content_hash, search, search_version)
        VALUES (v_theme, 'session', 'user', 'secret of row 900', sha256(v_theme::bytea), memvec.search_vector('secret of row 900'), 1);
    END LOOP;
    PERFORM memvec.put_embedding(current_setting('sinks.space')::int, 'entry', id, memvec_tests.vec(5))
    FROM memvec.memory_entries WHERE content = 'secret of row 900';
    PERFORM memvec.put_embedding(current_setting('sinks.space')::int, 'turn', id, memvec_tests.vec(5))
    FROM memvec.conversations WHERE content = 'secret of row 900';
END
$$;
SELECT memvec_tests.act_as('hermes');
SELECT is_empty(
    $$ SELECT k.key, s.scope, o.way FROM key AS k, unnest(ARRAY['own', 'all']) AS s (scope), pg_temp.seen(k.key, s.scope) AS o
       WHERE 900 = ANY (o.seen) $$,
    'are recalled by nobody'
);

-- The counts that plan a recall, and the words that are counted, must not change what is seen.
RESET SESSION AUTHORIZATION;
UPDATE memvec.settings SET value = '0' WHERE name = 'exact_rows';
UPDATE memvec.settings SET value = '0' WHERE name = 'text_all_terms_rows';
SELECT memvec.count_themes();
SELECT memvec_tests.act_as('hermes');
SELECT is_empty(
    $$ SELECT s.* FROM pg_temp.seen('marketing', 'all') AS s WHERE s.seen <> '{15,16,17,18,19,20,22}'
       UNION ALL
       SELECT s.* FROM pg_temp.seen('agent:main:telegram:dm:42', 'own') AS s WHERE s.seen <> '{2}'
       UNION ALL
       SELECT s.* FROM pg_temp.seen('_bench', 'own') AS s WHERE s.seen <> '{21}' $$,
    'the ways of large themes see the same rows'
);
SELECT is_empty(
    $$ SELECT s.* FROM memvec.stats() AS s WHERE s.agent_identity ~ '1555|user@|:dm' $$, 'no theme is named after a person'
);

SELECT * FROM finish();
ROLLBACK;
