-- The memory itself: entries (notes of the host's memory tool), the homes whose files hold them, chat turns, and what was
-- taken away. Search vectors are ordinary columns written by the write functions, so that language and tokenizer can change.
-- Their GIN indexes hold the search vector with the row's owner, the person or else the theme, as one lexeme more (queries say it
-- with memvec.owned_search; an index calls no function of ours); they collect new rows in a short pending list: at most 32 pages more for a recall to read, a third of the cost of
-- a write.

CREATE TABLE memvec.memory_entries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent_identity text NOT NULL,
    person_key uuid,
    target text NOT NULL CHECK (target IN ('memory', 'user')),
    content text NOT NULL,
    content_hash bytea NOT NULL,
    search tsvector NOT NULL,
    search_version integer NOT NULL,
    embed boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    metadata jsonb NOT NULL DEFAULT '{}',
    UNIQUE NULLS NOT DISTINCT (agent_identity, content_hash, target, person_key)
);
COMMENT ON TABLE memvec.memory_entries IS 'Notes. person_key is set in the sinks whatsapp-dm and external-group only; content_hash is the SHA-256 of the UTF-8 text.';
CREATE INDEX memory_entries_search ON memvec.memory_entries
    USING gin ((search || array_to_tsvector(ARRAY[coalesce(person_key::text, 'theme ' || agent_identity)])))
    WITH (gin_pending_list_limit = 256);
-- A text is one result for all the themes that hold it; the index finds them.
CREATE INDEX memory_entries_content ON memvec.memory_entries USING hash (content_hash);
CREATE INDEX memory_entries_updated_at ON memvec.memory_entries USING brin (updated_at) WITH (pages_per_range = 32, autosummarize = on);
CREATE INDEX memory_entries_search_version ON memvec.memory_entries USING brin (search_version) WITH (pages_per_range = 32, autosummarize = on);
-- A common word is sought in a theme's newest rows, whoever else has written since.
CREATE INDEX memory_entries_theme ON memvec.memory_entries (agent_identity, id) WHERE person_key IS NULL;
CREATE INDEX memory_entries_person ON memvec.memory_entries (person_key) WHERE person_key IS NOT NULL;

CREATE TABLE memvec.entry_sources (
    entry_id bigint NOT NULL REFERENCES memvec.memory_entries (id) ON DELETE CASCADE,
    source uuid NOT NULL,
    guessed boolean NOT NULL DEFAULT false,
    PRIMARY KEY (entry_id, source)
);
COMMENT ON TABLE memvec.entry_sources IS 'Which homes'' files hold an entry. An entry that came from files goes with its last source.';
COMMENT ON COLUMN memvec.entry_sources.guessed IS 'True when the text was found in the file before any writer named its theme, and so went to the home''s own theme.';
CREATE INDEX entry_sources_source ON memvec.entry_sources (source);

CREATE TABLE memvec.conversations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent_identity text NOT NULL,
    person_key uuid,
    session_id text NOT NULL,
    parent_session_id text,
    role text NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool')),
    content text NOT NULL,
    content_hash bytea NOT NULL,
    search tsvector NOT NULL,
    search_version integer NOT NULL,
    embed boolean NOT NULL DEFAULT true,
    ts timestamptz NOT NULL DEFAULT now(),
    metadata jsonb NOT NULL DEFAULT '{}',
    UNIQUE NULLS NOT DISTINCT (agent_identity, session_id, content_hash, role, person_key)
);
COMMENT ON TABLE memvec.conversations IS 'Chat turns. The same words by the same role in one session are one row, so replays change nothing.';
CREATE INDEX conversations_search ON memvec.conversations
    USING gin ((search || array_to_tsvector(ARRAY[coalesce(person_key::text, 'theme ' || agent_identity)])))
    WITH (gin_pending_list_limit = 256);
CREATE INDEX conversations_content ON memvec.conversations USING hash (content_hash);
CREATE INDEX conversations_ts ON memvec.conversations USING brin (ts) WITH (pages_per_range = 32, autosummarize = on);
CREATE INDEX conversations_search_version ON memvec.conversations USING brin (search_version) WITH (pages_per_range = 32, autosummarize = on);
CREATE INDEX conversations_theme ON memvec.conversations (agent_identity, id) WHERE person_key IS NULL;
CREATE INDEX conversations_person ON memvec.conversations (person_key) WHERE person_key IS NOT NULL;

CREATE TABLE memvec.memory_history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry_id bigint NOT NULL,
    agent_identity text NOT NULL,
    person_key uuid,
    target text NOT NULL,
    content text NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    metadata jsonb NOT NULL,
    embed boolean NOT NULL,
    action text NOT NULL CHECK (action IN ('replace', 'remove', 'reconcile')),
    acted_at timestamptz NOT NULL DEFAULT now(),
    acted_by name NOT NULL DEFAULT session_user,
    restored_at timestamptz,
    restored_by name
);
COMMENT ON TABLE memvec.memory_history IS 'Entries as they were before replace, remove or reconcile took them away, by which login role and when, and by whom memvec.restore brought them back.';
CREATE INDEX memory_history_acted_at ON memvec.memory_history (acted_at);
CREATE INDEX memory_history_theme ON memvec.memory_history (agent_identity, person_key);

-- No query compares whole texts, so the planner needs to know nothing about them, and keeps no samples of them.
ALTER TABLE memvec.memory_entries ALTER content SET STATISTICS 0;
ALTER TABLE memvec.conversations ALTER content SET STATISTICS 0;
ALTER TABLE memvec.memory_history ALTER content SET STATISTICS 0, ALTER metadata SET STATISTICS 0;
ALTER TABLE memvec.memory_entries ALTER metadata SET STATISTICS 0;
ALTER TABLE memvec.conversations ALTER metadata SET STATISTICS 0;

ALTER TABLE memvec.memory_entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE memvec.entry_sources ENABLE ROW LEVEL SECURITY;
ALTER TABLE memvec.conversations ENABLE ROW LEVEL SECURITY;
ALTER TABLE memvec.memory_history ENABLE ROW LEVEL SECURITY;

-- What the storing functions take: one row or many, so that a batch costs one statement.
CREATE TYPE memvec.new_entry AS (
    ordinal integer,
    agent_identity text,
    person_key uuid,
    target text,
    content text,
    metadata jsonb,
    source uuid,
    embed boolean
);

CREATE TYPE memvec.new_turn AS (
    ordinal integer,
    agent_identity text,
    person_key uuid,
    session_id text,
    role text,
    content text,
    parent_session_id text,
    ts timestamptz,
    metadata jsonb,
    embed boolean
);
