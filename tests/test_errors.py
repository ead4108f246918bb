"""Errors become sentences, keep their codes, and never carry a secret."""

from __future__ import annotations

import psycopg
import pytest
from conftest import Database

from hermes_pgsql import errors
from hermes_pgsql.errors import is_retryable, is_retryable_sqlstate, redact_dsn, translate

SECRET = "s3cret-pa55"


def raised(
    database: Database, sqlstate: str, message: str = "What happened", hint: str = ""
) -> psycopg.Error:
    """The driver's error for a RAISE with that code, from a real server."""
    using = f"ERRCODE = '{sqlstate}', MESSAGE = '{message}', DETAIL = 'To what', HINT = '{hint}'"
    with database.admin() as connection, pytest.raises(psycopg.Error) as caught:
        connection.execute(f"DO $$BEGIN RAISE EXCEPTION USING {using}; END$$")
    return caught.value


@pytest.mark.parametrize(
    ("sqlstate", "expected"),
    [
        ("MV001", errors.InvalidArgument),
        ("MV002", errors.NotPermitted),
        ("MV003", errors.ScopeRefused),
        ("MV004", errors.UnknownSpace),
        ("MV005", errors.WrongDimension),
        ("MV006", errors.IsolationTooHigh),
        ("MV007", errors.BadSetting),
        ("MV008", errors.Busy),
        ("MV009", errors.FileEntryRefused),
        ("MV099", errors.MemvecError),
        ("MV103", errors.MigrationError),
    ],
)
def test_our_codes_become_their_classes(
    empty_database: Database, sqlstate: str, expected: type[errors.MemvecError]
) -> None:
    error = translate(raised(empty_database, sqlstate, hint="Do this"))
    assert type(error) is expected
    assert isinstance(error, errors.MemvecError)
    assert (error.sqlstate, error.message, error.detail) == (sqlstate, "What happened", "To what")
    assert str(error) == "What happened\nDo this"


def test_an_error_without_a_hint_is_one_line(empty_database: Database) -> None:
    assert str(translate(raised(empty_database, "MV001"))) == "What happened"


def test_a_migration_error_says_where_it_stopped(empty_database: Database) -> None:
    error = translate(raised(empty_database, "MV102"), step="bootstrap.sql")
    assert isinstance(error, errors.MigrationError)
    assert error.step == "bootstrap.sql"


@pytest.mark.parametrize("statement", ["SELECT memvec.schema_version()", "SELECT * FROM memvec.settings"])
def test_a_database_without_the_schema_names_the_command(empty_database: Database, statement: str) -> None:
    with empty_database.admin() as connection, pytest.raises(psycopg.Error) as caught:
        connection.execute(statement)
    error = translate(caught.value)
    assert isinstance(error, errors.NotMigrated)
    assert "hermes-pgsql migrate" in error.hint


def test_a_missing_function_of_ours_means_not_migrated_and_one_of_others_does_not(
    empty_database: Database,
) -> None:
    with empty_database.admin() as connection:
        connection.execute("CREATE SCHEMA memvec")
        with pytest.raises(psycopg.Error) as ours:
            connection.execute("SELECT memvec.recall_memory(p_identity => 'x')")
        with pytest.raises(psycopg.Error) as others:
            connection.execute("SELECT no_such_function()")
    assert isinstance(translate(ours.value), errors.NotMigrated)
    assert isinstance(translate(others.value), errors.DatabaseFailure)


def test_a_refused_connection_says_so_without_the_dsn() -> None:
    with pytest.raises(psycopg.Error) as caught:
        psycopg.connect(
            f"host=127.0.0.1 port=9 user=someone password={SECRET} dbname=private", connect_timeout=2
        )
    error = translate(caught.value)
    assert isinstance(error, errors.DatabaseUnavailable)
    assert "refused" in error.message
    assert not {SECRET, "someone", "private", "127.0.0.1"} & set(str(error).replace(",", " ").split())
    assert SECRET not in repr(error)


def test_a_missing_database_says_so(empty_database: Database) -> None:
    with pytest.raises(psycopg.Error) as caught:
        psycopg.connect(empty_database.server.dsn("no_such_database"))
    error = translate(caught.value)
    assert isinstance(error, errors.DatabaseUnavailable)
    assert "does not exist" in error.message
    assert "no_such_database" not in str(error)


def test_what_the_driver_itself_refuses_is_an_invalid_argument(empty_database: Database) -> None:
    with empty_database.admin() as connection, pytest.raises(psycopg.Error) as caught:
        connection.execute("SELECT %s::text", ["a\0b"])
    assert isinstance(translate(caught.value), errors.InvalidArgument)


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("fe_sendauth: no password supplied", "asks for a password", ".pgpass"),
        ('root certificate file "/x/root.crt" does not exist', "root certificate", "dsn"),
        ("received invalid response to SSL negotiation: H", "not PostgreSQL", "dsn"),
        ('definition of service "x" not found', "pg_service.conf", "dsn"),
        ('FATAL:  database "x" does not exist', "The database named", "createdb"),
        ('FATAL:  role "x" does not exist', "The role (user) named", "--runtime-role"),
        ("FATAL:  unsupported startup parameter: options", "pooler", "ignore_startup_parameters"),
        ("FATAL:  no such user: someone", "pooler in front of the database does not know", "dsn"),
        ("FATAL:  no more connections allowed (max_client_conn)", "no connection left", "max_client_conn"),
        ("FATAL:  query_wait_timeout", "pooler", "default_pool_size"),
        ("FATAL:  server login has been failing, try again later (server_login_retry)", "pooler", "dsn"),
    ],
)
def test_why_there_is_no_connection(text: str, says: str, hint: str) -> None:
    error = translate(psycopg.OperationalError(f"connection failed: {text}"))
    assert isinstance(error, errors.DatabaseUnavailable)
    assert says in error.message
    assert hint in error.hint


def test_a_standby_is_named_as_such(empty_database: Database) -> None:
    with empty_database.admin() as connection:
        connection.execute("SET default_transaction_read_only = on")
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("CREATE TABLE public.x ()")
    error = translate(caught.value)
    assert "standby" in error.message
    assert "primary" in error.hint


@pytest.mark.parametrize(
    "sqlstate", ["40001", "40P01", "55P03", "57014", "57P01", "57P03", "08006", "53300", "MV008"]
)
def test_what_may_succeed_later_is_retryable(empty_database: Database, sqlstate: str) -> None:
    assert is_retryable_sqlstate(sqlstate)
    driver_error = raised(empty_database, sqlstate)
    assert is_retryable(driver_error)
    assert is_retryable(translate(driver_error))


@pytest.mark.parametrize("sqlstate", ["MV001", "MV002", "42501", "22P02", "23505", "3F000"])
def test_what_would_fail_again_is_not_retryable(empty_database: Database, sqlstate: str) -> None:
    driver_error = raised(empty_database, sqlstate)
    assert not is_retryable(driver_error)
    assert not is_retryable(translate(driver_error))


def test_other_exceptions_are_not_retryable() -> None:
    assert not is_retryable(ValueError("x"))
    assert not is_retryable_sqlstate(None)


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://hermes:{SECRET}@db.example/memvec",
        f"postgresql://hermes:{SECRET}@x@db.example:5432/memvec?sslmode=require",
        f"postgresql://hermes:a/{SECRET}?@db.example/memvec",
        f"postgresql://db.example/memvec?user=hermes&password={SECRET}&sslmode=require",
        f"host=db.example user=hermes password={SECRET} dbname=memvec",
        f"host=db.example password = '{SECRET} with \\' quote' dbname=memvec",
        f"could not connect to http://user:{SECRET}@proxy:8080/v1 twice",
        f"host=db.example sslpassword={SECRET}",
    ],
)
def test_passwords_are_masked(dsn: str) -> None:
    shown = redact_dsn(dsn)
    assert SECRET not in shown
    assert "quote" not in shown
    assert "****" in shown


@pytest.mark.parametrize(
    "dsn", ["postgresql://hermes@db.example/memvec", "host=/run/pg dbname=memvec", "embedded", ""]
)
def test_a_dsn_without_password_is_shown_as_it_is(dsn: str) -> None:
    assert redact_dsn(dsn) == dsn


def test_literal_secrets_are_masked_too() -> None:
    assert errors.redact_secrets(f"tried {SECRET} twice", SECRET, None, "") == "tried **** twice"
