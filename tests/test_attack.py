"""An attacker holds the password of a bound login and a psql prompt, and tries to read, write and forge.

Every attempt must end in a refusal, or give nothing; whatever the server says meanwhile (rows, errors with
all their parts, notices, plans) must not hold the canary that is in everything that belongs to others, in any
spelling, nor the database's secret; and nothing of theirs, nor the audit, may have changed. The server asks
for passwords, unlike the one that the other tests share.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from psycopg import sql

from pgserver import Server, run_sql, throwaway_server

CANARY: Final = "zqxcanary"
OWN: Final = "mallory-own"
PERSON: Final = "agent:main:whatsapp:dm:15550109999"
SOURCE: Final = "5f0b6c0e-0000-4000-8000-00000000c0de"
OP: Final = "5f0b6c0e-0000-4000-8000-0000000000ff"
VERBOSE: Final = (
    "-c debug_print_parse=on -c debug_print_rewritten=on -c debug_print_plan=on -c client_min_messages=log"
)
_RECALL: Final = "SELECT content FROM memvec.recall_memory(%s)"


@dataclass
class Scene:
    """A database with victims, and the logins of the attackers: one bound to a theme, one to a sink."""

    server: Server
    passwords: dict[str, str]
    forbidden: list[str] = field(default_factory=list[str])
    entry: int = 0
    person_entry: int = 0
    before: dict[str, str] = field(default_factory=dict[str, str])
    sessions: dict[str, psycopg.Connection[Any]] = field(default_factory=dict[str, psycopg.Connection[Any]])

    def dsn(self, login: str) -> str:
        return psycopg.conninfo.make_conninfo(self.server.dsn("prey", login), password=self.passwords[login])

    def admin(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.server.dsn("prey"), autocommit=True)

    def state(self) -> dict[str, str]:
        """What must not change: everything but rows that are the attackers' own."""
        parts = " UNION ALL ".join(
            f"SELECT '{table}', md5(string_agg(t::text, '|' ORDER BY t::text)) FROM memvec.{table} AS t"
            f" WHERE {condition}"
            for table, condition in _MUST_STAY.items()
        )
        return dict(self.connection("postgres").execute(parts.encode()).fetchall())

    def connection(self, login: str) -> psycopg.Connection[Any]:
        """A session that is used again: whoever is done throws away what was left behind in it."""
        if login not in self.sessions:
            dsn = self.server.dsn("prey") if login == "postgres" else self.dsn(login)
            self.sessions[login] = psycopg.connect(dsn, autocommit=True, prepare_threshold=None)
        return self.sessions[login]


_OTHERS: Final = "agent_identity <> 'mallory-own'"
_MUST_STAY: Final = {
    "memory_entries": f"{_OTHERS} AND (person_key IS NULL OR content ~ '{CANARY}')",
    "conversations": f"{_OTHERS} AND (person_key IS NULL OR content ~ '{CANARY}')",
    "memory_history": _OTHERS,
    "entry_embeddings_1": _OTHERS,
    "memory_agents": f"{_OTHERS} AND agent_identity <> 'whatsapp-dm'",
    "memory_agent_edges": "parent_identity <> 'mallory-own' AND parent_person IS NULL",
    "entry_sources": f"source = '{SOURCE}' AND entry_id IN"
    f" (SELECT id FROM memvec.memory_entries WHERE {_OTHERS})",
    "identity_aliases": "true",
    "role_identities": "true",
    "settings": "true",
    "secrets": "true",
    "maintenance_log": "true",
    "applied_ops": f"op_id = '{OP}'",
}


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    from hermes_pgsql.migrate import migrate

    major = int(os.environ.get("PGSQL_TEST_PG", "18"))
    folder = Path(tempfile.mkdtemp(prefix="hba"))
    folder.chmod(0o755)
    rules = folder / "pg_hba.conf"
    rules.write_text("local all postgres trust\nlocal all all scram-sha-256\n")
    rules.chmod(0o644)
    settings = [f"hba_file={rules}"]
    if major >= 18:
        settings.append("shared_preload_libraries=pg_stat_statements")
    try:
        with throwaway_server(major, settings) as server:
            run_sql(server.dsn(), "CREATE DATABASE prey")
            migrate(server.dsn("prey"))
            scene = _populated(server, with_statements=major >= 18)
            yield scene
            for session in scene.sessions.values():
                session.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _populated(server: Server, *, with_statements: bool) -> Scene:
    scene = Scene(server, {name: secrets.token_hex(12) for name in ("mallory", "mallory_dm", "hermes")})
    with scene.admin() as admin:
        for name in ("mallory", "mallory_dm"):
            admin.execute(sql.SQL("CREATE ROLE {} LOGIN IN ROLE memvec_runtime").format(sql.Identifier(name)))
        for name, password in scene.passwords.items():
            change = sql.SQL("ALTER ROLE {} PASSWORD {}")
            admin.execute(change.format(sql.Identifier(name), sql.Literal(password)))
        if with_statements:
            admin.execute("CREATE EXTENSION pg_stat_statements")
        admin.execute(
            "SELECT memvec.bind_role('mallory', %s), memvec.bind_role('mallory_dm', 'whatsapp-dm')", [OWN]
        )
        admin.execute("SELECT memvec.add_embedding_space('m', 3)")
        admin.execute("INSERT INTO memvec.identity_aliases VALUES ('boss', 'victim')")
        secret = admin.execute("SELECT value FROM memvec.secrets").fetchone()
        assert secret is not None
        scene.forbidden = _spellings(CANARY.encode()) + _spellings(secret[0])
    with psycopg.connect(scene.dsn("hermes"), autocommit=True) as hermes:
        for statement in (
            "SELECT memvec.hello('victim')",
            f"SELECT memvec.register_agent('victim', '{{\"note\": \"{CANARY}\"}}')",
            f"SELECT memvec.add_memory('victim', 'memory', '{CANARY} old', '{{}}')",
            "SELECT memvec.replace_memory('victim', 'memory', 'old', 'nothing left')",
            f"SELECT memvec.append_turn('victim', 'victim-session', 'user', 'says {CANARY} to all')",
            f"SELECT memvec.append_turn('{PERSON}', 'dm-session', 'user', 'her {CANARY}')",
            f"SELECT memvec.record_delegation('victim', 'victim-session', 'child-{CANARY}')",
            f"SELECT memvec.sync_memories('victim', '{SOURCE}', 'memory', '{{file {CANARY}}}')",
            f"SELECT memvec.add_memory('{OWN}', 'memory', 'all mine')",
        ):
            hermes.execute(statement.encode())
        scene.entry = _first(
            hermes,
            f"SELECT id FROM memvec.add_memory('victim', 'memory', 'the {CANARY} note',"
            f' \'{{"k": "{CANARY}"}}\','
            " p_embedding => '[1,2,3]', p_space => 1)",
        )
        scene.person_entry = _first(
            hermes, f"SELECT id FROM memvec.add_memory('{PERSON}', 'memory', 'secret {CANARY}')"
        )
        hermes.execute(
            "SELECT * FROM memvec.apply_ops(jsonb_build_array(jsonb_build_object('op_id', %s::text,"
            " 'op', 'add_memory',"
            " 'identity', 'victim', 'target', 'memory', 'content', 'posted %s')))".replace(
                "posted %s", f"posted {CANARY}"
            ).encode(),
            [OP],
        )
    with scene.admin() as admin:
        admin.execute("SELECT memvec.housekeeping()")
        admin.execute("ANALYZE")
    scene.before = scene.state()
    return scene


def _first(connection: psycopg.Connection[Any], statement: str) -> Any:
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return row[0]


def _spellings(value: bytes) -> list[str]:
    """The ways in which bytes could show in what a server says."""
    numbers = " ".join(str(byte - 256 if byte > 127 else byte) for byte in value)
    known = [value.hex(), base64.b64encode(value).decode().rstrip("="), numbers]
    return known + ([value.decode()] if value.isascii() else [])


class Heard:
    """All that the server told a session."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.rows: list[tuple[Any, ...]] = []
        self.sqlstate: str | None = None

    def diagnostic(self, diag: Any) -> None:
        for name in dir(diag):
            if name.startswith(
                ("message", "context", "internal", "source", "column", "table", "constraint", "datatype")
            ):
                self.parts.append(str(getattr(diag, name)))

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join([*self.parts, repr(self.rows)]))


def said(scene: Scene, login: str, script: str, options: str = "") -> Heard:
    """What an attacker hears who runs the statements of ``script`` until one fails."""
    heard = Heard()
    if options:
        with psycopg.connect(scene.dsn(login), autocommit=True, options=options) as connection:
            _listen(connection, script, heard)
        return heard
    connection = scene.connection(login)
    try:
        _listen(connection, script, heard)
    finally:
        connection.remove_notice_handler(heard.diagnostic)
        connection.execute("ROLLBACK")
        connection.execute("DISCARD ALL")
    return heard


def _listen(connection: psycopg.Connection[Any], script: str, heard: Heard) -> None:
    connection.add_notice_handler(heard.diagnostic)
    for statement in filter(str.strip, re.split(r";\s*$", script, flags=re.MULTILINE)):
        try:
            cursor = connection.execute(statement.encode(), prepare=False)
            heard.rows = []
            if cursor.description is not None:
                heard.rows = cursor.fetchall()
                heard.parts.append(repr(heard.rows))
        except psycopg.Error as error:
            heard.sqlstate = error.sqlstate or "client"
            heard.parts.append(str(error))
            heard.diagnostic(error.diag)
            return


def leaks(scene: Scene, text: str) -> list[str]:
    return [spelling for spelling in scene.forbidden if spelling.lower() in text.lower()]


def attempts() -> list[tuple[str, str, str, list[str]]]:
    """Name, login, statements and allowed outcomes of each attempt in attempts.sql."""
    text = (Path(__file__).parent / "attempts.sql").read_text()
    found: list[tuple[str, str, str, list[str]]] = []
    for block in re.split(r"^-- (?=.*\|)", text, flags=re.MULTILINE)[1:]:
        heading, _, script = block.partition("\n")
        name, login, outcomes = (part.strip() for part in heading.split("|"))
        found.append((name, login, script.strip(), outcomes.split()))
    return found


ATTEMPTS: Final = attempts()


@pytest.mark.parametrize(("name", "login", "script", "outcome"), ATTEMPTS, ids=[row[0] for row in ATTEMPTS])
def test_every_attempt_fails(scene: Scene, name: str, login: str, script: str, outcome: list[str]) -> None:
    for place, value in {
        "<ENTRY>": str(scene.entry),
        "<PERSON_ENTRY>": str(scene.person_entry),
        "<PERSON>": PERSON,
        "<SOURCE>": SOURCE,
        "<OP>": OP,
    }.items():
        script = script.replace(place, value)
    heard = said(scene, login, script)
    assert not leaks(scene, heard.text)
    if heard.sqlstate is not None:
        assert heard.sqlstate in outcome, heard.text
    elif "harmless" not in outcome:
        assert "nothing" in outcome, f"not refused: {heard.text}"
        assert all(value is None for row in heard.rows for value in row), heard.text
    assert scene.state() == scene.before
    del name


def test_the_canary_would_be_heard(scene: Scene) -> None:
    """The exact key does open the person's rows, so the silence of the other attempts means something."""
    heard = said(scene, "mallory_dm", _RECALL % f"'{PERSON}', 'secret'")
    assert leaks(scene, heard.text)
    secret = (
        scene.connection("postgres").execute("SELECT encode(value, 'hex') FROM memvec.secrets").fetchall()
    )
    assert leaks(scene, repr(secret))


def test_passwords_are_asked_for(scene: Scene) -> None:
    for password in ("", "wrong"):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(
                psycopg.conninfo.make_conninfo(scene.server.dsn("prey", "mallory"), password=password or "x")
            )
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(f"{scene.dsn('mallory')} replication=database")


def test_no_table_opens_in_any_way(scene: Scene) -> None:
    with scene.admin() as admin:
        tables = [
            row[0]
            for row in admin.execute(
                "SELECT relname FROM pg_class"
                " WHERE relnamespace = 'memvec'::regnamespace AND relkind IN ('r', 'v', 'S')"
            )
        ]
    assert len(tables) > 20
    with psycopg.connect(scene.dsn("mallory"), autocommit=True) as connection:
        for table in tables:
            for form in (
                "TABLE memvec.{}",
                "DELETE FROM memvec.{}",
                "COPY memvec.{} TO STDOUT",
                "SELECT 1 FROM memvec.{} LIMIT 0",
            ):
                # What deletes from a view or sequence is wrong before it is forbidden.
                with pytest.raises(
                    (
                        psycopg.errors.InsufficientPrivilege,
                        psycopg.errors.ObjectNotInPrerequisiteState,
                        psycopg.errors.WrongObjectType,
                    )
                ):
                    connection.execute(form.format(table).encode())


def test_no_function_that_is_not_granted_runs(scene: Scene) -> None:
    with scene.admin() as admin:
        calls = [
            row[0]
            for row in admin.execute("""
            SELECT format('SELECT memvec.%I(%s)', p.proname,
                          (SELECT string_agg('NULL::' || format_type(t, NULL), ', ')
                             FROM unnest(p.proargtypes) AS t))
              FROM pg_proc AS p
             WHERE p.pronamespace = 'memvec'::regnamespace
               AND NOT has_function_privilege('mallory', p.oid, 'EXECUTE')""")
        ]
    assert len(calls) > 50
    with psycopg.connect(scene.dsn("mallory"), autocommit=True) as connection:
        for call in calls:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(call.encode())


def test_functions_given_nothing_tell_nothing(scene: Scene) -> None:
    """Every granted function with NULL for every argument."""
    with scene.admin() as admin:
        calls = [
            row[0]
            for row in admin.execute("""
            SELECT format('SELECT * FROM memvec.%I(%s)', p.proname,
                          (SELECT string_agg('NULL::' || format_type(t, NULL), ', ')
                             FROM unnest(p.proargtypes) AS t))
              FROM pg_proc AS p
             WHERE p.pronamespace = 'memvec'::regnamespace
               AND has_function_privilege('mallory', p.oid, 'EXECUTE')""")
        ]
    for call in calls:
        assert not leaks(scene, said(scene, "mallory", call, VERBOSE).text)
    assert scene.state() == scene.before


def test_plans_and_parse_trees_show_nothing(scene: Scene) -> None:
    script = ";\n".join(
        (
            _RECALL % "'mallory-own', 'note', '[1,2,3]', 1, 'all'",
            "SELECT * FROM memvec.recall_conversation('mallory-own', 'says', p_scope => 'all')",
            "SELECT * FROM memvec.prefetch('mallory-own', 'note')",
            f"SELECT * FROM memvec.sync_memories('mallory-own', '{SOURCE}', 'memory', '{{mine}}')",
            f'SELECT * FROM memvec.apply_ops(\'[{{"op_id": "{OP}", "op": "append_turn",'
            ' "identity": "mallory-own"}]\')',
            "SELECT * FROM memvec.stats()",
            "SELECT * FROM memvec.embedding_coverage()",
            "SELECT * FROM memvec.housekeeping()",
        )
    )
    for setting in ("", " -c plan_cache_mode=force_custom_plan", " -c plan_cache_mode=force_generic_plan"):
        heard = said(scene, "mallory", script, VERBOSE + setting)
        assert heard.sqlstate is None, heard.text[-2000:]
        assert not leaks(scene, heard.text)
    person = ";\n".join(
        (
            "SELECT * FROM memvec.add_memory('agent:main:whatsapp:dm:15550100000', 'memory', 'mine')",
            "SELECT * FROM memvec.canonical_identity('agent:main:whatsapp:dm:15550100000')",
            _RECALL % "'agent:main:whatsapp:dm:15550100000', 'secret'",
        )
    )
    heard = said(scene, "mallory_dm", person, VERBOSE + " -c plan_cache_mode=force_custom_plan")
    assert heard.sqlstate is None
    assert not leaks(scene, heard.text)


def test_a_text_is_not_confirmed(scene: Scene) -> None:
    """Whoever guesses a text of others is not told that it is there."""
    text = f"the {CANARY} note"
    with psycopg.connect(scene.dsn("mallory"), autocommit=True) as mallory:
        assert (
            _first(mallory, f"SELECT outcome FROM memvec.add_memory('{OWN}', 'memory', '{text}')") == "added"
        )
        assert (
            _first(mallory, f"SELECT outcome FROM memvec.remove_memory('{OWN}', 'memory', '{text}')")
            == "removed"
        )
        said_too = f"'{OWN}', 'victim-session', 'user', 'says {CANARY} to all'"
        turn = f"SELECT outcome FROM memvec.append_turn({said_too})"
        assert _first(mallory, turn) == "added"
        # Even with the id of the victim's home.
        known = f"SELECT added FROM memvec.sync_memories('{OWN}', '{SOURCE}', 'memory', '{{file {CANARY}}}')"
        assert _first(mallory, known) == 1
        mallory.execute(f"SELECT memvec.sync_memories('{OWN}', '{SOURCE}', 'memory', '{{}}')".encode())
    with scene.admin() as admin:
        assert (
            _first(admin, f"SELECT count(*) FROM memvec.memory_entries WHERE content = 'file {CANARY}'") == 1
        )
        admin.execute("DELETE FROM memvec.conversations WHERE agent_identity = 'mallory-own'")
        admin.execute("DELETE FROM memvec.memory_history WHERE agent_identity = 'mallory-own'")


def test_what_one_does_is_recorded_under_ones_own_name(scene: Scene) -> None:
    with psycopg.connect(scene.dsn("mallory"), autocommit=True) as mallory:
        mallory.execute("SET application_name = 'hermes'")
        mallory.execute("SET ROLE memvec_runtime")
        mallory.execute(f"SELECT memvec.add_memory('{OWN}', 'memory', 'to go')".encode())
        mallory.execute(f"SELECT memvec.remove_memory('{OWN}', 'memory', 'to go')".encode())
    with scene.admin() as admin:
        acted = "SELECT acted_by FROM memvec.memory_history WHERE content = 'to go'"
        assert _first(admin, acted) == "mallory"


def test_a_batch_acts_only_for_oneself(scene: Scene) -> None:
    operations = ", ".join(
        f'{{"op_id": "{secrets.token_hex(16)}", "op": "{op}", "identity": "{identity}", "target": "memory",'
        f' "content": "x", "old_text": "note", "session_id": "s", "role": "user", "contents": [],'
        f' "source": "{SOURCE}"}}'
        for identity in ("victim", PERSON, "boss", OWN)
        for op in ("add_memory", "append_turn", "remove_memory", "sync_memories", "register_agent")
    )
    heard = said(scene, "mallory", f"SELECT outcome, error_code FROM memvec.apply_ops('[{operations}]')")
    assert heard.rows[:15] == [("error", "MV002")] * 15
    assert all(code is None for _, code in heard.rows[15:])
    assert not leaks(scene, heard.text)
    assert scene.state() == scene.before


def test_settings_that_stick_to_the_login_change_no_rule(scene: Scene) -> None:
    """Any login may change its own defaults, also for the sessions of whom it was stolen from."""
    keys = [
        "agent:main:whatsapp:dm:1555010111",
        "agent:main:telegram:dm:77:88",
        "sms:+1 (555) 010-0122",
        "x@example.com",
    ]
    ask = "SELECT " + ", ".join(f"(memvec.canonical_identity('{key}')).person_key" for key in keys)
    plain = said(scene, "mallory_dm", ask).rows
    try:
        for setting in (
            "standard_conforming_strings = off",
            "transform_null_equals = on",
            "search_path = pg_temp",
        ):
            said(scene, "mallory_dm", f"ALTER ROLE mallory_dm SET {setting}")
        fresh = "-c application_name=fresh"
        assert said(scene, "mallory_dm", "SHOW standard_conforming_strings", fresh).rows == [("off",)]
        heard = said(scene, "mallory_dm", ask, fresh)
        assert heard.rows == plain, heard.text
        assert len(set(plain[0])) == len(keys)
    finally:
        with scene.admin() as admin:
            admin.execute("ALTER ROLE mallory_dm RESET ALL")


def test_what_others_run_is_not_shown(scene: Scene) -> None:
    with psycopg.connect(scene.dsn("hermes")) as hermes:
        hermes.execute(f"SELECT memvec.add_memory('{PERSON}', 'memory', 'live {CANARY}')".encode())
        watch = "SELECT a.*, l.* FROM pg_stat_activity AS a LEFT JOIN pg_locks AS l USING (pid)"
        assert not leaks(scene, said(scene, "mallory", watch).text)
        if hermes.info.server_version >= 180000:
            heard = said(scene, "mallory", "SELECT query FROM public.pg_stat_statements")
            assert heard.sqlstate is None
            assert not leaks(scene, heard.text)
        hermes.rollback()


@pytest.mark.parametrize(
    "commands",
    [
        r"\copy memvec.secrets TO STDOUT",
        r"\copy (SELECT * FROM memvec.memory_entries) TO STDOUT",
        r"\lo_import /etc/passwd" + "\nSELECT content FROM memvec.v_memory_entries;",
        "SELECT 'TABLE memvec.' || relname FROM pg_class"
        r" WHERE relnamespace = 'memvec'::regnamespace AND relkind = 'r' \gexec",
        r"\sf memvec.person_key" + "\nTABLE memvec.secrets;",
        r"\set VERBOSITY verbose"
        + "\nSELECT * FROM memvec.recall_memory('victim', 'note');"
        + "\n\\errverbose",
    ],
)
def test_psql_helps_nobody(scene: Scene, commands: str) -> None:
    done = subprocess.run(
        [str(scene.server.bin_dir / "psql"), "-X", "-d", scene.server.dsn("prey", "mallory")],
        input=commands + "\n",
        env=os.environ | {"PGPASSWORD": scene.passwords["mallory"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ERROR:" in done.stderr
    assert not leaks(scene, done.stdout + done.stderr)
    assert scene.state() == scene.before


def test_a_dump_is_refused(scene: Scene) -> None:
    done = subprocess.run(
        [str(scene.server.bin_dir / "pg_dump"), "-n", "memvec", "-d", scene.server.dsn("prey", "mallory")],
        env=os.environ | {"PGPASSWORD": scene.passwords["mallory"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "permission denied" in done.stderr
    assert not leaks(scene, done.stdout + done.stderr)
