-- Embedding spaces and the work of filling them. A space is one model with its width and task prefixes; its vectors live
-- in two tables of its own (entry_embeddings_N, turn_embeddings_N), made by memvec.add_embedding_space.

CREATE TABLE memvec.embedding_spaces (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model text NOT NULL,
    dim integer NOT NULL CHECK (dim BETWEEN 1 AND 16000),
    query_prefix text NOT NULL DEFAULT '',
    document_prefix text NOT NULL DEFAULT '',
    min_similarity real,
    entry_table name NOT NULL UNIQUE,
    turn_table name NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (model, dim, query_prefix, document_prefix)
);
COMMENT ON TABLE memvec.embedding_spaces IS 'Models whose vectors may be compared with each other. min_similarity is the cosine below which two texts are unrelated for this model.';

CREATE TABLE memvec.embedding_work (
    space_id integer NOT NULL REFERENCES memvec.embedding_spaces (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('entry', 'turn')),
    row_id bigint NOT NULL,
    content_hash bytea NOT NULL,
    leased_until timestamptz NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    failed_at timestamptz,
    last_error text,
    PRIMARY KEY (space_id, kind, row_id)
);
COMMENT ON TABLE memvec.embedding_work IS 'Rows claimed for embedding: until when, how often it failed, when last, and why. One that is not leased may be claimed again.';

ALTER TABLE memvec.embedding_spaces ENABLE ROW LEVEL SECURITY;
ALTER TABLE memvec.embedding_work ENABLE ROW LEVEL SECURITY;

-- How a recall narrows both legs. own/person_key: the caller's rows; others: ordinary themes too, all of them when
-- themes is NULL.
CREATE TYPE memvec.recall_filter AS (
    own text,
    person_key uuid,
    others boolean,
    themes text [],
    target text,
    session_id text,
    exclude_session text,
    since timestamptz,
    until timestamptz
);

CREATE TYPE memvec.fused_row AS (
    id bigint,
    rrf_score double precision,
    vector_rank integer,
    text_rank integer,
    similarity real,
    words_share real,
    themes text []
);
