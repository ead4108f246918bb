"""The privilege matrix: every object of the schema, every role, as db/privileges.txt says."""

from __future__ import annotations

from conftest import Database

from privileges import TARGET, difference, matrix


def test_nobody_has_a_right_that_is_not_written_down(database: Database) -> None:
    with database.admin() as admin:
        admin.execute("SELECT memvec.add_embedding_space('m', 8)")
        changed = difference(TARGET.read_text(), matrix(admin))
    assert not changed, f"Privileges have changed. If that is meant: make privileges.\n{changed}"


def test_a_grant_shows_as_one_changed_line(database: Database) -> None:
    with database.admin() as admin, admin.transaction(force_rollback=True):
        before = matrix(admin)
        admin.execute("GRANT SELECT (value) ON memvec.settings TO memvec_runtime")
        admin.execute("GRANT EXECUTE ON FUNCTION memvec.scan_pii TO PUBLIC")
        admin.execute("GRANT DELETE ON memvec.maintenance_log TO hermes WITH GRANT OPTION")
        changed = [line for line in difference(before, matrix(admin)).splitlines() if line[:1] == "+"][1:]
    words = [line[1:].split() for line in changed]
    assert ["-", "-", "-", "-", "-", "table", "maintenance_log", "hermes=d*"] in words
    assert ["-", "r", "-", "-", "-", "column", "settings.value"] in words
    assert any(line[0] == "X" and line[6].startswith("scan_pii(") for line in words)
    assert len(words) == 3
