BEGIN;
SELECT plan(5);
SELECT memvec_tests.alone();

SELECT is(memvec_tests.callers('memvec.visible_themes'), '{}', 'internal');

-- As the owner of the function, for any login: no login may call it.
CREATE FUNCTION pg_temp.seen_by(p_login text) RETURNS text[]
LANGUAGE plpgsql
AS $$
DECLARE
    v_themes text[];
BEGIN
    GRANT EXECUTE ON FUNCTION memvec.visible_themes() TO PUBLIC;
    PERFORM memvec_tests.act_as(p_login);
    v_themes := memvec.visible_themes();
    RESET SESSION AUTHORIZATION;
    RETURN v_themes;
END
$$;

SELECT is(pg_temp.seen_by('hermes'), NULL, 'an unbound role: every theme');
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.bind_role('tap_bound', 'visible_themes');
SELECT memvec.set_setting('require_binding', 'true');
RESET SESSION AUTHORIZATION;
SELECT is(pg_temp.seen_by('tap_bound'), '{visible_themes}', 'a bound one: its own');
SELECT is(pg_temp.seen_by('hermes'), '{}', 'an unbound one where binding is required: none');
SELECT memvec_tests.act_as('tap_admin');
SELECT memvec.bind_role('tap_bound', 'visible_themes', true);
RESET SESSION AUTHORIZATION;
SELECT is(pg_temp.seen_by('tap_bound'), NULL, 'one that may read all: every theme');

SELECT * FROM finish();
ROLLBACK;
