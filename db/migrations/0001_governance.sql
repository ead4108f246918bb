-- Who is who and what is allowed: settings, the secret that keys persons, aliases, role bindings, and the registry of
-- themes with the edges of who delegated to whom.

CREATE TABLE memvec.settings (
    name text PRIMARY KEY,
    value text,
    kind text NOT NULL CHECK (kind IN ('integer', 'number', 'boolean', 'text', 'list')),
    minimum numeric,
    maximum numeric,
    choices text [],
    description text NOT NULL
);
COMMENT ON TABLE memvec.settings IS 'Fleet-wide settings. Change them with memvec.set_setting, which checks kind, range and choices.';

INSERT INTO memvec.settings (name, value, kind, minimum, maximum, choices, description) VALUES
('allowed_themes', '', 'list', NULL, NULL, NULL, 'Themes that may be used, separated by commas; others become default. Blank = all. Sinks are always allowed.'),
('bench_mode', 'bucket', 'text', NULL, NULL, '{bucket,reject}', 'Where benchmark keys go: bucket = the sink _bench, reject = default.'),
('require_binding', 'false', 'boolean', NULL, NULL, NULL, 'Refuse login roles that memvec.bind_role has not tied to a theme.'),
('search_language', 'english', 'text', NULL, NULL, NULL, 'Text search configuration of the words leg, for example english, german, simple.'),
('search_version', '1', 'integer', 1, 999999999, NULL, 'Version of the search vectors; raised by itself when search_language or turn_date_words changes, never lowered.'),
('search_languages_before', '', 'list', NULL, NULL, NULL, 'Languages of rows that memvec.reindex_search has not renewed yet; questions are put in them too. Kept by itself.'),
('rrf_k', '10', 'number', 0, 1000, NULL, 'Constant k of Reciprocal Rank Fusion: a rank r adds weight / (k + r).'),
('rrf_depth', '200', 'integer', 10, 5000, NULL, 'How many rows each leg hands to the fusion.'),
('rrf_weight_vector', '1', 'number', 0, 100, NULL, 'Weight of the vector leg in the fusion.'),
('rrf_weight_text', '1', 'number', 0, 100, NULL, 'Weight of the words leg in the fusion.'),
('turn_date_words', 'FMDD FMMonth YYYY', 'text', NULL, NULL, NULL, 'The words of its date (UTC) by which a turn is found too, as a format of to_char; blank = none. TMMonth gives the month in the database''s lc_time.'),
('turn_neighbours', '0.3', 'number', 0, 1, NULL, 'Share of the score of each of the two turns found before it and after it in its session that is added to a turn''s own, in either leg; 0 = none.'),
('exact_rows', '10000', 'integer', 0, 10000000, NULL, 'Up to this many rows in the filter the vector leg compares every one; above, it asks the HNSW index where that is cheaper.'),
('hnsw_visit_rows', '15', 'integer', 0, 100000, NULL, 'How many rows can be compared in the time that the HNSW index takes to visit one; 0 = always ask the index above exact_rows.'),
('hnsw_candidates', '100', 'integer', 10, 1000, NULL, 'How many rows the HNSW index hands over to be ranked again by their exact distance.'),
('hnsw_m', '16', 'integer', 2, 100, NULL, 'HNSW: links a node, used when an index is made.'),
('hnsw_ef_construction', '128', 'integer', 4, 1000, NULL, 'HNSW: candidates while building, used when an index is made.'),
('text_all_terms_rows', '5000', 'integer', 0, 10000000, NULL, 'Up to this many rows in the filter the words leg matches every word of the question.'),
('text_match_rows', '1000', 'integer', 10, 1000000, NULL, 'Above that it takes the rarest words until about this many rows match.'),
('prefetch_min_words', '0.2', 'number', 0, 1, NULL, 'Share of the question''s words that a row must hold to be prefetched by words alone.'),
('embed_max_attempts', '5', 'integer', 1, 1000, NULL, 'After so many failures a row is no longer handed out for embedding by itself.'),
('lease_seconds', '300', 'integer', 1, 86400, NULL, 'How long a claimed row stays with the worker that claimed it.'),
('applied_ops_days', '30', 'integer', 1, 3650, NULL, 'How long the record of applied operations is kept. Longer than any outbox stays unsent.'),
('history_days', '365', 'integer', 1, 36500, NULL, 'How long replaced and removed entries can be restored.'),
('lock_seconds', '5', 'integer', 1, 600, NULL, 'How long a writer or a maintenance function waits for a theme that another holds, before it gives up with MV008.');

CREATE TABLE memvec.secrets (
    name text PRIMARY KEY,
    value bytea NOT NULL
);
COMMENT ON TABLE memvec.secrets IS 'Keys that only memvec functions read. person_key: keys the hash that stands for a chat contact.';

INSERT INTO memvec.secrets (name, value)
VALUES ('person_key', sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

CREATE TABLE memvec.identity_aliases (
    alias text PRIMARY KEY,
    agent_identity text NOT NULL
);
COMMENT ON TABLE memvec.identity_aliases IS 'One hop from a cleaned session key to the key it stands for. The left side is folded as session keys are.';

CREATE TABLE memvec.role_identities (
    role_name name NOT NULL,
    role_oid oid NOT NULL,
    agent_identity text NOT NULL,
    read_all boolean NOT NULL DEFAULT false,
    PRIMARY KEY (role_name, agent_identity)
);
COMMENT ON TABLE memvec.role_identities IS 'Login roles tied to themes by memvec.bind_role. A role without a row may act as any theme, unless require_binding is on. role_oid only tells that a role was renamed since.';

CREATE TABLE memvec.memory_agents (
    agent_identity text PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('default', 'theme', 'direct', 'group', 'bench')),
    sink boolean NOT NULL DEFAULT false,
    first_seen timestamptz NOT NULL DEFAULT now(),
    last_seen timestamptz NOT NULL DEFAULT now(),
    attrs jsonb NOT NULL DEFAULT '{}',
    -- Not an attribute, because agents may set those.
    ttl_days integer CHECK (ttl_days BETWEEN 0 AND 36500)
);
COMMENT ON TABLE memvec.memory_agents IS 'Registry of the themes that were ever used. ttl_days: how long memvec.prune leaves a theme''s turns (0: for ever; NULL: as long as it is told).';

CREATE TABLE memvec.memory_agent_edges (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    parent_identity text NOT NULL,
    parent_person uuid,
    child_identity text,
    parent_session_id text NOT NULL,
    child_session_id text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    attrs jsonb NOT NULL DEFAULT '{}',
    UNIQUE NULLS NOT DISTINCT (parent_identity, parent_person, parent_session_id, child_session_id)
);
COMMENT ON TABLE memvec.memory_agent_edges IS 'Provenance: which session delegated to which.';

ALTER TABLE memvec.settings ENABLE ROW LEVEL SECURITY;
ALTER TABLE memvec.secrets ENABLE ROW LEVEL SECURITY;
ALTER TABLE memvec.identity_aliases ENABLE ROW LEVEL SECURITY;
ALTER TABLE memvec.role_identities ENABLE ROW LEVEL SECURITY;
ALTER TABLE memvec.memory_agents ENABLE ROW LEVEL SECURITY;
ALTER TABLE memvec.memory_agent_edges ENABLE ROW LEVEL SECURITY;
