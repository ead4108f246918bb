-- What the attacker of test_attack.py tries. A heading names the attempt, the login that tries it (mallory is bound to a
-- theme, mallory_dm to the sink of direct messages) and what it must come to: the SQLSTATEs of a refusal; nothing = no
-- row, or only NULL; harmless = whatever it gives is nothing of others. Statements end with a line's last semicolon.

-- read a table | mallory | 42501
SELECT * FROM memvec.memory_entries;

-- read a hidden column | mallory | 42501
SELECT ctid, xmin FROM memvec.conversations;

-- count rows | mallory | 42501
SELECT count(*) FROM memvec.memory_entries;

-- read the secret | mallory | 42501
TABLE memvec.secrets;

-- read the bindings | mallory | 42501
SELECT * FROM memvec.role_identities;

-- read a view | mallory | 42501
SELECT * FROM memvec.v_memory_entries;

-- a view of one's own | mallory | 42501
CREATE TEMP VIEW mine AS SELECT * FROM memvec.secrets;
TABLE mine;

-- a leaky view | mallory | 42501
CREATE TEMP VIEW mine AS SELECT * FROM memvec.v_conversations;
TABLE mine;

-- a copy of its shape | mallory | 42501
CREATE TEMP TABLE t (LIKE memvec.secrets INCLUDING ALL);

-- a child table | mallory | 42501
CREATE TEMP TABLE t () INHERITS (memvec.memory_entries);

-- a foreign key | mallory | 42501 42P16
CREATE TEMP TABLE t (id bigint REFERENCES memvec.memory_entries (id));

-- a trigger | mallory | 42501
CREATE TRIGGER t AFTER INSERT ON memvec.conversations EXECUTE FUNCTION suppress_redundant_updates_trigger();

-- a rule | mallory | 42501
CREATE RULE r AS ON INSERT TO memvec.conversations DO ALSO NOTIFY x;

-- a policy | mallory | 42501
CREATE POLICY p ON memvec.conversations USING (true);

-- row security off | mallory | 42501
SET row_security = off;
SELECT * FROM memvec.conversations;

-- no row security | mallory | 42501
ALTER TABLE memvec.conversations DISABLE ROW LEVEL SECURITY;

-- an index | mallory | 42501
CREATE INDEX ON memvec.conversations (content);

-- a lock on a table | mallory | 42501
BEGIN;
LOCK TABLE memvec.secrets IN ACCESS SHARE MODE;

-- a row lock | mallory | 42501
SELECT FROM memvec.memory_entries FOR KEY SHARE;

-- statistics of one's own | mallory | 42501
CREATE STATISTICS s ON agent_identity, content FROM memvec.conversations;

-- a publication | mallory | 42501
CREATE PUBLICATION p FOR TABLE memvec.conversations;

-- a sequence | mallory | 42501
SELECT nextval('memvec.memory_entries_id_seq');

-- a sequence's state | mallory | 42501
SELECT last_value FROM memvec.memory_entries_id_seq;

-- forge an audit row | mallory | 42501
INSERT INTO memvec.maintenance_log (operation) VALUES ('prune');

-- change an audit row | mallory | 42501
UPDATE memvec.maintenance_log SET acted_by = 'hermes';

-- remove the audit | mallory | 42501
DELETE FROM memvec.maintenance_log;

-- empty the audit | mallory | 42501
TRUNCATE memvec.maintenance_log;

-- merge into the audit | mallory | 42501
MERGE INTO memvec.maintenance_log AS m USING (VALUES (1)) AS v ON false WHEN NOT MATCHED THEN INSERT (operation) VALUES ('x');

-- remove history | mallory | 42501
DELETE FROM memvec.memory_history;

-- read history | mallory | 42501
SELECT * FROM memvec.history();

-- restore | mallory | 42501
SELECT * FROM memvec.restore(1);

-- keep history | mallory | 42501
SELECT memvec.keep_history(<ENTRY>, 'remove');

-- scan for numbers | mallory | 42501
SELECT * FROM memvec.scan_pii('.');

-- housekeeping at will | mallory | harmless
SELECT memvec.housekeeping();
SELECT memvec.housekeeping();

-- a clock of one's own | mallory | harmless
SET memvec.now = '2999-01-01';
SELECT memvec.housekeeping();

-- copy a table out | mallory | 42501
COPY memvec.secrets TO '/tmp/x';

-- copy through a program | mallory | 42501
COPY (SELECT 1) TO PROGRAM 'cat';

-- copy a file in | mallory | 42501
CREATE TEMP TABLE t (l text);
COPY t FROM '/etc/passwd';

-- read a file | mallory | 42501
SELECT pg_read_file('PG_VERSION');

-- read bytes of a file | mallory | 42501
SELECT pg_read_binary_file(pg_relation_filepath('memvec.secrets'));

-- list files | mallory | 42501
SELECT pg_ls_dir('.');

-- import a large object | mallory | 42501
SELECT lo_import('/etc/passwd');

-- export a large object | mallory | 42501
SELECT lo_export(lo_from_bytea(0, 'x'), '/tmp/x');

-- dblink | mallory | 42501 0A000 58P01
CREATE EXTENSION dblink;

-- a foreign server | mallory | 42501 0A000 58P01
CREATE EXTENSION postgres_fdw;

-- look into pages | mallory | 42501 0A000 58P01
CREATE EXTENSION pageinspect;

-- another language | mallory | 42501
CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE c AS 'x';

-- a library | mallory | 42501 58P01
LOAD 'auto_explain';

-- a slot | mallory | 42501 55000
SELECT pg_create_logical_replication_slot('s', 'pgoutput');

-- xml of a table | mallory | 42501 0A000
SELECT query_to_xml('SELECT * FROM memvec.secrets', true, true, '');

-- xml of the schema | mallory | 0A000 harmless
SELECT schema_to_xml('memvec', true, true, '');

-- words of a table | mallory | 42501
SELECT * FROM ts_stat('SELECT search FROM memvec.memory_entries');

-- become the owner | mallory | 42501
SET ROLE memvec_owner;

-- become an admin | mallory | 42501
SET ROLE memvec_admin;

-- become another login | mallory | 42501
SET SESSION AUTHORIZATION hermes;

-- a role by setting | mallory | 42501
SELECT set_config('role', 'memvec_owner', false);

-- a session by setting | mallory | 42501
SELECT set_config('session_authorization', 'postgres', false);

-- the group's face | mallory | MV002
SET ROLE memvec_runtime;
SELECT content FROM memvec.recall_memory('victim', 'note');

-- a grant to oneself | mallory | 42501
GRANT memvec_admin TO mallory;

-- a grant to everybody | mallory | 42501 harmless
GRANT SELECT ON memvec.secrets TO PUBLIC;

-- more rights | mallory | 42501
ALTER ROLE mallory BYPASSRLS;

-- another name | mallory | 42501 0A000
ALTER ROLE mallory RENAME TO hermes2;

-- another's password | mallory | 42501
ALTER ROLE hermes PASSWORD 'x';

-- defaults of the owner | mallory | 42501
ALTER DEFAULT PRIVILEGES FOR ROLE memvec_owner GRANT SELECT ON TABLES TO PUBLIC;

-- loosen the binding | mallory | 42501
SELECT memvec.unbind_role('mallory');

-- bind to more | mallory | 42501
SELECT memvec.bind_role('mallory', 'victim');

-- read the binding's rule | mallory | 42501
SELECT memvec.may_act_as('victim');

-- settings | mallory | 42501
SELECT memvec.set_setting('require_binding', 'off');

-- end another session | mallory | 42501 nothing
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IS DISTINCT FROM 'mallory' AND pid <> pg_backend_pid();

-- the server's settings | mallory | 42501
ALTER SYSTEM SET log_statement = 'all';

-- the log | mallory | 42501
SET log_statement = 'all';

-- an event trigger | mallory | 42501
CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION suppress_redundant_updates_trigger();

-- a function in the schema | mallory | 42501
CREATE FUNCTION memvec.evil() RETURNS int LANGUAGE sql AS 'SELECT 1';

-- a function of ours | mallory | 42501
CREATE OR REPLACE FUNCTION memvec.may_act_as(p_agent_identity text) RETURNS boolean LANGUAGE sql AS 'SELECT true';

-- a function in public | mallory | 42501
CREATE FUNCTION public.blankless(text) RETURNS text LANGUAGE sql AS 'SELECT $1';

-- drop ours | mallory | 42501
DROP FUNCTION memvec.in_scope;

-- temporary tables in front | mallory | MV002
CREATE TEMP TABLE role_identities (role_name name, agent_identity text, read_all boolean);
INSERT INTO role_identities VALUES ('mallory', 'victim', true);
CREATE TEMP TABLE secrets (name text, value bytea);
SET search_path = pg_temp, memvec, pg_catalog;
SELECT content FROM memvec.recall_memory('victim', 'note');

-- temporary functions in front | mallory | MV002
CREATE FUNCTION pg_temp.setting(text) RETURNS text LANGUAGE sql AS 'SELECT ''false''';
CREATE FUNCTION pg_temp.lower(text) RETURNS text LANGUAGE sql AS 'SELECT ''mallory-own''';
SET search_path = pg_temp, pg_catalog;
SELECT content FROM memvec.recall_memory('victim', 'note');

-- an operator in front | mallory | MV002
CREATE FUNCTION pg_temp.yes(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR pg_temp.= (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_temp.yes);
SET search_path = pg_temp, pg_catalog;
SELECT content FROM memvec.recall_memory('victim', 'note');

-- a type in front | mallory | MV002
CREATE DOMAIN pg_temp.text AS pg_catalog.text;
SET search_path = pg_temp, pg_catalog;
SELECT * FROM memvec.recall_memory('victim'::pg_catalog.text, 'note'::pg_catalog.text);

-- an overload | mallory | 42501
CREATE FUNCTION pg_temp.recall_memory(text, text) RETURNS text LANGUAGE sql AS 'SELECT content FROM memvec.memory_entries';
SELECT pg_temp.recall_memory('a', 'b');

-- a cast | mallory | 42501 42809
CREATE CAST (text AS memvec.new_entry) WITH INOUT;

-- a row of the secret's type | mallory | nothing
SELECT (NULL::memvec.secrets).value;

-- as the victim | mallory | MV002
SELECT content FROM memvec.recall_memory('victim', 'note');

-- as default | mallory | MV002
SELECT content FROM memvec.recall_memory(NULL, 'note');

-- as nobody | mallory | MV002
SELECT content FROM memvec.recall_memory('', 'note');

-- in capitals | mallory | MV002
SELECT content FROM memvec.recall_memory(' VICTIM ', 'note');

-- full width | mallory | MV002
SELECT content FROM memvec.recall_memory('ｖｉｃｔｉｍ', 'note');

-- with a zero-width space | mallory | MV002
SELECT content FROM memvec.recall_memory(U&'vic\200Btim', 'note');

-- with a combining mark | mallory | MV002
SELECT content FROM memvec.recall_memory(U&'victim\0301', 'note');

-- with a letter that looks alike | mallory | MV002
SELECT content FROM memvec.recall_memory('vıctim', 'note');

-- by the fleet's alias | mallory | MV002
SELECT content FROM memvec.recall_memory('boss', 'note');

-- by quotes | mallory | MV002
SELECT content FROM memvec.recall_memory('victim'' OR true --', 'note');

-- as a person | mallory | MV002
SELECT content FROM memvec.recall_memory('<PERSON>', 'secret');

-- by a host's alias | mallory | MV002
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_governance => '{"aliases": {"mallory-own": "victim"}}');

-- by a host's alias to a person | mallory | MV002
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_governance => '{"aliases": {"mallory-own": "<PERSON>"}}');

-- by an allow-list | mallory | MV002
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_governance => '{"allowed_themes": ["victim"]}');

-- by an odd governance | mallory | nothing
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_scope => 'all', p_governance => '[{"aliases": 1}, "victim"]');

-- by a governance of null | mallory | nothing
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_scope => 'all', p_governance => 'null');

-- by a nested governance | mallory | nothing
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_scope => 'all', p_governance => '{"allowed_themes": {"$[*]": "victim"}, "agent_identity": "victim"}');

-- by a setting | mallory | nothing
SET memvec.agent_identity = 'victim';
SET memvec.tenant = 'victim';
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_scope => 'all');

-- greet as the victim | mallory | MV002
SELECT * FROM memvec.hello('victim');

-- learn a person | mallory | nothing
SELECT person_key FROM memvec.canonical_identity('<PERSON>');

-- scope all | mallory | nothing
SELECT content FROM memvec.recall_memory('mallory-own', 'note secret file', p_scope => 'all', p_limit => 1000);

-- scope victim | mallory | MV003
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_scope => 'victim');

-- scope ViCtIm | mallory | MV003
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_scope => U&' ViC\200BtIm');

-- scope by alias | mallory | MV003
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_scope => 'boss');

-- scope sink | mallory | MV003
SELECT content FROM memvec.recall_memory('mallory-own', 'secret', p_scope => 'whatsapp-dm');

-- scope of a person | mallory | MV003
SELECT content FROM memvec.recall_memory('mallory-own', 'secret', p_scope => '<PERSON>');

-- scope % | mallory | MV003
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_scope => '%');

-- scope .* | mallory | MV003
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_scope => '.*');

-- scope list | mallory | MV003
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_scope => 'all,victim');

-- scope own by host's alias | mallory | MV003
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_scope => 'x', p_governance => '{"aliases": {"x": "victim"}}');

-- by a vector | mallory | nothing
SELECT content FROM memvec.recall_memory('mallory-own', NULL, '[1,2,3]', 1, 'all', NULL, 1000, p_min_similarity => -1);

-- by a vector with NaN | mallory | nothing
SELECT content FROM memvec.recall_memory('mallory-own', NULL, '[1,2,3]', 1, 'all', NULL, 1000, p_min_similarity => 'NaN');

-- by operators in the question | mallory | harmless
SELECT content FROM memvec.recall_memory('mallory-own', 'zqx:* | !mine <-> ( & )', p_scope => 'all');

-- no bounds | mallory | nothing
SELECT content FROM memvec.recall_memory('mallory-own', 'note', NULL, NULL, NULL, NULL, NULL, '-infinity', 'infinity', NULL, '0');

-- a session's id | mallory | nothing
SELECT content FROM memvec.recall_conversation('mallory-own', 'says', p_scope => 'session', p_session_id => 'victim-session');

-- turns of all | mallory | nothing
SELECT content FROM memvec.recall_conversation('mallory-own', 'says her', p_scope => 'all');

-- prefetch | mallory | harmless
SELECT content FROM memvec.prefetch('mallory-own', 'note secret says', '[1,2,3]', 1, 50, -1);

-- a leaky function over a recall | mallory | nothing
CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS 'BEGIN RAISE NOTICE ''%'', $1; RETURN true; END';
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_scope => 'all') WHERE pg_temp.leak(content);

-- a leaky cast over a recall | mallory | nothing
SELECT content FROM memvec.recall_memory('mallory-own', 'note', p_scope => 'all') WHERE content::int > 0;

-- explain | mallory | harmless
EXPLAIN (ANALYZE, VERBOSE, BUFFERS, SETTINGS) SELECT * FROM memvec.recall_memory('mallory-own', 'note', p_scope => 'all');

-- explain a table | mallory | 42501
EXPLAIN ANALYZE SELECT * FROM memvec.memory_entries;

-- prepare | mallory | 42501
PREPARE p AS SELECT * FROM memvec.secrets;
EXECUTE p;

-- prepare as the victim | mallory | MV002
PREPARE p (text) AS SELECT * FROM memvec.recall_memory($1, 'note');
EXECUTE p('mallory-own');
EXECUTE p('victim');

-- a cursor that stays | mallory | MV002
DECLARE c CURSOR WITH HOLD FOR SELECT * FROM memvec.recall_memory('victim', 'note');

-- do | mallory | 42501
DO $$ BEGIN EXECUTE 'CREATE TEMP TABLE t AS SELECT * FROM memvec.secrets'; END $$;

-- swallow the error | mallory | 42P01 55000 42703 42601 harmless
DO $$ DECLARE r record; BEGIN BEGIN PERFORM * FROM memvec.recall_memory('victim', 'note'); EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS r.x = PG_EXCEPTION_DETAIL; END; END $$;

-- a definer of one's own | mallory | 42501
CREATE FUNCTION pg_temp.f() RETURNS SETOF memvec.secrets LANGUAGE sql SECURITY DEFINER AS 'SELECT * FROM memvec.secrets';
SELECT pg_temp.f();

-- serializable reads | mallory | MV002
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT content FROM memvec.recall_memory('victim', 'note');

-- serializable writes | mallory | MV006
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT memvec.add_memory('mallory-own', 'memory', 'x');

-- repeatable reads | mallory | MV006
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT memvec.apply_ops('[]');

-- two phases | mallory | 55000
BEGIN;
SELECT memvec.add_memory('mallory-own', 'memory', 'x');
PREPARE TRANSACTION 'x';

-- add to the victim | mallory | MV002
SELECT memvec.add_memory('victim', 'memory', 'forged');

-- replace the victim's | mallory | MV002
SELECT memvec.replace_memory('victim', 'memory', 'note', 'forged');

-- remove the victim's | mallory | MV002
SELECT memvec.remove_memory('victim', 'memory', 'note');

-- append to the victim | mallory | MV002
SELECT memvec.append_turn('victim', 'victim-session', 'user', 'forged');

-- remove by pattern | mallory | nothing
SELECT id FROM memvec.remove_memory('mallory-own', 'memory', '%note%');

-- register the victim | mallory | MV002
SELECT memvec.register_agent('victim', '{"x": 1}');

-- register with columns | mallory | harmless
SELECT memvec.register_agent('mallory-own', '{"agent_identity": "victim", "kind": "bench"}');

-- delegate for the victim | mallory | MV002
SELECT memvec.record_delegation('victim', 's', 'c');

-- delegate to the victim | mallory | harmless
SELECT memvec.record_delegation('mallory-own', 'victim-session', 'victim-session', 'victim');

-- metadata that poses | mallory | harmless
SELECT memvec.add_memory('mallory-own', 'memory', 'posing', '{"agent_identity": "victim", "person_key": "x"}');

-- the victim's file | mallory | nothing
SELECT nullif(retired, 0) FROM memvec.sync_memories('mallory-own', '<SOURCE>', 'memory', '{}');

-- internal write | mallory | 42501
SELECT memvec.put_entries(NULL);

-- internal delete | mallory | 42501
SELECT memvec.retire_entry(<ENTRY>, 'remove');

-- internal recall | mallory | 42501
SELECT * FROM memvec.fused_rows('entry', 'note', NULL, NULL, ROW('victim', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL)::memvec.recall_filter, 9, NULL, NULL);

-- claim texts to embed | mallory | 42501
SELECT * FROM memvec.claim_pending(1);

-- a vector onto the victim's row | mallory | 42883 nothing
SELECT nullif(stored, 0) FROM memvec.store_embeddings(1, '{entry}', '{<ENTRY>}', ARRAY[sha256('the zqx' || 'canary note')], ARRAY['[9,9,9]'::public.halfvec]);

-- replay another's operation | mallory | nothing
SELECT content_hash FROM memvec.apply_ops('[{"op_id": "<OP>", "op": "add_memory", "identity": "mallory-own"}]');

-- stats | mallory | nothing
SELECT * FROM memvec.stats() WHERE agent_identity <> 'mallory-own';

-- coverage | mallory | nothing
SELECT * FROM memvec.embedding_coverage() WHERE rows > 100;

-- column statistics | mallory | nothing
SELECT * FROM pg_stats WHERE schemaname = 'memvec';

-- the statistics' table | mallory | 42501
SELECT * FROM pg_statistic;

-- extended statistics | mallory | nothing
SELECT * FROM pg_stats_ext WHERE schemaname = 'memvec';

-- function bodies | mallory | harmless
SELECT prosrc, pg_get_functiondef(oid), proconfig FROM pg_proc WHERE pronamespace = 'memvec'::regnamespace;

-- the catalogue | mallory | harmless
SELECT pg_get_viewdef(c.oid), c.*, obj_description(c.oid) FROM pg_class AS c WHERE relnamespace = 'memvec'::regnamespace;

-- settings of roles | mallory | harmless
SELECT * FROM pg_db_role_setting;

-- passwords | mallory | 42501
SELECT rolpassword FROM pg_authid;

-- locks | mallory | harmless
SELECT * FROM pg_locks;

-- prepared by others | mallory | nothing
SELECT * FROM pg_prepared_statements;

-- all settings | mallory | harmless
SELECT * FROM pg_settings;

-- notifications | mallory | harmless
LISTEN memvec;
NOTIFY memvec, 'x';
SELECT * FROM pg_listening_channels();

-- the sink's name | mallory_dm | nothing
SELECT content FROM memvec.recall_memory('whatsapp-dm', 'secret');

-- a number beside hers | mallory_dm | nothing
SELECT content FROM memvec.recall_memory('agent:main:whatsapp:dm:15550109998', 'secret');

-- part of her number | mallory_dm | nothing
SELECT content FROM memvec.recall_memory('agent:main:whatsapp:dm:1555010999', 'secret');

-- a pattern for her number | mallory_dm | nothing
SELECT content FROM memvec.recall_memory('agent:main:whatsapp:dm:%', 'secret');

-- her number on another platform | mallory_dm | nothing
SELECT content FROM memvec.recall_memory('agent:main:signal:dm:15550109999', 'secret');

-- all of the sink | mallory_dm | nothing
SELECT content FROM memvec.recall_memory('whatsapp-dm', 'secret', p_scope => 'all');

-- everybody's turns | mallory_dm | nothing
SELECT content FROM memvec.recall_conversation('whatsapp-dm', 'her', p_scope => 'session', p_session_id => 'dm-session');

-- an alias onto the sink | mallory_dm | nothing
SELECT content FROM memvec.recall_memory('x', 'secret', p_governance => '{"aliases": {"x": "whatsapp-dm"}}');

-- an alias of one's own choice | mallory_dm | harmless
SELECT * FROM memvec.canonical_identity('x', '{"x": "whatsapp-dm"}');

-- strings that mean something else | mallory_dm | nothing
SET standard_conforming_strings = off;
SELECT content FROM memvec.recall_memory('agent:main:whatsapp:dm:1', 'secret') UNION ALL SELECT content FROM memvec.recall_memory('agent:main:whatsapp:dm:2', 'secret');

-- her row by a hash of its text | mallory_dm | nothing
SELECT nullif(stored, 0) FROM memvec.store_embeddings(1, '{entry}', '{<PERSON_ENTRY>}', ARRAY[sha256(convert_to('secret zqx' || 'canary', 'UTF8'))], ARRAY['[9,9,9]'::public.halfvec]);

-- remove hers | mallory_dm | nothing
SELECT id FROM memvec.remove_memory('agent:main:whatsapp:dm:15550109998', 'memory', 'secret');

-- greeting counts | mallory_dm | nothing
SELECT nullif(entries, 0), nullif(turns, 0) FROM memvec.hello('agent:main:whatsapp:dm:15550109998');

-- a group's rows | mallory_dm | MV002
SELECT content FROM memvec.recall_memory('agent:main:telegram:group:1', 'secret');
