"""doctor finds what is wrong and names the fix: one fault at a time is planted in what was healthy before."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sqlite3
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Database, TestServer
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_pgsql import pool
from hermes_pgsql.cli import main
from hermes_pgsql.config import load_command_line_settings
from hermes_pgsql.doctor import Finding, examine, exit_code
from hermes_pgsql.doctor import database as doctor_database
from hermes_pgsql.host import shim
from hermes_pgsql.outbox import Outbox

SECRET = "hunter2-but-longer"
DIM = 4
#: What a test run cannot have in order: the server is careless on purpose, there is no hermes-agent, and
#: the agents' login is not told everything.
EXPECTED = {("server", "durability"), ("host", "discovery"), ("roles", "bindings of others")}


class Endpoint(BaseHTTPRequestHandler):
    """An embedding service whose manners the test decides."""

    status = 200
    vector: Callable[[], list[Any]] = staticmethod(lambda: [0.5, 0.5, 0.5, 0.5])
    delay = 0.0

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        time.sleep(self.delay)
        vector = type(self).vector()
        data = [{"index": place, "embedding": vector} for place in range(len(texts))]
        reply = json.dumps({"model": body["model"], "data": data}).encode()
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def endpoint_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@dataclass
class Patient:
    """A home, a database and an endpoint with nothing wrong, until the test plants something."""

    home: Path
    database: Database
    template: str
    config: dict[str, Any]
    monkeypatch: pytest.MonkeyPatch
    options: dict[str, str] = field(default_factory=dict)
    shared: bool = True

    def configure(self, **values: Any) -> None:
        self.config["memory"]["pgvector"] |= values
        self.write(yaml.safe_dump(self.config))

    def write(self, text: str) -> None:
        path = self.home / "config.yaml"
        path.write_text(text)
        path.chmod(0o600)

    def sql(self, *statements: str) -> None:
        """Do something to the database, which becomes the patient's own with the first call."""
        if self.shared:
            self.shared = False
            self.database = healthy_database(self.database.server, self.template)
            self.configure(dsn=self.database.runtime_dsn)
        with self.database.admin() as connection:
            for statement in statements:
                connection.execute(statement)  # pyright: ignore[reportArgumentType]

    def outbox(self) -> Outbox:
        return Outbox.open(self.home)

    def examine(self) -> list[Finding]:
        pool.close_all()
        settings = load_command_line_settings(self.home, overrides=self.options)
        return examine(self.home, settings)


LIMITS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")


def healthy_database(server: TestServer, template: str) -> Database:
    """A clone of the template, with the login's limits, which belong to a database and are not cloned."""
    name = f"memvec_{secrets.token_hex(4)}"
    server.create_database(name, template)
    for limit in LIMITS:
        change = sql.SQL("ALTER ROLE hermes IN DATABASE {} SET {} = '30s'")
        server.execute(change.format(sql.Identifier(name), sql.Identifier(limit)))
    return Database(server, name)


@pytest.fixture(scope="module")
def healthy(server: TestServer, template: str) -> Iterator[Database]:
    made = healthy_database(server, template)
    yield made
    server.drop_database(made.name)


@pytest.fixture
def patient(
    healthy: Database, template: str, tmp_path: Path, endpoint_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Patient]:
    for name in [name for name in os.environ if name.startswith(("HERMES_", "PG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr(shim, "host_python", lambda: None)
    for name, value in {"status": 200, "delay": 0.0, "vector": staticmethod(lambda: [0.5] * DIM)}.items():
        monkeypatch.setattr(Endpoint, name, value)
    embedding = {
        "embed_url": endpoint_url,
        "embed_model": "probe",
        "embed_dim": DIM,
        "embed_protocol": "openai",
    }
    config = {"memory": {"provider": "pgvector", "pgvector": {"dsn": healthy.runtime_dsn, **embedding}}}
    made = Patient(tmp_path, healthy, template, config, monkeypatch)
    made.configure()
    shim.install(tmp_path)
    yield made
    pool.close_all()
    if not made.shared:
        made.database.server.drop_database(made.database.name)


# The faults ----------------------------------------------------------------------------------------


def bad_value(p: Patient) -> None:
    p.configure(prefetch_limit=99)


def bad_yaml(p: Patient) -> None:
    p.options["dsn"] = p.database.runtime_dsn
    p.write("memory: [")


def open_env_file(p: Patient) -> None:
    (p.home / ".env").write_text("HERMES_PGSQL_DSN=''\n")
    (p.home / ".env").chmod(0o644)


def open_config_file(p: Patient) -> None:
    p.configure(dsn=make_conninfo(p.database.runtime_dsn, password=SECRET))
    (p.home / "config.yaml").chmod(0o644)


def no_api_key(p: Patient) -> None:
    p.configure(embed_api_key_env="DOCTOR_TEST_KEY")


def another_dsn(p: Patient) -> None:
    p.options["dsn"] = make_conninfo(p.database.runtime_dsn, application_name="other")


def home_not_there(p: Patient) -> None:
    p.options["dsn"] = p.database.runtime_dsn
    p.home = p.home / "elsewhere"


def not_chosen(p: Patient) -> None:
    p.config["memory"]["provider"] = "honcho"
    p.configure()


def no_shim(p: Patient) -> None:
    shim.remove(p.home)


def foreign_shim(p: Patient) -> None:
    (p.home / "plugins" / "pgvector" / "__init__.py").write_text("# somebody's own provider\n")


def old_shim(p: Patient) -> None:
    path = p.home / "plugins" / "pgvector" / "plugin.yaml"
    path.write_text(f"{shim.MARK}\nname: pgvector\nversion: 0.0.1\n")


def copy_of_shim(p: Patient) -> None:
    copy = p.home / "plugins" / "pgvector-old"
    copy.mkdir()
    (copy / "__init__.py").write_text("import hermes_pgsql")


def python_of_a_host(p: Patient, loader: str, package: str = "") -> None:
    """An interpreter whose hermes-agent is what ``loader`` says, and ``package`` our package there."""
    site = p.home.parent / f"{p.home.name}-site"
    for folder in ("plugins/memory", "agent"):
        (site / folder).mkdir(parents=True)
    (site / "plugins" / "__init__.py").write_text("")
    (site / "plugins" / "memory" / "__init__.py").write_text(loader)
    (site / "agent" / "__init__.py").write_text("")
    (site / "agent" / "memory_provider.py").write_text("class MemoryProvider: pass")
    if package:
        (site / "hermes_pgsql").mkdir()
        (site / "hermes_pgsql" / "__init__.py").write_text(package)
        (site / "hermes_pgsql" / "provider.py").write_text("")
    python = site / "python"
    root = Path(shim.__file__).parents[2]
    python.write_text(f'#!/bin/sh\nPYTHONPATH={site}:{root} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    p.monkeypatch.setattr(shim, "host_python", lambda: str(python))


def loader_of(folder: str, *, available: bool = True) -> str:
    return (
        "from agent.memory_provider import MemoryProvider\n"
        "class Provider(MemoryProvider):\n"
        f"    def is_available(self): return {available}\n"
        "    def unavailable_reason(self): return 'a library is missing'\n"
        f"def find_provider_dir(name): return {folder!r}\n"
        "def load_memory_provider(name): return Provider()\n"
    )


def host_cannot_import(p: Patient) -> None:
    python_of_a_host(p, loader_of(str(p.home / "plugins" / "pgvector")), "raise ImportError('no libpq')")


def host_has_another_version(p: Patient) -> None:
    python_of_a_host(p, loader_of(str(p.home / "plugins" / "pgvector")), "__version__ = '0.0.1'")


def host_takes_another_folder(p: Patient) -> None:
    python_of_a_host(p, loader_of("/opt/hermes/plugins/memory/pgvector"), same_version())


def host_cannot_use_it(p: Patient) -> None:
    python_of_a_host(p, loader_of(str(p.home / "plugins" / "pgvector"), available=False), same_version())


def same_version() -> str:
    from hermes_pgsql import __version__

    return f"__version__ = {__version__!r}"


def old_operation(p: Patient) -> None:
    p.outbox().put("add_memory", "ops", {"target": "memory", "content": "late"})
    with sqlite3.connect(p.outbox().path) as db:
        db.execute("UPDATE waiting SET put_at = put_at - 7200")
    db.close()


def refused_operation(p: Patient) -> None:
    from hermes_pgsql.drain import Drain

    p.outbox().put("append_turn", "ops", {"session_id": "s", "role": "bogus", "content": "hello there"})
    drain = Drain(p.database.runtime_dsn)
    drain.attach(p.outbox(), None)
    drain.flush(60)
    drain.stop(10)


def damaged_outbox(p: Patient) -> None:
    path = p.outbox().path
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(b"this is no database" * 500)
    path.chmod(0o600)


def lost_operation(p: Patient) -> None:
    p.outbox().put("add_memory", "ops", {"target": "memory", "content": "gone"})
    with sqlite3.connect(p.outbox().path) as db:
        db.execute("DELETE FROM waiting")
    db.close()


def outbox_is_a_folder(p: Patient) -> None:
    p.outbox().path.mkdir(mode=0o700, parents=True)
    p.outbox().path.parent.chmod(0o700)


def nobody_listens(p: Patient) -> None:
    p.configure(dsn="postgresql://hermes@127.0.0.1:9/memory")


def not_migrated(p: Patient) -> None:
    p.sql("DROP SCHEMA memvec CASCADE")


def login_without_rights(p: Patient) -> None:
    p.configure(dsn=p.database.make_login("pg_read_all_settings")[1])


def schema_too_old(p: Patient) -> None:
    p.sql(
        "DELETE FROM memvec.schema_migrations AS m"
        " WHERE m.version = (SELECT max(version) FROM memvec.schema_migrations)"
    )


def schema_too_new(p: Patient) -> None:
    p.sql("INSERT INTO memvec.schema_migrations VALUES (9999, '9999_later.sql', repeat('0', 64))")


def schema_differs(p: Patient) -> None:
    p.sql("UPDATE memvec.schema_migrations SET sha256 = repeat('0', 64) WHERE version = 1")


def old_extension(p: Patient) -> None:
    p.sql("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")


def read_only(p: Patient) -> None:
    p.sql("SELECT 1")
    p.sql(f"ALTER DATABASE {p.database.name} SET default_transaction_read_only = on")


def other_locales(p: Patient) -> None:
    p.sql("SELECT 1")
    p.sql(f"UPDATE pg_database SET datcollversion = '0.0' WHERE datname = '{p.database.name}'")


def no_folding(p: Patient) -> None:
    p.sql(
        "ALTER COLLATION memvec.folding RENAME TO f",
        "CREATE COLLATION memvec.folding (provider = libc, locale = 'C')",
    )


def function_for_all(p: Patient) -> None:
    p.sql("GRANT EXECUTE ON FUNCTION memvec.bind_role TO PUBLIC")


def table_for_hermes(p: Patient) -> None:
    p.sql("GRANT SELECT ON memvec.conversations TO hermes")


def no_row_security(p: Patient) -> None:
    p.sql("ALTER TABLE memvec.secrets DISABLE ROW LEVEL SECURITY")


def invalid_index(p: Patient) -> None:
    p.sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'memvec.conversations_search'::regclass")


def missing_index(p: Patient) -> None:
    p.sql("DROP INDEX memvec.memory_entries_search")


FILL = """
    WITH rows AS (
        INSERT INTO memvec.memory_entries
               (agent_identity, target, content, content_hash, search, search_version)
        SELECT 'big', 'memory', 'note ' || n, sha256(convert_to('note ' || n, 'UTF8')), '', 1
          FROM generate_series(1, 40) AS n
        RETURNING id, agent_identity, target
    )
    INSERT INTO memvec.entry_embeddings_1 (id, agent_identity, target, embedding)
    SELECT r.id, r.agent_identity, r.target, ARRAY[r.id, 1, 1, 1]::real[]::halfvec FROM rows AS r"""
SPACE = "SELECT memvec.add_embedding_space('probe', 4)"


def missing_hnsw(p: Patient) -> None:
    p.sql("SELECT memvec.set_setting('exact_rows', '20')", SPACE, FILL)


def invalid_hnsw(p: Patient) -> None:
    p.sql(
        SPACE,
        "CREATE INDEX entry_embeddings_1_hnsw ON memvec.entry_embeddings_1"
        " USING hnsw (embedding halfvec_cosine_ops)",
        "UPDATE pg_index SET indisvalid = false"
        " WHERE indexrelid = 'memvec.entry_embeddings_1_hnsw'::regclass",
    )


def setting_out_of_range(p: Patient) -> None:
    p.sql("UPDATE memvec.settings SET value = '5000' WHERE name = 'hnsw_candidates'")


def setting_of_another_kind(p: Patient) -> None:
    p.sql("UPDATE memvec.settings SET value = 'lots' WHERE name = 'exact_rows'")


def another_language(p: Patient) -> None:
    p.sql(
        "SELECT memvec.add_memory('ops', 'memory', 'some text')",
        "SELECT memvec.set_setting('search_language', 'german')",
    )


def dead_rows(p: Patient) -> None:
    p.sql(
        "ALTER TABLE memvec.term_statistics SET (autovacuum_enabled = off)",
        "INSERT INTO memvec.term_statistics SELECT 'entry', 'w' || n, n FROM generate_series(1, 11000) AS n",
        "DELETE FROM memvec.term_statistics",
        "SELECT pg_stat_force_next_flush()",
        "SELECT 1",  # at whose end the counts are sent
    )


def nobody_forgets(p: Patient) -> None:
    p.sql(
        "INSERT INTO memvec.applied_ops (op_id, outcome, applied_at)"
        " VALUES (gen_random_uuid(), 'added', '2020-01-01')"
    )


def superuser_login(p: Patient) -> None:
    p.configure(dsn=p.database.admin_dsn)


def embedder_login(p: Patient) -> None:
    name, dsn = p.database.make_login("memvec_runtime")
    p.sql(f"GRANT memvec_embedder TO {name}")
    p.configure(dsn=dsn)


def no_timeouts(p: Patient) -> None:
    p.configure(dsn=p.database.make_login("memvec_runtime")[1])


def binding_required(p: Patient) -> None:
    p.sql("SELECT memvec.set_setting('require_binding', 'true')")


def bound_to_nothing_allowed(p: Patient) -> None:
    p.sql("SELECT 1")
    name, dsn = p.database.make_login("memvec_runtime")
    p.sql(f"SELECT memvec.bind_role('{name}', 'sales')", "SELECT memvec.set_setting('allowed_themes', 'ops')")
    p.configure(dsn=dsn)


def bound_login_renamed(p: Patient) -> None:
    p.sql("INSERT INTO memvec.role_identities VALUES ('hermes_before', 0, 'sales')")
    p.options["admin_dsn"] = p.database.admin_dsn


def wrong_administrator(p: Patient) -> None:
    p.options["admin_dsn"] = f"postgresql://postgres:{SECRET}@127.0.0.1:9/memory"


def clocks_differ(p: Patient) -> None:
    class Late:
        @staticmethod
        def time() -> float:
            return time.time() - 300

    p.monkeypatch.setattr(doctor_database, "time", Late)


def endpoint_down(p: Patient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    p.configure(embed_url=f"http://127.0.0.1:{port}")


def endpoint_wants_a_key(p: Patient) -> None:
    p.monkeypatch.setenv("DOCTOR_TEST_KEY", SECRET)
    p.configure(embed_api_key_env="DOCTOR_TEST_KEY")
    p.monkeypatch.setattr(Endpoint, "status", 401)


def wrong_width(p: Patient) -> None:
    p.monkeypatch.setattr(Endpoint, "vector", staticmethod(lambda: [0.5] * (DIM + 1)))


def not_a_number(p: Patient) -> None:
    p.monkeypatch.setattr(Endpoint, "vector", staticmethod(lambda: [float("nan")] * DIM))


def zero_vector(p: Patient) -> None:
    p.monkeypatch.setattr(Endpoint, "vector", staticmethod(lambda: [0.0] * DIM))


def slow_endpoint(p: Patient) -> None:
    p.monkeypatch.setattr(Endpoint, "delay", 0.2)
    p.configure(embed_timeout=0.1)


def no_space(p: Patient) -> None:
    p.sql("SELECT memvec.add_embedding_space('another', 8)")


def other_prefixes(p: Patient) -> None:
    p.sql("SELECT memvec.add_embedding_space('probe', 4, '', 'search_document: ')")


def waits_for_vectors(p: Patient) -> None:
    p.sql(
        SPACE,
        "SELECT memvec.add_memory('ops', 'memory', 'waiting')",
        "UPDATE memvec.memory_entries SET updated_at = now() - interval '3 hours'",
        "UPDATE memvec.embedding_spaces SET created_at = now() - interval '1 day'",
    )


def cannot_be_embedded(p: Patient) -> None:
    p.sql(
        SPACE,
        "SELECT memvec.add_memory('ops', 'memory', 'difficult')",
        "SELECT memvec.claim_pending(1, 10)",
        "SELECT memvec.report_embedding_failure(1, '{entry}',"
        " array(SELECT id FROM memvec.memory_entries), '{no}')",
    )


#: fault, area, check, state, what the fix must name
FAULTS: list[tuple[Callable[[Patient], None], str, str, str, str]] = [
    (bad_value, "configuration", "values", "failure", "config.yaml"),
    (bad_yaml, "configuration", "values", "failure", "config.yaml"),
    (open_env_file, "configuration", "file permissions", "warning", "chmod go-rwx"),
    (open_config_file, "configuration", "file permissions", "warning", "chmod go-rwx"),
    (no_api_key, "configuration", "API key", "warning", "export DOCTOR_TEST_KEY="),
    (another_dsn, "configuration", "database", "warning", "unset HERMES_PGSQL_DSN"),
    (home_not_there, "configuration", "home", "failure", "HERMES_HOME"),
    (not_chosen, "host", "provider", "warning", "hermes config set memory.provider pgvector"),
    (no_shim, "host", "shim", "failure", "hermes-pgsql install"),
    (foreign_shim, "host", "shim", "failure", "hermes-pgsql install --force"),
    (old_shim, "host", "shim", "warning", "hermes-pgsql install"),
    (copy_of_shim, "host", "copies", "warning", "pgvector-old"),
    (host_cannot_import, "host", "import", "failure", "-m pip install --force-reinstall /"),
    (host_has_another_version, "host", "import", "warning", "-m pip install --force-reinstall /"),
    (host_takes_another_folder, "host", "discovery", "failure", "mv /opt/hermes/plugins/memory/pgvector"),
    (host_cannot_use_it, "host", "discovery", "failure", "-m pip install --force-reinstall /"),
    (old_operation, "outbox", "backlog", "warning", "hermes-pgsql outbox"),
    (refused_operation, "outbox", "refused", "warning", "--retry"),
    (damaged_outbox, "outbox", "damage", "warning", ".recover"),
    (lost_operation, "outbox", "account", "failure", "hermes-pgsql outbox"),
    (outbox_is_a_folder, "outbox", "file", "failure", "ls -la"),
    (nobody_listens, "database", "connection", "failure", "Check that the database runs"),
    (not_migrated, "database", "schema", "failure", "hermes-pgsql migrate"),
    (
        login_without_rights,
        "database",
        "rights",
        "failure",
        "hermes-pgsql migrate --admin-dsn DSN --runtime-role",
    ),
    (schema_too_old, "database", "schema", "failure", "hermes-pgsql migrate"),
    (schema_too_new, "database", "schema", "failure", "pull && pip install /"),
    (schema_differs, "database", "schema", "failure", "pip install --force-reinstall /"),
    (wrong_administrator, "database", "administrator", "warning", "--admin-dsn"),
    (clocks_differ, "database", "clock", "warning", "timedatectl"),
    (old_extension, "server", "extension", "failure", "ALTER EXTENSION vector UPDATE"),
    (read_only, "server", "writes", "failure", "RESET default_transaction_read_only"),
    (other_locales, "server", "collation version", "warning", "REFRESH COLLATION VERSION"),
    (no_folding, "server", "ctype", "failure", "hermes-pgsql migrate"),
    (function_for_all, "schema", "function rights", "failure", "hermes-pgsql migrate"),
    (table_for_hermes, "schema", "table rights", "failure", "REVOKE ALL ON memvec.conversations FROM hermes"),
    (
        no_row_security,
        "schema",
        "row security",
        "failure",
        "ALTER TABLE memvec.secrets ENABLE ROW LEVEL SECURITY",
    ),
    (
        invalid_index,
        "schema",
        "index validity",
        "failure",
        "REINDEX INDEX CONCURRENTLY memvec.conversations_search",
    ),
    (missing_index, "schema", "indexes", "failure", "CREATE INDEX CONCURRENTLY memory_entries_search"),
    (missing_hnsw, "vectors", "index of entry_embeddings_1", "warning", "hermes-pgsql index"),
    (invalid_hnsw, "vectors", "index of entry_embeddings_1", "failure", "hermes-pgsql index"),
    (setting_out_of_range, "settings", "values", "failure", "set_setting('hnsw_candidates', '1000')"),
    (setting_of_another_kind, "settings", "values", "failure", "set_setting('exact_rows', "),
    (another_language, "settings", "search language", "warning", "hermes-pgsql reindex"),
    (dead_rows, "tables", "bloat", "warning", "VACUUM (ANALYZE) memvec.term_statistics"),
    (nobody_forgets, "tables", "housekeeping", "warning", "memvec.housekeeping()"),
    (superuser_login, "roles", "login", "warning", "--runtime-role hermes"),
    (embedder_login, "roles", "login", "warning", "REVOKE memvec_embedder FROM"),
    (no_timeouts, "roles", "timeouts", "warning", "hermes-pgsql migrate --admin-dsn DSN --runtime-role t_"),
    (binding_required, "roles", "binding", "failure", "hermes-pgsql bind-role hermes THEME"),
    (
        bound_to_nothing_allowed,
        "roles",
        "bound themes",
        "failure",
        "set_setting('allowed_themes', 'ops, sales')",
    ),
    (bound_login_renamed, "roles", "bindings of others", "warning", "hermes-pgsql unbind-role hermes_before"),
    (endpoint_down, "embedding", "endpoint", "failure", "start the service"),
    (endpoint_wants_a_key, "embedding", "endpoint", "failure", "export DOCTOR_TEST_KEY="),
    (wrong_width, "embedding", "endpoint", "failure", "memory.pgvector.embed_dim"),
    (not_a_number, "embedding", "endpoint", "failure", "embed_model"),
    (zero_vector, "embedding", "endpoint", "failure", "embed_model"),
    (slow_endpoint, "embedding", "latency", "warning", "smaller or nearer model"),
    (no_space, "embedding", "space", "failure", "hermes-pgsql model add probe --dim 4"),
    (
        other_prefixes,
        "embedding",
        "space",
        "failure",
        "hermes config set memory.pgvector.embed_document_prefix 'search_document: '",
    ),
    (waits_for_vectors, "vectors", "pending of space 1", "warning", "hermes-pgsql backfill"),
    (cannot_be_embedded, "vectors", "pending of space 1", "warning", "hermes-pgsql backfill --retry"),
]


def test_nothing_is_wrong_with_a_healthy_patient(patient: Patient) -> None:
    patient.outbox().put("add_memory", "ops", {"target": "memory", "content": "fresh"})
    findings = patient.examine()
    wrong = {(one.area, one.name): one for one in findings if one.state != "ok"}
    assert set(wrong) <= EXPECTED, wrong
    assert len(findings) > 35
    assert all(one.fix == "" for one in findings if one.state == "ok")


@pytest.mark.parametrize(
    ("fault", "area", "name", "state", "fix"), FAULTS, ids=lambda v: getattr(v, "__name__", None)
)
def test_a_planted_fault_is_found_with_its_fix(
    patient: Patient, fault: Callable[[Patient], None], area: str, name: str, state: str, fix: str
) -> None:
    fault(patient)
    findings = patient.examine()
    found = {(one.area, one.name): one for one in findings}.get((area, name))
    assert found is not None, [one for one in findings if one.state != "ok"]
    assert (found.state, fix in found.fix) == (state, True), found
    assert exit_code(findings) in {1, 3}
    assert SECRET not in repr(findings)


NOTHING_FOUND = "def find_provider_dir(name): return None\ndef load_memory_provider(name): return None\n"


@pytest.mark.parametrize("config", ["memory: {provider: pgvector}\n", "memory: [", None])
def test_a_missing_shim_is_one_fault_with_one_fix(patient: Patient, config: str | None) -> None:
    no_shim(patient)
    if config is None:
        patient.home.joinpath("plugins").rmdir()
    else:
        patient.options["dsn"] = patient.database.runtime_dsn
        patient.write(config)
    python_of_a_host(patient, NOTHING_FOUND, same_version())
    wrong = {one.name: one for one in patient.examine() if one.area == "host" and one.state != "ok"}
    assert [name for name, one in wrong.items() if one.state in {"warning", "failure"}] == ["shim"], wrong
    assert wrong["shim"].fix == "hermes-pgsql install"
    assert "pip" not in repr(wrong)
    assert wrong["discovery"].state == "unknown"


def test_a_host_that_needs_no_shim_is_judged_without_one(patient: Patient) -> None:
    no_shim(patient)
    loader = loader_of("", available=True).replace("return ''", "return None")
    python_of_a_host(patient, loader, same_version())
    host = {one.name: one.state for one in patient.examine() if one.area == "host"}
    assert (host["shim"], host["discovery"]) == ("ok", "ok")


def test_there_are_at_least_twenty_faults_of_every_kind() -> None:
    assert len({fault for fault, *_rest in FAULTS}) >= 20
    assert {area for _fault, area, *_rest in FAULTS} == {
        "configuration",
        "host",
        "outbox",
        "database",
        "server",
        "schema",
        "roles",
        "settings",
        "tables",
        "vectors",
        "embedding",
    }


# The command ---------------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    pool.close_all()
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        main(["doctor", *arguments])
    written = capsys.readouterr()
    assert SECRET not in written.out + written.err
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, written.out


def test_the_command_shows_what_is_wrong_and_exits_with_it(
    patient: Patient, capsys: pytest.CaptureFixture[str]
) -> None:
    code, shown = run(capsys)
    assert code in {0, 3}
    assert len(shown.splitlines()) < 40  # one screen
    assert "13 of" not in shown
    not_chosen(patient)
    code, shown = run(capsys)
    assert code == 3
    assert "memory.provider is 'honcho'" in shown
    assert "hermes config set memory.provider pgvector" in shown
    no_shim(patient)
    code, shown = run(capsys, "--all")
    assert code == 1
    assert "PostgreSQL" in shown
    document = json.loads(run(capsys, "--json")[1])
    assert document["exit_code"] == 1
    assert {"area", "name", "state", "message", "fix"} == set(document["checks"][0])
    assert "failure" in {check["state"] for check in document["checks"]}


def test_no_secret_is_ever_shown(patient: Patient, capsys: pytest.CaptureFixture[str]) -> None:
    patient.monkeypatch.setenv("DOCTOR_TEST_KEY", SECRET)
    host = conninfo_to_dict(patient.database.runtime_dsn).get("host")
    patient.configure(
        dsn=f"postgresql://nobody:{SECRET}@/none?host={host}",
        embed_api_key_env="DOCTOR_TEST_KEY",
        embed_url=f"http://user:{SECRET}@127.0.0.1:9",
    )
    assert run(capsys, "--all")[0] == 1
    assert run(capsys, "--json")[0] == 1


def test_doctor_changes_nothing(patient: Patient) -> None:
    def files() -> dict[str, tuple[int, int]]:
        return {
            str(path): (path.stat().st_mtime_ns, stat.S_IMODE(path.stat().st_mode))
            for path in patient.home.rglob("*")
            if path.is_file()
        }

    def rows() -> list[Any]:
        tables = ("memory_agents", "embedding_spaces", "maintenance_log")
        query = sql.SQL(" UNION ALL ").join(
            sql.SQL("SELECT count(*) FROM memvec.{}").format(sql.Identifier(table)) for table in tables
        )
        with patient.database.admin() as connection:
            return connection.execute(query).fetchall()

    before = files(), rows()
    patient.examine()
    assert (files(), rows()) == before
