BEGIN;
SELECT plan(5);

SELECT is(memvec_tests.callers('memvec.touch_agent'), '{}', 'internal');

SELECT memvec.touch_agent('touch-a', 'theme', '{}');
SELECT is(
    (SELECT ROW(kind, sink, attrs)::text FROM memvec.memory_agents WHERE agent_identity = 'touch-a'), '(theme,f,{})',
    'a theme is registered'
);

CREATE TEMP TABLE seen AS SELECT a.ctid AS place FROM memvec.memory_agents AS a WHERE agent_identity = 'touch-a';
SELECT memvec.touch_agent('touch-a', 'theme', '{}');
SELECT is(
    (SELECT a.ctid FROM memvec.memory_agents AS a WHERE agent_identity = 'touch-a'), (SELECT place FROM seen),
    'a second sighting within a minute writes nothing'
);
SELECT memvec.touch_agent('touch-a', 'theme', '{"a": {"b": 1, "c": 2}}');
SELECT memvec.touch_agent('touch-a', 'theme', '{"a": {"b": 1}}');
SELECT is(
    (SELECT attrs FROM memvec.memory_agents WHERE agent_identity = 'touch-a'), '{"a": {"b": 1}}'::jsonb,
    'unless there is something new to say, also when that is less than before'
);
UPDATE memvec.memory_agents SET last_seen = now() - interval '61 seconds' WHERE agent_identity = 'touch-a';
SELECT memvec.touch_agent('touch-a', 'theme', '{}');
SELECT is(
    (SELECT last_seen FROM memvec.memory_agents WHERE agent_identity = 'touch-a'), now(),
    'a later sighting is noted'
);

SELECT * FROM finish();
ROLLBACK;
