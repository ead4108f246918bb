"""Install the schema ``memvec`` in a database, or bring it up to date.

One transaction under an advisory lock: ``bootstrap.sql`` (roles, extension, schema, ledger), the new
numbered migrations, every file of a function or a view again, ``verify.sql``. Either all of it happens or
nothing. The decisions (what is refused, which migrations are new) are made by the SQL files, so
``db/migrate.sh``, which needs only psql, does the same and writes the same ledger. Files whose first line is
``-- migrate: no-transaction`` hold one statement that cannot run in a transaction (CREATE INDEX
CONCURRENTLY); they run alone, after the rest was committed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, LiteralString, TypeAlias

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from hermes_pgsql import whereabouts
from hermes_pgsql.errors import MigrationError, redact_secrets

__all__ = ["DbFiles", "MigrationReport", "SqlFile", "db_files", "migrate"]

NO_TRANSACTION: Final = "-- migrate: no-transaction"
CONNECT_SECONDS: Final = 10
# The lock of the files that run after the commit. Its own key: who waits for the main lock does so in a
# transaction, and CREATE INDEX CONCURRENTLY waits for every older one to end. migrate.sh has the same number.
_AFTERWARDS_KEY: Final = 7236547102
_GRANT_NOTICE: Final = "MV100"  # how bootstrap.sql marks what it created or granted

_EXTENSION_NAME: Final = re.compile(r"(?<![\w.\"$])public\.(?=[a-z_<+*|=>-])")
_CONCURRENT_INDEX: Final = re.compile(
    r"^CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)\s",
    re.IGNORECASE | re.MULTILINE,
)
_EXTENSION_SCHEMA: Final = """
    SELECT quote_ident(n.nspname)
      FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
     WHERE e.extname = 'vector'"""
_PENDING: Final = "SELECT coalesce(current_setting('memvec.pending_migrations', true), '{}')"
# A poll that commits between its tries, so that nobody's CREATE INDEX CONCURRENTLY waits for this session.
_POLL_FOR_LOCK: Final = sql.SQL("""
    DO $wait$
    BEGIN
        WHILE NOT pg_try_advisory_lock({key}) LOOP
            COMMIT;
            PERFORM pg_sleep(0.2);
        END LOOP;
    END
    $wait$""").format(key=sql.Literal(_AFTERWARDS_KEY))

_Connection: TypeAlias = psycopg.Connection[TupleRow]


@dataclass(frozen=True)
class SqlFile:
    """One file below ``db/``: its path there, and its text with Unix line ends."""

    path: str
    text: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def version(self) -> int:
        """The number of a migration; bootstrap.sql has checked that it has one."""
        return int(self.name[:4])

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def in_transaction(self) -> bool:
        return self.text.partition("\n")[0].rstrip() != NO_TRANSACTION


@dataclass(frozen=True)
class DbFiles:
    """The SQL of one release, each list in the order in which it is applied."""

    bootstrap: SqlFile
    migrations: list[SqlFile]
    functions: list[SqlFile]
    views: list[SqlFile]
    verify: SqlFile


@dataclass(frozen=True)
class MigrationReport:
    """What a migration did. A second run has nothing applied and nothing granted.

    ``applied`` names the migration files that were new, ``functions`` counts the function files, which are
    written each time; ``granted`` holds a sentence for every role, grant or setting that was made,
    ``warnings`` what deserves a look.
    """

    applied: list[str]
    functions: int
    schema_version: int
    granted: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])


def db_files(db_dir: Path | None = None) -> DbFiles:
    """The SQL files of ``db_dir``; by default those inside the installed package, else of the source tree.

    Raises MigrationError when there are none.
    """
    package = Path(__file__).parent
    candidates = [db_dir] if db_dir else [package / "db", package.parent / "db"]
    for root in candidates:
        if (root / "bootstrap.sql").is_file():
            return DbFiles(
                bootstrap=_read(root, root / "bootstrap.sql"),
                migrations=_read_all(root, "migrations"),
                functions=_read_all(root, "functions"),
                views=_read_all(root, "views"),
                verify=_read(root, root / "verify.sql"),
            )
    raise MigrationError(
        "MV107",
        f"The SQL files of the package are missing: there is no bootstrap.sql in {candidates[0]}.",
        hint="Install the package again.",
        step="reading the files",
    )


def migrate(
    admin_dsn: str,
    runtime_role: str | None = "hermes",
    *,
    embedder_role: str | None = None,
    db_dir: Path | None = None,
) -> MigrationReport:
    """Install or upgrade the schema ``memvec`` in the database that ``admin_dsn`` names.

    The DSN is an administrator's: a superuser, or a role with CREATEROLE and CREATE on the database where
    the extension ``vector`` already exists. The login roles are created when missing; None or blank means
    that none is wanted. Running it again changes nothing; running it twice at once is safe. ``db_dir``
    replaces the SQL files of the package.

    Raises MigrationError, whose ``step`` names the file that failed. Nothing is left behind then, unless
    the step is a no-transaction file: those run after everything else was committed.
    """
    files = db_files(db_dir)
    notices = _Notices()
    with _connected(admin_dsn) as connection:
        connection.add_notice_handler(notices.take)
        applied = _migrate_in_transaction(connection, files, runtime_role or "", embedder_role or "")
        applied += _migrate_afterwards(connection, files)
        with _failing_as("reading the ledger"):
            version = _schema_version(connection)
    return MigrationReport(
        applied=sorted(applied),
        functions=len(files.functions),
        schema_version=version,
        granted=notices.granted,
        warnings=notices.warnings,
    )


class _Notices:
    """Sorts what the server says into what was granted and what deserves a warning."""

    def __init__(self) -> None:
        self.granted: list[str] = []
        self.warnings: list[str] = []

    def take(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        message = diagnostic.message_primary or ""
        if diagnostic.sqlstate == _GRANT_NOTICE:
            self.granted.append(message)
        elif diagnostic.severity_nonlocalized == "WARNING":
            hint = diagnostic.message_hint
            self.warnings.append(f"{message}. {hint}" if hint else message)


def _migrate_in_transaction(
    connection: _Connection, files: DbFiles, runtime_role: str, embedder_role: str
) -> list[str]:
    """Everything but the no-transaction files. Returns the names of the migrations it applied."""
    # READ COMMITTED, whatever the database's default: what follows the lock needs a newer snapshot than it.
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    connection.read_only = False
    settings = {
        "memvec.runtime_role": runtime_role,
        "memvec.embedder_role": embedder_role,
        "memvec.migrations": "\n".join(f"{file.sha256}  {file.name}" for file in files.migrations),
    }
    applied: list[str] = []
    with _failing_as("the transaction"), connection.transaction():
        with _failing_as(files.bootstrap.path):
            for name, value in settings.items():
                connection.execute("SELECT set_config(%s, %s, true)", (name, value))
            connection.execute(files.bootstrap.text.encode())
            schema = str(_value(connection, _EXTENSION_SCHEMA))
            pending = {int(version) for version in re.findall(r"\d+", str(_value(connection, _PENDING)))}
            connection.execute("SET LOCAL ROLE memvec_owner")
        for file in files.migrations:
            if file.in_transaction and file.version in pending:
                _apply(connection, file, schema)
                applied.append(file.name)
        for file in (*files.functions, *files.views):
            _run(connection, file, schema)
        with _failing_as(files.verify.path):
            connection.execute("RESET ROLE")
            connection.execute(files.verify.text.encode())
    return applied


def _migrate_afterwards(connection: _Connection, files: DbFiles) -> list[str]:
    """The no-transaction files that the ledger lacks, each alone. Returns the names of those it applied."""
    afterwards = [file for file in files.migrations if not file.in_transaction]
    if not afterwards:
        return []
    connection.isolation_level = None
    connection.read_only = None
    applied: list[str] = []
    try:
        with _failing_as(afterwards[0].path):
            connection.execute("SET statement_timeout = 0")
            connection.execute(_POLL_FOR_LOCK)
            connection.execute("SET lock_timeout = '5min'")
            connection.execute("SET search_path = pg_catalog, pg_temp")
            connection.execute("SET ROLE memvec_owner")
            schema = str(_value(connection, _EXTENSION_SCHEMA))
            known = {row[0] for row in connection.execute("SELECT version FROM memvec.schema_migrations")}
        for file in afterwards:
            if file.version in known:
                continue
            _drop_invalid_leftover(connection, file)
            _apply(connection, file, schema)
            applied.append(file.name)
    except MigrationError as error:
        error.hint = (
            f"Everything else was committed. Run the migration again to try this file. {error.hint}".strip()
        )
        raise
    return applied


def _drop_invalid_leftover(connection: _Connection, file: SqlFile) -> None:
    """Drop the half-built index that an interrupted CREATE INDEX CONCURRENTLY of this file left."""
    index = _CONCURRENT_INDEX.search(file.text)
    if index is None:
        return
    name = index[1].lower()
    with _failing_as(file.path):
        invalid = connection.execute(
            "SELECT FROM pg_index WHERE indexrelid = to_regclass('memvec.' || %s) AND NOT indisvalid", (name,)
        ).fetchone()
        if invalid is not None:
            connection.execute(sql.SQL("DROP INDEX CONCURRENTLY {}").format(sql.Identifier("memvec", name)))


def _apply(connection: _Connection, file: SqlFile, schema: str) -> None:
    _run(connection, file, schema)
    with _failing_as(file.path):
        connection.execute(
            "INSERT INTO memvec.schema_migrations (version, name, sha256) VALUES (%s, %s, %s)",
            (file.version, file.name, file.sha256),
        )


def _run(connection: _Connection, file: SqlFile, schema: str) -> None:
    text = _in_extension_schema(file.text, schema)
    with _failing_as(file.path, text):
        connection.execute(text.encode())


def _in_extension_schema(text: str, quoted_schema: str) -> str:
    """The files write the extension's types and operators as ``public.…``; here they get its true schema."""
    if quoted_schema == "public":
        return text
    return _EXTENSION_NAME.sub(lambda _: f"{quoted_schema}.", text)


def _schema_version(connection: _Connection) -> int:
    with connection.transaction():
        connection.execute("SET LOCAL ROLE memvec_owner")
        version = _value(connection, "SELECT coalesce(max(version), 0) FROM memvec.schema_migrations")
    return version if isinstance(version, int) else 0


def _value(connection: _Connection, query: LiteralString) -> object:
    row = connection.execute(query).fetchone()
    return row[0] if row else None


def _read_all(root: Path, folder: str) -> list[SqlFile]:
    files = [_read(root, path) for path in (root / folder).rglob("*.sql")]
    return sorted(files, key=lambda file: file.path.encode())


def _read(root: Path, path: Path) -> SqlFile:
    name = path.relative_to(root).as_posix()
    try:
        # Carriage returns do not count: a checkout on another system must have the same checksum.
        return SqlFile(name, path.read_bytes().replace(b"\r", b"").decode())
    except (OSError, UnicodeDecodeError) as error:
        raise MigrationError(
            "MV107", f"The file {name} cannot be read: {error}.", hint="Install the package again.", step=name
        ) from error


@contextmanager
def _connected(admin_dsn: str) -> Generator[_Connection]:
    """A connection to the administrator's database, closed at the end.

    Raises MigrationError, which never shows the DSN or its password.
    """
    try:
        settings: dict[str, Any] = dict(conninfo_to_dict(admin_dsn))
    except psycopg.Error as error:
        raise _misread_dsn(
            f"it is not a connection string{whereabouts.bad_keyword(admin_dsn, str(error))}"
        ) from None
    settings.setdefault("connect_timeout", CONNECT_SECONDS)
    settings.setdefault("application_name", "hermes-pgsql migrate")
    settings["client_encoding"] = "utf8"
    try:
        connection = psycopg.connect(autocommit=True, prepare_threshold=None, **settings)
    except psycopg.Error as error:
        raise _unreachable(error, settings, whereabouts.describe(admin_dsn)) from None
    try:
        yield connection
    finally:
        connection.close()


def _misread_dsn(why: str) -> MigrationError:
    return MigrationError(
        "08001",
        f"the administrator's DSN cannot be understood: {why}",
        hint="Write postgresql://user@host/database or key=value pairs. In a URL, a password's @ and / are"
        " written %40 and %2F.",
        step="connecting",
    )


def _unreachable(error: psycopg.Error, settings: Mapping[str, object], place: str) -> MigrationError:
    host, port = str(settings.get("host") or ""), str(settings.get("port") or "")
    if "@" in host or port.strip("0123456789,"):
        # A password with a bare @ or / was taken apart in the wrong place: the parts must not be shown.
        return _misread_dsn("its host or port has characters that do not belong there")
    password = settings.get("password")
    reason = redact_secrets(str(error).strip(), str(password) if password else None).partition("\n")[0]
    return MigrationError(
        "08001",
        f"cannot connect to the database: {reason or 'no reason given'}",
        detail=place,
        hint="Check that the server runs and that the DSN names the right host, database and administrator.",
        step="connecting",
    )


@contextmanager
def _failing_as(step: str, text: str = "") -> Generator[None]:
    """Turn the driver's errors into MigrationError of that step; ``text`` is what ran, to name the line."""
    try:
        yield
    except psycopg.Error as error:
        raise _failure(step, text, error) from error


def _failure(step: str, text: str, error: psycopg.Error) -> MigrationError:
    diagnostic = error.diag
    if text and diagnostic.statement_position:
        line = text.count("\n", 0, int(diagnostic.statement_position)) + 1
        step = f"{step}, line {line}"
    sqlstate = error.sqlstate or "08006"  # the driver has no code of its own when the connection breaks
    message = diagnostic.message_primary or str(error).strip().partition("\n")[0]
    if not sqlstate.startswith("MV"):
        message = f"{step}: {message}"
    hint = diagnostic.message_hint or ""
    if sqlstate == "55P03":
        hint = "Another migration or a long transaction holds a lock; try again when it has ended."
    return MigrationError(sqlstate, message, diagnostic.message_detail or "", hint, step)
