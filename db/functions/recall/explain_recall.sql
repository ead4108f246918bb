-- Why a row was found, or was not: the way of recall_memory and recall_conversation once more, with an eye on one row. A row
-- that the caller may not see is no row.
CREATE OR REPLACE FUNCTION memvec.explain_recall(
    p_identity text,
    p_id bigint,
    p_query text DEFAULT NULL,
    p_embedding public.halfvec DEFAULT NULL,
    p_space integer DEFAULT NULL,
    p_kind text DEFAULT 'entry',
    p_scope text DEFAULT 'own',
    p_target text DEFAULT NULL,
    p_limit integer DEFAULT 10,
    p_session_id text DEFAULT NULL,
    p_exclude_session text DEFAULT NULL,
    p_since timestamptz DEFAULT NULL,
    p_until timestamptz DEFAULT NULL,
    p_min_similarity real DEFAULT NULL,
    p_half_life interval DEFAULT NULL,
    p_governance jsonb DEFAULT NULL
)
RETURNS TABLE (
    step text,
    outcome text,
    rank integer,
    score double precision,
    candidates integer,
    terms text [],
    detail text
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
ROWS 10
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    c_deepest CONSTANT integer := 1000;
    v_visible memvec.recall_filter := memvec.resolve_filter(p_identity, 'all', NULL, NULL, NULL, NULL, NULL, p_governance);
    v_filter memvec.recall_filter := memvec.resolve_filter(
        p_identity, p_scope, p_target, p_session_id, p_exclude_session, p_since, p_until, p_governance
    );
    v_limit integer := greatest(1, least(coalesce(p_limit, 10), 1000));
    v_depth integer := greatest(memvec.setting('rrf_depth')::integer, v_limit);
    v_wanted integer := v_limit;
    v_terms text[] := memvec.query_terms(p_query);
    v_row record;
    v_similarity real;
    v_theme boolean;
    v_target boolean;
    v_session boolean;
    v_time boolean;
    v_passed boolean;
    v_fused integer;
    v_shown record;
    v_near record;
    v_said record;
BEGIN
    IF p_kind = 'entry' THEN
        SELECT m.id, m.agent_identity, m.person_key, m.target, NULL::text AS session_id, m.updated_at AS seen, m.search,
               m.content_hash, m.embed
          INTO v_row
          FROM memvec.memory_entries AS m
         WHERE m.id = p_id
           AND memvec.in_scope(m.agent_identity, m.person_key,
                               v_visible.own, v_visible.person_key, v_visible.others, v_visible.themes);
    ELSIF p_kind = 'turn' THEN
        SELECT c.id, c.agent_identity, c.person_key, NULL::text AS target, c.session_id, c.ts AS seen, c.search,
               c.content_hash, c.embed
          INTO v_row
          FROM memvec.conversations AS c
         WHERE c.id = p_id
           AND memvec.in_scope(c.agent_identity, c.person_key,
                               v_visible.own, v_visible.person_key, v_visible.others, v_visible.themes);
    ELSE
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('"%s" is no kind of row', left(p_kind, 80)),
            HINT = 'Use entry or turn.';
    END IF;
    IF p_embedding IS NOT NULL THEN
        PERFORM memvec.checked_space(p_space, p_embedding);
    END IF;
    IF v_row.id IS NULL THEN
        RETURN;
    END IF;

    v_theme := v_row.agent_identity = v_filter.own
               OR v_filter.others AND NOT memvec.is_sink(v_row.agent_identity)
                  AND (v_filter.themes IS NULL OR v_row.agent_identity = ANY (v_filter.themes));
    v_target := v_filter.target IS NULL OR v_row.target = v_filter.target;
    v_session := (v_filter.session_id IS NULL OR v_row.session_id = v_filter.session_id)
                 AND (v_filter.exclude_session IS NULL OR v_row.session_id <> v_filter.exclude_session);
    v_time := (v_filter.since IS NULL OR v_row.seen >= v_filter.since) AND (v_filter.until IS NULL OR v_row.seen < v_filter.until);
    v_passed := memvec.in_scope(v_row.agent_identity, v_row.person_key,
                                v_filter.own, v_filter.person_key, v_filter.others, v_filter.themes);
    RETURN QUERY
        SELECT f.step, CASE WHEN f.passed THEN 'passed' ELSE 'removed' END, NULL::integer, NULL::double precision, NULL::integer,
               NULL::text[], f.detail
          FROM (VALUES
                   ('theme', v_theme, format('theme %s, scope %s', v_row.agent_identity, coalesce(memvec.clean_key(p_scope), 'own'))),
                   ('person', v_passed OR NOT v_theme, CASE WHEN v_row.person_key IS NULL THEN 'nobody''s' ELSE 'the caller''s' END),
                   ('target', v_target, v_row.target),
                   ('session', v_session, v_row.session_id),
                   ('time', v_time, v_row.seen::text)
               ) AS f (step, passed, detail)
         WHERE f.step <> CASE p_kind WHEN 'entry' THEN 'session' ELSE 'target' END;
    v_passed := v_passed AND v_target AND v_session AND v_time;

    SELECT s.similarity INTO v_similarity FROM memvec.similarities(p_kind, p_space, p_embedding, ARRAY[p_id]) AS s;
    -- The row that stands for the text, as the recall sees it.
    WITH fused AS MATERIALIZED (
        SELECT f.*
          FROM memvec.fused_rows(p_kind, p_query, p_embedding, p_space, v_filter, v_limit, p_min_similarity, p_half_life, c_deepest)
               WITH ORDINALITY
               AS f (id, rrf_score, vector_rank, text_rank, similarity, words_share, themes, position)
    ), shown AS (
        SELECT f.*
          FROM fused AS f
         WHERE f.id = p_id
            OR EXISTS (SELECT FROM memvec.memory_entries AS m
                        WHERE p_kind = 'entry' AND m.id = f.id AND m.content_hash = v_row.content_hash)
            OR EXISTS (SELECT FROM memvec.conversations AS c
                        WHERE p_kind = 'turn' AND c.id = f.id AND c.content_hash = v_row.content_hash)
    )
    SELECT s.id, s.rrf_score, s.position::integer AS position, s.id = p_id AS itself,
           CASE WHEN s.id = p_id THEN s.vector_rank END AS vector_rank,
           CASE WHEN s.id = p_id THEN s.text_rank END AS text_rank,
           (SELECT count(*)::integer FROM fused) AS candidates
      INTO v_shown
      FROM (VALUES (1)) AS one (row)
      LEFT JOIN shown AS s ON true;
    -- Copies made the recall look deeper into the legs.
    IF greatest(v_shown.vector_rank, v_shown.text_rank) > v_depth THEN
        v_depth := greatest(v_shown.vector_rank, v_shown.text_rank);
        v_wanted := v_depth;
    END IF;
    SELECT coalesce(v_shown.vector_rank, max(v.rank) FILTER (WHERE v.id = p_id)) AS rank, count(*)::integer AS candidates
      INTO v_near
      FROM memvec.vector_leg(p_kind, p_space, p_embedding, v_filter, v_depth, v_wanted) AS v
     WHERE p_embedding IS NOT NULL;
    SELECT coalesce(v_shown.text_rank, max(t.rank) FILTER (WHERE t.id = p_id)) AS rank,
           max(t.score) FILTER (WHERE t.id = p_id) AS score, count(*)::integer AS candidates,
           ARRAY(SELECT w.term FROM unnest(v_terms) AS w (term) WHERE v_row.search @@ memvec.term_query(w.term)) AS held
      INTO v_said
      FROM memvec.text_leg(p_kind, p_query, v_filter, v_depth, v_wanted) AS t;

    RETURN QUERY
        SELECT 'vector',
               CASE WHEN p_embedding IS NULL THEN 'not asked'
                    WHEN v_similarity IS NULL THEN 'no vector'
                    WHEN NOT v_passed THEN 'removed'
                    WHEN v_near.rank IS NULL THEN 'missed'
                    ELSE 'found'
               END,
               v_near.rank, v_similarity::double precision, v_near.candidates, NULL::text[],
               CASE WHEN p_embedding IS NULL THEN 'the question came without a vector'
                    WHEN public.l2_norm(p_embedding) = 0 THEN 'the question''s vector is zero and is near to nothing'
                    WHEN v_similarity IS NULL AND NOT v_row.embed THEN 'the row is never embedded'
                    WHEN v_similarity IS NULL THEN 'the row has no vector in this space yet'
                    WHEN v_passed AND v_near.rank IS NULL THEN 'other rows are nearer'
               END;
    RETURN QUERY
        SELECT 'floor',
               CASE WHEN p_min_similarity IS NULL OR v_similarity IS NULL THEN 'not asked'
                    WHEN v_similarity >= p_min_similarity THEN 'passed'
                    ELSE 'removed'
               END,
               NULL::integer, p_min_similarity::double precision, NULL::integer, NULL::text[],
               CASE WHEN p_min_similarity IS NULL THEN 'no floor was asked for'
                    WHEN v_similarity IS NULL THEN 'there is no similarity to hold against it'
                    WHEN v_similarity < p_min_similarity THEN 'from the vector leg only'
               END;
    RETURN QUERY
        SELECT 'words',
               CASE WHEN v_terms = '{}' THEN 'not asked'
                    WHEN NOT v_passed THEN 'removed'
                    WHEN v_said.rank IS NULL THEN 'missed'
                    ELSE 'found'
               END,
               v_said.rank, v_said.score, v_said.candidates, v_said.held,
               CASE WHEN v_terms = '{}' THEN 'the question has no words'
                    WHEN v_said.held = '{}' THEN 'the row holds none of the words ' || array_to_string(v_terms, ', ')
                    WHEN v_passed AND v_said.rank IS NULL THEN 'other rows hold more or rarer words'
                    WHEN v_said.held <> v_terms THEN 'without ' || array_to_string(
                        ARRAY(SELECT t.term FROM unnest(v_terms) AS t (term) WHERE t.term <> ALL (v_said.held)), ', '
                    )
               END;
    RETURN QUERY
        SELECT 'fused',
               CASE WHEN NOT v_passed THEN 'removed'
                    WHEN v_shown.position <= v_limit THEN CASE WHEN v_shown.itself THEN 'found' ELSE 'copy found' END
                    ELSE 'missed'
               END,
               CASE WHEN v_passed THEN v_shown.position END,
               CASE WHEN v_passed THEN v_shown.rrf_score END,
               v_shown.candidates,
               NULL::text[],
               CASE WHEN NOT v_passed THEN 'a filter removed the row'
                    WHEN NOT v_shown.itself THEN format('the same text is shown as row %s', v_shown.id)
                    WHEN v_shown.position > v_limit THEN format('beyond the limit of %s', v_limit)
                    WHEN v_shown.id IS NULL AND v_said.rank IS NOT NULL THEN format('beyond the first %s', c_deepest)
                    WHEN v_shown.id IS NULL THEN 'no leg found it'
               END;
END;
$$;

COMMENT ON FUNCTION memvec.explain_recall IS
'Returns why a question finds a row or does not, step by step: the filters (theme, person, target of an entry or session of a turn, time: passed or removed), then vector, floor, words and fused. outcome of a leg: found, missed (other rows come before it), removed (by a filter), no vector (none in this space), not asked; of fused also copy found (the same text stands for it). rank and score are those of the step (cosine similarity, the floor, the words'' score, the fused score), candidates is how many rows the step had, terms the question''s words that the row holds, detail says it in words. p_id and p_kind (entry or turn) name the row; the other arguments are those of recall_memory and recall_conversation. No row at all: there is none of that id that the caller may see in scope all. Errors: MV001, MV002, MV003, MV004, MV005.';
REVOKE ALL ON FUNCTION memvec.explain_recall FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.explain_recall TO memvec_runtime, memvec_reader, memvec_admin;
