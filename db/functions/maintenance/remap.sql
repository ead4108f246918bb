-- One transaction. Writers of both themes are kept out meanwhile; who waited for the old one finds the alias and goes on in the
-- new. Vectors are moved after their rows are locked, because whoever stores one holds its row.
CREATE OR REPLACE FUNCTION memvec.remap(
    p_old text, p_new text DEFAULT NULL, p_dry_run boolean DEFAULT true, p_force boolean DEFAULT false
)
RETURNS TABLE (table_name text, action text, rows bigint, remaining bigint)
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    c_quiet CONSTANT integer := 10;
    v_ends record;
    v_held record;
    v_entries memvec.twin[];
    v_turns memvec.twin[];
    v_dry_run boolean := coalesce(p_dry_run, true);
    v_twins integer;
    v_roles text;
    v_changes memvec.change[];
BEGIN
    PERFORM memvec.assert_read_committed();
    v_ends := memvec.remap_ends(p_old, p_new);
    IF NOT v_dry_run THEN
        PERFORM memvec.hold_themes(ARRAY[v_ends.old_theme, v_ends.new_theme]);
        v_held := memvec.remap_ends(p_old, p_new);
        IF v_held IS DISTINCT FROM v_ends THEN
            RAISE EXCEPTION USING
                ERRCODE = '40001',
                MESSAGE = 'aliases or settings changed while remap waited for the theme',
                HINT = 'Look at the dry run again.';
        END IF;
    END IF;
    -- Under the lock: the first writer of a theme may just have been waited for.
    IF NOT memvec.is_sink(v_ends.new_theme) THEN
        PERFORM memvec.assert_known(ARRAY[v_ends.old_theme, memvec.clean_key(p_old)]);
    END IF;

    v_entries := memvec.entry_twins(v_ends.old_theme, v_ends.new_theme, v_ends.person_key);
    v_turns := memvec.turn_twins(v_ends.old_theme, v_ends.new_theme, v_ends.person_key);
    v_twins := coalesce(cardinality(v_entries), 0) + coalesce(cardinality(v_turns), 0);
    v_roles := memvec.widened_roles(v_ends.old_theme, v_ends.new_theme);
    IF NOT v_dry_run AND p_force IS NOT TRUE AND v_twins > c_quiet THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('%s rows are in "%s" already and would be merged', v_twins, v_ends.new_theme),
            HINT = format('Are these really the same theme? Then use p_force => true. Up to %s need no force.', c_quiet);
    END IF;
    IF NOT v_dry_run AND p_force IS NOT TRUE AND v_roles IS NOT NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MV001',
            MESSAGE = format('both themes hold rows, and these roles are bound to only one of them: %s', v_roles),
            DETAIL = format('They would see all rows of "%s" afterwards.', v_ends.new_theme),
            HINT = 'If they may, use p_force => true, or bind them to both first.';
    END IF;

    v_changes := memvec.remap_counts(v_ends.old_theme, v_ends.new_theme, v_entries, v_turns, v_ends.alias);
    IF NOT v_dry_run THEN
        PERFORM memvec.hold_rows(
            ARRAY(SELECT m.id FROM memvec.memory_entries AS m WHERE m.agent_identity = v_ends.old_theme
                  UNION ALL SELECT t.kept FROM unnest(v_entries) AS t),
            ARRAY(SELECT c.id FROM memvec.conversations AS c WHERE c.agent_identity = v_ends.old_theme
                  UNION ALL SELECT t.kept FROM unnest(v_turns) AS t)
        );
        PERFORM memvec.merge_entries(v_entries);
        PERFORM memvec.merge_turns(v_turns);
        PERFORM memvec.move_records(v_ends.old_theme, v_ends.new_theme, v_ends.person_key, v_ends.kind, v_ends.alias);
        PERFORM memvec.move_rows(v_ends.old_theme, v_ends.new_theme, v_ends.person_key);
        -- Counted again, for the proof that nothing was left behind.
        SELECT array_agg(ROW(c.table_name, c.action, c.rows, coalesce(s.rows, 0))::memvec.change)
          INTO v_changes
          FROM unnest(v_changes) AS c
          LEFT JOIN memvec.scope_counts(ARRAY[v_ends.old_theme], NULL, true) AS s ON s.table_name = c.table_name;
    END IF;
    PERFORM memvec.note_changes(
        'remap', v_dry_run,
        jsonb_build_object(
            -- A chat's key is never logged.
            'old', CASE WHEN memvec.classify_key(memvec.clean_key(p_old)) NOT IN ('direct', 'group') THEN v_ends.old_theme END,
            'new', v_ends.new_theme, 'person', v_ends.person_key, 'force', p_force
        ),
        v_changes
    );
    RETURN QUERY SELECT c.table_name, c.action, c.rows, c.remaining FROM unnest(v_changes) AS c ORDER BY 1, 2;
END;
$$;

COMMENT ON FUNCTION memvec.remap IS
'Moves everything of theme p_old to theme p_new, under a lock that writers wait for, and returns for each table how many rows are moved or merged, and how many remain under the old name (0). Of a text that both hold one row stays: with a vector if either has one, the newer metadata over the older, all sources. History, edges, registry and role bindings follow, and ttl_days unless p_new has its own or holds turns; the old name stays as an alias of the new, so that later writes land there too. p_old may be the raw key of a chat (rows imported under it): they go to its sink with their person, and p_new is left away. p_force: needed when more than 10 rows would be merged, or when both themes hold rows and a role is bound to only one of them (it sees both afterwards). A dry run, the default, only counts. Errors: MV001 a blank name, a theme that is not there or a sink as p_old, the same theme twice, a sink or a theme that is not allowed as p_new, force needed; MV006; MV008 a writer held a theme too long.';
REVOKE ALL ON FUNCTION memvec.remap FROM public, memvec_runtime, memvec_embedder, memvec_reader, memvec_admin;
GRANT EXECUTE ON FUNCTION memvec.remap TO memvec_admin;
