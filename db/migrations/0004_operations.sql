-- Bookkeeping: operations already applied (so that a replay changes nothing), what maintenance did, and the estimates that
-- recall plans by. Estimates may be stale: a wrong one costs time, never an answer.

CREATE TABLE memvec.applied_ops (
    op_id uuid PRIMARY KEY,
    outcome text NOT NULL,
    row_id bigint,
    content_hash bytea,
    detail jsonb,
    applied_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX applied_ops_applied_at ON memvec.applied_ops USING brin (applied_at);
COMMENT ON TABLE memvec.applied_ops IS 'Operations of the homes'' outboxes that are done, with their results.';

CREATE TABLE memvec.maintenance_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    operation text NOT NULL,
    table_name text,
    rows bigint NOT NULL DEFAULT 0,
    dry_run boolean NOT NULL DEFAULT false,
    parameters jsonb NOT NULL DEFAULT '{}',
    acted_at timestamptz NOT NULL DEFAULT now(),
    acted_by name NOT NULL DEFAULT session_user
);
COMMENT ON TABLE memvec.maintenance_log IS 'What administrative functions did, written in their own transaction with the login role that ran them.';

CREATE TABLE memvec.theme_counts (
    kind text NOT NULL CHECK (kind IN ('entry', 'turn')),
    agent_identity text NOT NULL,
    target text NOT NULL DEFAULT '',
    rows bigint NOT NULL,
    PRIMARY KEY (kind, agent_identity, target)
);
COMMENT ON TABLE memvec.theme_counts IS 'Estimated rows of each theme and target, refreshed by memvec.housekeeping.';

CREATE TABLE memvec.term_statistics (
    kind text NOT NULL CHECK (kind IN ('entry', 'turn')),
    lexeme text NOT NULL,
    rows bigint NOT NULL,
    PRIMARY KEY (kind, lexeme)
);
COMMENT ON TABLE memvec.term_statistics IS 'Estimated rows that hold a common word; words that are not here count as rare. Words of sink rows never enter.';

ALTER TABLE memvec.applied_ops ENABLE ROW LEVEL SECURITY;
ALTER TABLE memvec.maintenance_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE memvec.theme_counts ENABLE ROW LEVEL SECURITY;
ALTER TABLE memvec.term_statistics ENABLE ROW LEVEL SECURITY;

-- One operation of a batch on its way through memvec.apply_ops: as given, whom it acts for, and what became of it.
CREATE TYPE memvec.batch_op AS (
    ordinal integer,
    op_id uuid,
    op text,
    identity text,
    governance jsonb,
    arguments jsonb,
    agent_identity text,
    person_key uuid,
    outcome text,
    row_id bigint,
    content_hash bytea,
    detail jsonb,
    error_code text,
    message text
);

-- What a batch locks: the entries of one theme, person and target, or with target NULL only the theme.
CREATE TYPE memvec.entry_lock AS (
    agent_identity text,
    person_key uuid,
    target text
);

-- What a maintenance function did to one table, or would do, and how much of the same is there still.
CREATE TYPE memvec.change AS (
    table_name text,
    action text,
    rows bigint,
    remaining bigint
);

-- Two rows with one text, of which remap keeps one.
CREATE TYPE memvec.twin AS (
    dropped bigint,
    kept bigint
);

-- One row of an import: what it is and belongs to, as given, and what became of it.
CREATE TYPE memvec.import_row AS (
    ordinal integer,
    kind text,
    agent_identity text,
    person_key uuid,
    reason text,
    arguments jsonb,
    outcome text,
    row_id bigint,
    message text
);

-- What a check of memvec.health found.
CREATE TYPE memvec.finding AS (
    area text,
    name text,
    state text,
    message text,
    fix text,
    value jsonb
);
